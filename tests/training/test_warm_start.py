"""Warm starts on sequences of very different lengths, and warm starts that diverge."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.crf.loss import examples
from spacy_sparsecrf.crf.solvers import warm_start
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.sag.sag import SAG
from spacy_sparsecrf.crf.solvers.warm_start import WarmStart
from spacy_sparsecrf.errors import SparseCRFWarning

from ..support.runs import training_of


def corpus_of(lengths: list[int]) -> EncodedCorpus:
    """Return sequences of words with four features, whose labels mostly follow from the word."""
    rng, n, columns = np.random.default_rng(5), sum(lengths), np.arange(4, dtype=np.int32)
    words = rng.zipf(1.3, n) % 500
    parts = words, 1000 + np.roll(words, -1), 2000 + words % 7, np.full(n, 3000)
    labels = np.where(rng.random(n) < 0.8, words % 3, rng.integers(0, 3, n)).astype(np.int32)
    observations = Observations(
        np.stack(parts, 1).astype(np.uint64) + np.uint64(1),
        np.cumsum([0, *lengths]),
        columns,
        columns[3:],
    )
    builder = CorpusBuilder()
    builder.add(observations, labels)
    return builder.build()


def first_objective(corpus: EncodedCorpus, **options: Any) -> Any:
    training = training_of(corpus, list("abc"), OWLQN(), l1=0.2, l2=0.3, n_threads=1, **options)
    return training.step().objective


@pytest.mark.parametrize(
    "lengths",
    [[9000], [40_000], [6000] * 3, [15] * 200 + [12_000], [9000] + [1] * 30],
    ids=["one", "longer", "three", "among short", "among single tokens"],
)
def test_a_warm_start_bears_very_long_sequences(lengths):
    """A fifth of the labels is at random, so that four passes cannot lower it much more."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", SparseCRFWarning)
        objective = first_objective(corpus_of(lengths))
    assert objective < 0.9 * sum(lengths) * np.log(3)


def test_sequences_of_ordinary_length_have_the_whole_step(monkeypatch):
    corpus = corpus_of([400, 15, 2000])
    found = first_objective(corpus)
    monkeypatch.setattr(examples, "LONG", 10**9)
    assert first_objective(corpus) == found
    monkeypatch.setattr(examples, "LONG", 1999)
    assert first_objective(corpus) != found


def test_parts_of_a_large_corpus_give_the_same_weights_with_any_threads(monkeypatch):
    corpus = corpus_of([5, 9, 2] * 400)

    def first(n_threads: int) -> Any:
        options = {"l1": 0.2, "l2": 0.3, "n_threads": n_threads}
        training = training_of(corpus, list("abc"), OWLQN(), **options)
        return training.step().objective, training.model().to_bytes()

    found = first(1)
    assert first(2) == found and first(3) == found
    monkeypatch.setattr(examples, "_WORTH_PARTS", 10**9)
    whole = first(2)
    assert whole[1] != found[1] and found[0] == pytest.approx(whole[0], rel=0.1)


def test_a_step_is_calibrated_on_few_tokens_of_long_sequences(monkeypatch):
    sizes = []
    calibrate = warm_start.calibrate
    monkeypatch.setattr(
        warm_start, "calibrate", lambda *a: sizes.append(len(a[0])) or calibrate(*a)
    )
    first_objective(corpus_of([3000] * 8))
    first_objective(corpus_of([2] * 8))
    assert sizes == [4, 8]


def test_a_step_is_chosen_by_sequences_before_they_are_learnt(monkeypatch):
    """Labels at random, each of words of their own: whoever learns them by heart is worse."""
    steps, calibrate = [], warm_start.calibrate

    def both(sample: Any, loss_of: Any) -> Any:
        chosen = calibrate(sample, loss_of)
        steps.extend([chosen[0], calibrate(sample, loss_of.__self__.loss_after)[0]])
        return chosen

    monkeypatch.setattr(warm_start, "calibrate", both)
    corpus = corpus_of([5] * 60)
    corpus.labels[:] = np.random.default_rng(1).integers(0, 3, len(corpus.labels))
    first_objective(corpus)
    assert steps[0] < steps[1]


def test_rows_after_the_first_may_be_shorter():
    corpus, options = corpus_of([9, 12, 4] * 5), {"l1": 0.2, "l2": 0.3, "n_threads": 1}
    start = WarmStart(epochs=0)
    runs = [
        training_of(corpus, list("abc"), OWLQN(**own), warm_start=start, **options)
        for own in ({"inner_iterations": 6, "later_iterations": 2}, {"inner_iterations": 6})
    ]
    steps = [[run.step().passes for _ in range(2)] for run in runs]
    assert steps[0][0] == steps[1][0] >= 6 and steps[0][1] < 6 <= steps[1][1]


@dataclass(frozen=True, kw_only=True)
class Diverged(WarmStart):
    """Ends far away."""

    factor: float = 1.0

    def __call__(self, loss: Any, penalty: Any, caution: float = 1.0) -> Any:
        weights = super().__call__(loss, penalty, caution)
        return weights._replace(values=self.factor * weights.values)


@pytest.mark.parametrize("factor", [-1.0, 1e4, 1e300, np.nan])
@pytest.mark.parametrize("solver", [OWLQN(), SAG()])
@pytest.mark.parametrize("evaluated", [True, False])
def test_a_warm_start_above_zero_weights_is_dropped(factor, solver, evaluated):
    corpus, options = corpus_of([9, 12, 4] * 5), {"l1": 0.2, "l2": 0.3, "n_threads": 1}
    start = Diverged(factor=factor, epochs=2, evaluated=evaluated)
    training = training_of(corpus, list("abc"), solver, warm_start=start, **options)
    with pytest.warns(SparseCRFWarning, match="SCW341.*above 137.327 of zero"):
        first = training.step()
    cold = training_of(corpus, list("abc"), solver, warm_start=WarmStart(epochs=0), **options)
    if evaluated:
        assert first.objective == pytest.approx(125 * np.log(3)) and first.passes == 2
        first = training.step()
    assert first.objective == cold.step().objective


def test_a_prior_is_the_zero_of_its_warm_start():
    """Weights that improve on zero weights, but not on the prior, are dropped."""
    corpus = corpus_of([9, 12, 4] * 5)
    options = {"l1": 0.2, "l2": 0.3, "n_threads": 1}
    prior = training_of(corpus, list("abc"), OWLQN(), **options)
    for _ in range(5):
        prior.step()
    start = Diverged(factor=-100.0, epochs=2)
    there = training_of(
        corpus, list("abc"), OWLQN(), prior=prior.model(), warm_start=start, **options
    )
    with pytest.warns(SparseCRFWarning, match="SCW341"):
        there.step()
    assert there.model().n_active == prior.model().n_active
