"""Decoding with graph models: labels and probabilities of tokens."""

from typing import Any, NoReturn

import numpy as np

from ..decoding.chains import Chains
from ..decoding.decoder import Decoder, Floats, Ints
from ..decoding.probabilities import posterior_labels
from ..decoding.rows import dense_rows
from ..decoding.transitions import Mask
from ..errors import Errors, SparseCRFError
from ..model.model import CRFModel, WeightTable
from ..parallel import Workers
from ..pipeline.graph_settings import Inference
from .encoded import Linked
from .graph_inference import NEVER, Network


class GraphDecoder(Decoder):
    """Decoder of graph models: labels observations with links, by approximate inference.

    Invalid transitions have probability zero. In graphs without cycles, the result is therefore the
    valid sequence with the largest sum of beliefs.

    inference: settings; belief propagation replaces pseudo-likelihood, which needs gold labels.
    """

    def __init__(self, model: CRFModel, valid: Mask | None, inference: Inference) -> None:
        super().__init__(model, valid)
        if inference.method == "pseudo_likelihood":
            inference = Inference(tolerance=inference.tolerance)
        self._inference = inference
        self._pairs_of_links: WeightTable = model.bigram

    def viterbi(self, source: Any, permitted: Mask | None = None) -> Ints:
        """Find the labels with the largest max-marginals. RETURNS: [N] int32 label ids."""
        return self._label(*self._infer(source, permitted, best=True))

    def marginals(self, source: Any, permitted: Mask | None = None) -> Floats:
        """Approximate p(y_t = y | x) of each token. RETURNS: [N, Y] float64, rows sum to 1."""
        return self._infer(source, permitted, best=False)[1]

    def decode(
        self, source: Any, method: str, permitted: Mask | None = None
    ) -> tuple[Ints, Floats]:
        """Find labels, and approximate their probabilities; see `Decoder.decode`."""
        chains, found = self._infer(source, permitted, best=False)
        if method == "posterior":
            labels = self._label(chains, found)
        else:
            labels = self.viterbi(source, permitted)
        return labels, found[np.arange(len(labels)), labels]

    def _label(self, chains: Chains, found: Floats) -> Ints:
        labels = np.empty(len(found), dtype=np.int32)
        posterior_labels(chains, found, labels)
        return labels

    def _infer(self, source: Linked, permitted: Mask | None, best: bool) -> tuple[Chains, Floats]:
        """Return the chains, and the beliefs of all tokens, [N, Y]."""
        n, links = self.n_labels, source.links
        chains = self.chains(source.source, permitted)
        offsets, context = chains.offsets, chains.context
        rows, kinds = chains.pairs, np.zeros((len(links.keys), n, n))
        shape = n + 1, self.padded
        known, dense = dense_rows(
            self._pairs_of_links, links.keys, self.padded, shape[0] * shape[1]
        )
        kinds[known] = dense.reshape(-1, *shape)[:, :n, :n]
        ends, edge_offsets, row = links.edges(offsets, context, len(rows))
        nobody, alike = np.full(len(context), -1, np.int32), np.ones(len(offsets) - 1)
        edges = edge_offsets, ends.astype(np.int32), row, len(rows) + len(kinds)
        network = Network(offsets, *edges, n, nobody, alike, self._inference)
        space, potentials = network.real, network.real.potentials
        potentials.log_phi[:] = chains.scores[:, :n]
        if links.chain:
            begins = offsets[:-1][np.diff(offsets) > 0]
            potentials.log_phi[begins] += rows[context[begins], n, :n]
        np.concatenate((rows[:, :n, :n], kinds), out=potentials.log_psi)
        for log in potentials.log_phi, potentials.log_psi:
            np.maximum(log, NEVER, out=log)
        network.exponentiate_pairs(np.arange(network.n_rows), space)
        Workers(1).map(
            lambda first, last: network.propagate(first, last, space, best), network.chunks
        )
        network.warn(space)
        return chains, space.beliefs.nodes

    def nbest(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error: graph models do not support this. RAISES: SparseCRFError."""
        raise SparseCRFError(Errors.SC410)

    log_probability = span_probability = nbest
