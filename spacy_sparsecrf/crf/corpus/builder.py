"""Collection of a corpus from batches of observations."""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from ...errors import Errors, SparseCRFError
from .encoded import MISSING, EncodedCorpus, Observations
from .index import NO_INDEX, ConjoinedRows, CorpusPart, FeatureCounts, build_index
from .numbering import Array, Floats, Hashes, Ints, RowIndex, grown
from .ragged import pointers

# Arrays that arrive in batches, with provisional numbers, and their dtypes.
_ARRIVING: dict[str, type[np.generic]] = {
    "offsets": np.int64,
    "n_features": np.int32,
    "features": np.int32,
    "families": np.uint8,
    "context": np.int32,
    "labels": np.int32,
    "weights": np.float64,
    "values": np.float32,
}


class CorpusBuilder:
    """Collects batches of observations with their gold labels into one `EncodedCorpus`.

    Features and sets of bigram features get provisional numbers as they arrive; `build`
    assigns the final numbers.

    features, rows: distinct features conjoined with the label, and distinct sets of bigram
    features, None before the first batch; value_keys: hashes of real-valued features; start_label:
    see `EncodedCorpus`.
    """

    def __init__(self) -> None:
        self._pieces: defaultdict[str, list[Array]] = defaultdict(list)
        self._n_tokens = 0
        self.value_keys: Hashes = np.empty(0, np.uint64)
        self.features = RowIndex(1)
        self.rows: RowIndex | None = None
        self.start_label = True
        self._append(offsets=np.zeros(1))

    def add(self, observations: Observations, labels: Ints, weights: Floats | None = None) -> None:
        """Append a batch.

        observations: the features of N tokens in S sequences.
        labels: [N] int32, gold label ids, below 0 as in `EncodedCorpus`.
        weights: [S] float64, weight of each sequence's log-likelihood; default 1.
        """
        if observations.n_tokens and len(observations.value_keys):
            self._append(values=observations.values)
            self.value_keys = observations.value_keys
        columns, bigrams = observations.unigram_columns, observations.bigram_hashes
        families = grown(observations.families, observations.hashes.shape[1])[columns]
        # Features of one family are next to each other.
        order = np.argsort(families, kind="stable")
        hashes = np.take(observations.hashes, columns[order], axis=1)
        present = hashes != 0
        if self.rows is None:
            self.rows = RowIndex(bigrams.shape[1])
        self.start_label = observations.start_label
        self._append(
            offsets=self._n_tokens + observations.offsets[1:],
            n_features=present.sum(axis=1),
            features=self.features.add(hashes[present][:, None]),
            families=np.broadcast_to(families[order], present.shape)[present],
            context=self.rows.add(bigrams),
            labels=np.asarray(labels),
            weights=np.ones(len(observations.offsets) - 1) if weights is None else weights,
        )
        self._n_tokens += observations.n_tokens

    def _append(self, **arrays: Array) -> None:
        """Append a piece to each array."""
        for name, array in arrays.items():
            self._pieces[name].append(np.asarray(array, _ARRIVING[name]))

    def arrived(self, name: str) -> Array:
        """Return an array named in _ARRIVING, with provisional numbers."""
        return np.concatenate(self._pieces[name] or [np.zeros(0, _ARRIVING[name])])

    def relabel(self, final: Ints) -> int:
        """Replace labels by the numbers that they index. RETURNS: the number of missing labels."""
        self._pieces["labels"] = [np.take(final, self.arrived("labels"))]
        return int((self._pieces["labels"][0] == MISSING).sum())

    def part(self) -> CorpusPart:
        """Return what has arrived as a part of a corpus, without real values."""
        keys, counts, arrived = self.features.rows[:, 0], self.features.counts, self.arrived
        rows = RowIndex(0) if self.rows is None else self.rows
        sequences = EncodedCorpus(
            offsets=arrived("offsets"),
            labels=arrived("labels"),
            weights=arrived("weights"),
            uni_indptr=pointers(arrived("n_features")),
            uni_indices=arrived("features"),
            context=arrived("context"),
            start_label=self.start_label,
            **NO_INDEX._asdict(),
        )
        families = np.zeros(len(keys), np.uint8)
        families[arrived("features")] = arrived("families")
        features = FeatureCounts(keys, counts, np.arange(len(keys)), families)
        return CorpusPart(sequences, features, ConjoinedRows(rows.rows, rows.counts))

    def build(self, min_freq: int = 1) -> EncodedCorpus:
        """Number the features and contexts of all batches.

        min_freq: features at fewer tokens are removed, see `without_rare`; real values are not.
        RETURNS: the corpus, without sets; it does not depend on the division into batches.
        RAISES: SparseCRFError if no feature is left.
        """
        if self.rows is None:
            raise SparseCRFError(Errors.SC302)
        part, value_keys = self.part(), self.value_keys
        index, number, contexts = build_index(part.features, part.rows, min_freq, len(value_keys))
        corpus, n = part.encoded(index, number, contexts), len(index.unigram_keys)
        if not len(value_keys):
            return corpus
        # Real values come after the features of tokens.
        return replace(
            corpus,
            unigram_keys=np.concatenate((index.unigram_keys, value_keys)),
            values=self.arrived("values"),
            value_features=np.arange(n, n + len(value_keys)),
        )
