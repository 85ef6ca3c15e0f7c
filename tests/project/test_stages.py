"""Windows of letters are admitted in stages, and each stage ends at the minimum of its weights."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
from lavergne.experiments import EXPERIMENTS
from lavergne.stages import Stages, WindowReader, admits, begin_limited
from spacy.tokens import Doc

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.coordinates import Coordinates
from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus
from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.model.model import CRFModel, WeightTable
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.solver import optimality
from spacy_sparsecrf.crf.training.training import NOT_POLISHED
from spacy_sparsecrf.pipeline.features.templates import parse_templates

from ..reference import random_problem
from ..support.toy import ENGLISH

FAMILIES = {
    name: EXPERIMENTS[f"phonemes-5grm{name}-owlqn-by-labels"].stages for name in ("", "+", "++")
}
N_LABELS = 3
# The kind of a feature, the offsets and letters of its window, and a label.
Pairs = set[tuple[str, frozenset[tuple[int, str]], int]]


def words_of(seed: int, n: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abc"), length)) for length in rng.integers(2, 6, n)]


def window_at(template: Any, word: str, t: int) -> frozenset[tuple[int, str]]:
    """Return the offsets and letters of a window; outside of the word, numbers for letters."""
    n = len(word)
    letters = {i: word[i] if 0 <= i < n else f"{i if i < 0 else i - n + 1}" for i in range(-9, 18)}
    offsets = [part.offset for part in template.attributes]
    return frozenset((offset, letters[t + offset]) for offset in offsets)


class Case:
    """Words as sequences of letters, read in stages, and the windows of each hash."""

    def __init__(self, family: str, words: list[str], begin: Any, *, by_label: bool) -> None:
        self.reader, builder = WindowReader(FAMILIES[family]), CorpusBuilder()
        self.windows, self.names = self.reader.featurizer.parsed, {}
        for word in words:
            observations = self.reader([Doc(ENGLISH, words=list(word))], "docs")
            gold = [(ord(letter) + (i > 0)) % N_LABELS for i, letter in enumerate(word)]
            builder.add(observations, np.array(gold, np.int32))
            for t, window in itertools.product(range(len(word)), range(len(self.windows))):
                name = window_at(self.windows[window], word, t)
                self.names[int(observations.hashes[t, window])] = name
        self.corpus = builder.build()
        self.stages = Stages(self.corpus, N_LABELS, self.reader, begin, by_label=by_label)

    def model(self, seed: int) -> CRFModel:
        """Return a model with random weights."""
        rng, tables = np.random.default_rng(seed), []
        for keys in (self.corpus.unigram_keys, self.corpus.bigram_keys):
            active = np.flatnonzero(rng.random(len(keys) * N_LABELS) < 0.2)
            feature, label = np.divmod(active, N_LABELS)
            previous = rng.integers(N_LABELS, size=len(active)) if tables else None
            ones = np.ones(len(active))
            tables.append(WeightTable.of(keys[feature], previous, label, ones))
        return CRFModel(list("xyz"), "float64", *tables)

    def named(self, corpus: EncodedCorpus, limited: np.ndarray) -> Pairs:
        """Return the pairs of a feature and a label that may have weights."""
        keys = [("u", key) for key in corpus.unigram_keys.tolist()]
        keys += [("b", key) for key in corpus.bigram_keys.tolist()]
        labels: dict[int, list[int]] = {}
        for feature, label in zip(*np.divmod(limited, N_LABELS), strict=True):
            labels.setdefault(int(feature), []).append(int(label))
        return {
            (kind, self.names[key], label)
            for i, (kind, key) in enumerate(keys)
            for label in labels.get(i, range(N_LABELS))
        }


def reference(case: Case, family: str, stage: int, model: CRFModel, by_label: bool) -> Pairs:
    """Return the pairs that a stage adds, by the letters of windows."""
    stage_of: dict[frozenset[int], int] = {}
    for s, texts in enumerate(FAMILIES[family]):
        for template in parse_templates(texts):
            stage_of.setdefault(frozenset(part.offset for part in template.attributes), s)
    active = {
        (case.names[key], label)
        for table in (model.unigram, model.bigram)
        for (key, _, label), _ in table.entries()
    }
    added, every = set(), case.named(case.corpus, np.empty(0, np.int64))
    for kind, window, label in every:
        if stage_of[frozenset(offset for offset, _ in window)] != stage:
            continue
        inside = [
            frozenset(pair for pair in window if pair[0] in offsets)
            for offsets, earlier in stage_of.items()
            if offsets and earlier < stage and offsets <= {offset for offset, _ in window}
        ]
        parts = [part for part in inside if not any(part < other for other in inside)]
        labels = [label] if by_label else range(N_LABELS)
        if all(any((part, y) in active for y in labels) for part in parts):
            added.add((kind, window, label))
    return added


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("by_label", [False, True])
def test_a_stage_admits_windows_whose_largest_parts_are_active(family, by_label):
    def begin(corpus, *, limited, init):
        return corpus, limited

    case = Case(family, words_of(1, 12), begin, by_label=by_label)
    expected: Pairs = set()
    for stage in range(3):
        model = case.model(stage) if stage else CRFModel(list("xyz"))
        if stage:
            assert not case.stages.is_last
            case.stages.advance(model)
        expected |= reference(case, family, stage, model, by_label)
        assert case.named(*case.stages.training(None)) == expected
    assert case.stages.is_last
    assert len(expected) < len(case.named(case.corpus, np.empty(0, np.int64)))


@pytest.mark.parametrize("by_label", [False, True])
def test_each_stage_ends_at_the_minimum_of_the_admitted_weights(by_label):
    begin = partial(
        begin_limited,
        labels=list("xyz"),
        solver=OWLQN(tolerance=1e-7, window=0.0),
        l1=0.5,
        l2=0.1,
        n_threads=1,
    )
    case, model = Case("+", words_of(2, 30), begin, by_label=by_label), None
    for _ in range(case.reader.n_stages):
        if model is not None:
            case.stages.advance(model)
        training = case.stages.training(model)
        while not training.step().converged:
            pass
        model = training.model(NOT_POLISHED, "float64")
        coordinates = admitted_coordinates(case)
        assert case.stages.n_admitted == len(coordinates)
        # The same minimum, on only these weights and without screening.
        working = ChainLoss(case.corpus, N_LABELS, Workers(1)).restrict(coordinates)
        solver, penalty = OWLQN(tolerance=1e-6), ElasticNet(0.5, 0.1)
        state = solver.start(working, penalty, np.zeros(len(coordinates)))
        while not solver.step(working, penalty, state).converged:
            pass
        assert optimality(penalty, state.theta, state.gradient) <= 1e-5
        assert training.objective == pytest.approx(state.value, rel=1e-9)
    assert len(coordinates) < case.corpus.n_potential(N_LABELS)


def test_listed_labels_of_a_feature_are_the_only_ones_with_weights():
    corpus = random_problem(3, 4, [4, 3])[0].corpus
    coding = Coordinates.of(corpus, 4)
    allowed = {0: [1, 3], 3: [0], coding.n_unigram + 2: [2, 3]}
    listed = np.array([feature * 4 + y for feature, own in allowed.items() for y in own])
    own = np.arange(corpus.n_potential(4))
    pairs = zip(*coding.locate(own), strict=True)
    expected = [y % 4 in allowed.get(f, range(4)) for f, y in pairs]
    assert admits(coding, listed, own).tolist() == expected


def admitted_coordinates(case: Case) -> np.ndarray:
    """Return the coordinates of the admitted weights, one by one."""
    rows, n_unigram = (
        case.stages._admitted[case.stages._row_of_feature],
        len(case.corpus.unigram_keys),
    )
    n_previous, coordinates = N_LABELS + int(case.corpus.start_label), []
    for feature, label in zip(*np.nonzero(rows), strict=True):
        if feature < n_unigram:
            coordinates.append(feature * N_LABELS + label)
            continue
        block = n_unigram * N_LABELS + (feature - n_unigram) * n_previous * N_LABELS
        coordinates += [block + previous * N_LABELS + label for previous in range(n_previous)]
    return np.array(sorted(coordinates))
