"""Feature selection in stages, on windows of letters: Lavergne, Cappé & Yvon (2010), section 5.4.

Each stage adds longer windows. It *admits* a window if its *parts*, the largest windows of earlier
stages inside it, are all active: if weights of theirs, for labels or label pairs, are not zero.
Other windows never get weights. A finer rule admits a window only with the labels for which all of
its parts are active. Each stage starts from the weights of the one before.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_sparsecrf.crf.corpus.coordinates import Coordinates
from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.crf.corpus.numbering import RowIndex, find_ascending, find_keys
from spacy_sparsecrf.crf.corpus.transform import reduced, with_distinct_contexts
from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.protocols import Loss
from spacy_sparsecrf.crf.loss.wrappers import Limited
from spacy_sparsecrf.crf.model.model import CRFModel, WeightTable
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.training.training import CHAIN, Problem, Training
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.pipeline.features.templates import Template, parse_templates


class WindowReader:
    """Hashes the windows of Docs as the featurizer of the last stage, and records their parts.

    families: the templates of each stage, each with those of the stages before. A template, which
    has one column of hashes, is of the first stage that has it.
    """

    def __init__(self, families: Sequence[Sequence[str]]) -> None:
        self.featurizer = Featurizer(families[-1])
        windows, self.n_stages = self.featurizer.parsed, len(families)
        names = [{str(window) for window in parse_templates(family)} for family in families]
        self.stages = [
            next(stage for stage, known in enumerate(names) if str(window) in known)
            for window in windows
        ]
        self._parts = [parts_of(windows, self.stages, w) for w in range(len(windows))]
        self._rows = [RowIndex(1 + len(parts)) for parts in self._parts]

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Return the observations of Docs, as a featurizer does."""
        observations = self.featurizer(docs, sequences)
        for window, (parts, index) in enumerate(zip(self._parts, self._rows, strict=True)):
            rows = observations.hashes[:, [window, *parts]]
            index.add(rows[rows[:, 0] != 0])
        return observations

    def rows(self, stage: int) -> list[NDArray[np.uint64]]:
        """Return the windows of each template of a stage, and their parts: hashes [n, 1 + k]."""
        return [
            index.rows for index, own in zip(self._rows, self.stages, strict=True) if own == stage
        ]


def parts_of(windows: Sequence[Template], stages: Sequence[int], window: int) -> list[int]:
    """Return the positions of the largest windows of earlier stages inside a window."""
    letters = [frozenset(template.attributes) for template in windows]
    inside = [
        w
        for w, stage in enumerate(stages)
        if stage < stages[window] and letters[w] and letters[w] <= letters[window]
    ]
    return [w for w in inside if not any(letters[w] < letters[larger] for larger in inside)]


class Stages:
    """Admits the windows of a corpus, stage by stage.

    corpus: read by reader; by_label: whether windows are admitted with single labels; begin: begins
    a training run on a corpus, with limits of labels (see `admits`) and an initial model.
    number: of the stage, from 0.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        n_labels: int,
        reader: WindowReader,
        begin: Callable[..., Training],
        *,
        by_label: bool,
    ) -> None:
        self._corpus, self._reader, self._begin = corpus, reader, begin
        self._by_label, self.number = by_label, 0
        self._keys = np.union1d(corpus.unigram_keys, corpus.bigram_keys)
        features = np.concatenate((corpus.unigram_keys, corpus.bigram_keys))
        self._row_of_feature = find_keys(self._keys, features)
        # A row of labels for each window, and one for windows that the corpus lacks.
        self._admitted = np.zeros((len(self._keys) + 1, n_labels), np.bool_)
        self._admit(np.zeros_like(self._admitted))

    @property
    def is_last(self) -> bool:
        """Whether there is no later stage."""
        return self.number == self._reader.n_stages - 1

    def advance(self, model: CRFModel) -> None:
        """Begin the next stage; model: at the end of this one."""
        self.number += 1
        is_active = np.zeros_like(self._admitted)
        tables: tuple[WeightTable, ...] = model.unigram, model.bigram
        for table in tables:
            window = np.repeat(find_keys(self._keys, table.keys), np.diff(table.indptr))
            is_active[window, table.labels] = True
        self._admit(is_active if self._by_label else is_active.any(axis=1, keepdims=True))

    def _admit(self, is_active: NDArray[np.bool_]) -> None:
        """Admit windows of the stage with the labels for which all of their parts are active."""
        for hashes in self._reader.rows(self.number):
            # Windows that the corpus lacks have number -1, the last row.
            window, *parts = find_keys(self._keys, hashes.T.ravel()).reshape(hashes.T.shape)
            self._admitted[window] = np.logical_and.reduce(
                [is_active[part] for part in parts], initial=True
            )
        self._admitted[-1] = False

    def training(self, init: CRFModel | None) -> Training:
        """Begin the run of the stage, from a model."""
        admitted = self._admitted[self._row_of_feature]
        features = np.flatnonzero(admitted.any(axis=1))
        admitted = admitted[features]
        # Weights of the features that have some labels only, as feature * Y + y.
        feature, label = np.nonzero(admitted & ~admitted.all(axis=1, keepdims=True))
        return self._begin(
            with_distinct_contexts(reduced(self._corpus, features)),
            limited=feature * admitted.shape[1] + label,
            init=init,
        )

    @property
    def n_admitted(self) -> int:
        """Number of weights that the admitted windows may have."""
        n_labels, n_unigram = self._admitted.shape[1], len(self._corpus.unigram_keys)
        n_outcomes = self._admitted[self._row_of_feature].sum(axis=1)
        n_previous = n_labels + int(self._corpus.start_label)
        return int(n_outcomes[:n_unigram].sum() + n_outcomes[n_unigram:].sum() * n_previous)


def begin_limited(
    corpus: EncodedCorpus,
    labels: Sequence[str],
    *,
    limited: NDArray[np.int64],
    problem: Problem = CHAIN,
    **settings: Any,
) -> Training:
    """Begin a run in which some features have weights for some labels only.

    limited: see `admits`; problem: of a chain; settings: others of `Training`.
    """
    coding = Coordinates.of(corpus, len(labels))

    def make_loss(corpus: EncodedCorpus) -> Loss:
        loss = ChainLoss(corpus, len(labels), Workers(1), precision=problem.precision)
        return Limited(loss, partial(admits, coding, limited))

    return Training(corpus, labels, problem=problem, make_loss=make_loss, **settings)


def admits(
    coding: Coordinates, limited: NDArray[np.int64], coordinates: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which coordinates [n] may have weights if some features are limited: [n] bool.

    limited: [m] int64, ascending, feature * Y + y: features listed there have weights for these
    labels y only, with any previous label.
    """
    feature, _, label = coding.decode(coordinates)
    bounds = np.searchsorted(limited, feature * coding.n_labels)
    # A sentinel after the last one.
    is_free: NDArray[np.bool_] = np.append(limited, -1)[bounds] // coding.n_labels != feature
    return is_free | (find_ascending(limited, feature * coding.n_labels + label) >= 0)
