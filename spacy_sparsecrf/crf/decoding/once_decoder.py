"""A decoder whose labels obey `decoding.once.Once`. Imports numba."""

from itertools import pairwise

import numpy as np

from ..corpus.numbering import Floats, Ints, Mask
from .answers import LabelDecoder
from .chains import Chains
from .decoder import Decoder
from .once import Once
from .posterior import Posterior, posterior_chains
from .sources import Source


class OnceDecoder(LabelDecoder):
    """Wraps a decoder, so that its labels and n best paths repeat no name.

    Only sequences that repeat a name are decoded again. Probabilities are those of the decoder.
    """

    def __init__(self, decoder: Decoder, once: Once) -> None:
        self.n_labels = decoder.n_labels
        self._decoder = decoder
        self._once = once

    def chains(self, source: Source, permitted: Mask | None = None) -> Chains:
        """Score the labels and label pairs of tokens; see `Decoder`."""
        return self._decoder.chains(source, permitted)

    def viterbi(self, source: Source, permitted: Mask | None = None) -> Ints:
        """Find the most probable labels; see `LabelDecoder`."""
        labels = self._decoder.viterbi(source, permitted)
        self._correct(labels, "viterbi", source, permitted)
        return labels

    def decode(
        self, source: Source, method: str, permitted: Mask | None = None
    ) -> tuple[Ints, Floats]:
        """Find labels and their marginal probabilities; see `LabelDecoder`."""
        labels, probabilities = self._decoder.decode(source, method, permitted)
        if self._correct(labels, method, source, permitted):
            probabilities = self.marginals(source, permitted)[np.arange(len(labels)), labels]
        return labels, probabilities

    def nbest(
        self, source: Source, n: int, permitted: Mask | None = None
    ) -> list[tuple[Ints, Floats]]:
        """Find the n most probable paths of each sequence; see `LabelDecoder`."""
        by_sequence = self._decoder.nbest(source, n, permitted)
        for s, (labels, _) in enumerate(by_sequence):
            paths = labels.tolist()
            if any(map(self._once.repeats, paths)):
                chain = Posterior(self._chain(s, source, permitted))
                paths = self._once.relax(chain, paths, n=n)
                log_p = [*map(chain.log_probability, paths)]
                by_sequence[s] = np.array(paths, np.int32), np.minimum.accumulate(log_p)
        return by_sequence

    def _correct(self, labels: Ints, method: str, source: Source, permitted: Mask | None) -> bool:
        """Replace labels [N] of sequences that repeat a name. RETURNS: whether there are any."""
        ids = labels.tolist()
        is_wrong = False
        for s, (begin, end) in enumerate(pairwise(source.offsets.tolist())):
            path = ids[begin:end]
            if self._once.repeats(path):
                is_wrong = True
                chain = self._chosen(self._chain(s, source, permitted), method)
                [labels[begin:end]] = self._once.relax(Posterior(chain), [path])
        return is_wrong

    def _chain(self, s: int, source: Source, permitted: Mask | None) -> Chains:
        """Return sequence s."""
        begin, end = source.offsets[[s, s + 1]]
        mask = None if permitted is None else permitted[begin:end]
        return self.chains(source.sequences(s, s + 1), mask)

    def _chosen(self, chain: Chains, method: str) -> Chains:
        """Return a chain with the scores by which a method chooses labels."""
        if method == "posterior" and self._decoder.has_weights:
            return posterior_chains(chain, Posterior(chain).marginals())
        self._decoder.prefer(chain.scores)
        return chain
