"""A decoder whose labels obey `decoding.once.Once`. Imports numba."""

from itertools import pairwise

import numpy as np

from ..corpus.numbering import Floats, Ints, Mask
from .decoder import Decoder, Source
from .once import Once
from .probabilities import Posterior, posterior_chains


class OnceDecoder(Decoder):
    """Wraps a decoder, so that its labels and n best paths repeat no name.

    Only sequences that repeat a name are decoded again. Probabilities are those of the decoder.
    """

    def __init__(self, decoder: Decoder, once: Once) -> None:
        # Inherited methods use these of the decoder, with its caches.
        own = {"completed": decoder.completed, "chains": decoder.chains}
        vars(self).update(vars(decoder), **own)
        self._decoder, self._once = decoder, once

    def viterbi(self, source: Source, permitted: Mask | None = None) -> Ints:
        """Find the most probable labels; see `Decoder`."""
        labels = self._decoder.viterbi(source, permitted)
        self._correct(labels, "viterbi", source, permitted)
        return labels

    def decode(
        self, source: Source, method: str, permitted: Mask | None = None
    ) -> tuple[Ints, Floats]:
        """Find labels and their marginal probabilities; see `Decoder`."""
        labels, probabilities = self._decoder.decode(source, method, permitted)
        if self._correct(labels, method, source, permitted):
            probabilities = self.marginals(source, permitted)[np.arange(len(labels)), labels]
        return labels, probabilities

    def nbest(
        self, source: Source, n: int, permitted: Mask | None = None
    ) -> list[tuple[Ints, Floats]]:
        """Find the n most probable paths of each sequence; see `Decoder`."""
        found = self._decoder.nbest(source, n, permitted)
        for s, (labels, _) in enumerate(found):
            if any(map(self._once.repeats, paths := labels.tolist())):
                chain = self._chain(s, "", source, permitted)
                paths = self._once.relax(chain, paths, n=n)
                log_p = [*map(chain.log_probability, paths)]
                found[s] = np.array(paths, np.int32), np.minimum.accumulate(log_p)
        return found

    def _correct(self, labels: Ints, method: str, source: Source, permitted: Mask | None) -> bool:
        """Replace labels [N] of sequences that repeat a name. RETURNS: whether there are any."""
        ids, is_wrong = labels.tolist(), False
        for s, (begin, end) in enumerate(pairwise(source.offsets.tolist())):
            if self._once.repeats(path := ids[begin:end]):
                chain, is_wrong = self._chain(s, method, source, permitted), True
                [labels[begin:end]] = self._once.relax(chain, [path])
        return is_wrong

    def _chain(self, s: int, method: str, source: Source, permitted: Mask | None) -> Posterior:
        """Return sequence s; with the scores by which a method chooses labels, if it is given."""
        begin, end = source.offsets[[s, s + 1]]
        mask = None if permitted is None else permitted[begin:end]
        chains = self.chains(source.sequences(s, s + 1), mask)
        if method == "posterior" and not self._is_empty:
            chains = posterior_chains(chains, Posterior(chains).marginals())
        elif method and self._bias is not None:
            chains.scores += self._bias
        return Posterior(chains)
