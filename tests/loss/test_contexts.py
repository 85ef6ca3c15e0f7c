"""The loss does not depend on matrices, corrections, interleaving or precision."""

import numpy as np
import pytest

from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.working import WorkingLoss
from spacy_sparsecrf.loss.workspace import LIMITS, Limits
from spacy_sparsecrf.parallel import Workers

from ..reference import Problem, random_problem
from .layouts import LAYOUTS

LENGTHS = [5, 3, 1, 6, 4, 2, 5, 5]


def in_waves_of(together: int, limits: Limits = LIMITS, n_chunks: int = 1) -> Limits:
    """Return limits with interleaved batches of so many sequences; 1 disables interleaving."""
    return limits._replace(together=together, n_chunks=n_chunks)


def sparse_problem(seed: int, n_labels: int, lengths: list[int], **options) -> Problem:
    """Draw a random problem, most of whose weights are zero."""
    problem, _ = random_problem(seed, n_labels, lengths, **options)
    rng = np.random.default_rng(seed)
    problem.theta[rng.random(len(problem.theta)) < 0.7] = 0.0
    return problem


def restricted(
    problem: Problem, precision: str = "float64", n_threads: int = 1, limits: Limits = LIMITS
) -> WorkingLoss:
    workers = Workers(n_threads)
    loss = ChainLoss(problem.corpus, problem.n_labels, workers, precision, limits=limits)
    return loss.restrict(np.flatnonzero(problem.theta))


def evaluate(problem: Problem, **options) -> tuple[float, np.ndarray]:
    theta = problem.theta[problem.theta != 0.0]
    return restricted(problem, **options).value_and_grad(theta)


def test_layouts_are_what_their_names_say():
    problem = sparse_problem(62, 4, [9] * 6, n_bigram=3)
    for layout, limits in LAYOUTS.items():
        contexts = restricted(problem, limits=limits).pairs.contexts
        if layout == "matrices":
            assert len(contexts.arrays.corr_place) == 0
            assert len(contexts.matrix_blocks) == len(contexts.arrays.matrix_of)
        elif layout == "frequent":
            assert len(contexts.arrays.corr_place) > 0
            assert 1 < len(contexts.matrix_blocks) < len(contexts.arrays.matrix_of)
        else:
            assert contexts.arrays.constant.all()
            assert len(contexts.arrays.corr_place) > 0


@pytest.mark.parametrize("together", [1, 99])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scale", [-30.0, 30.0])
def test_extreme_entries_lose_no_digits(scale, layout, together):
    problem = sparse_problem(63, 3, LENGTHS, n_bigram=3)
    # The last bigram feature is always active; its weights of one previous label are extreme.
    problem.lam[-1, 1] = scale
    value, gradient = evaluate(problem, limits=in_waves_of(1, LAYOUTS["matrices"]))
    other, other_gradient = evaluate(problem, limits=in_waves_of(together, LAYOUTS[layout]))
    assert other == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-9, atol=1e-11)


def test_matrices_keep_to_their_memory():
    problem, _ = random_problem(67, 6, [50] * 4, n_bigram=3)
    limits = Limits(matrix_bytes=1 << 10)
    contexts = restricted(problem, limits=limits).pairs.contexts
    assert len(contexts.matrix_blocks) <= 2
    value, _ = evaluate(problem, limits=limits)
    assert value == pytest.approx(evaluate(problem)[0], rel=1e-12)


# All remainders modulo 8, to which labels are padded.
@pytest.mark.parametrize("n_labels", [*range(1, 18), 23, 24, 25, 31, 32, 33, 39, 40])
@pytest.mark.parametrize(("precision", "atol"), [("float64", 1e-12), ("float32", 1e-4)])
def test_neither_layouts_nor_waves_change_anything_at_every_padding(n_labels, precision, atol):
    options = {"n_bigram": 3, "missing": 0.1, "weighted": True}
    problem = sparse_problem(n_labels, n_labels, [*LENGTHS, 30, 17], **options)
    value, gradient = evaluate(problem, limits=in_waves_of(1, LAYOUTS["matrices"]))
    for limits in LAYOUTS.values():
        for together in (1, 99):
            waves = in_waves_of(together, limits)
            other, other_gradient = evaluate(problem, precision=precision, limits=waves)
            assert other == pytest.approx(value, rel=atol, abs=atol)
            np.testing.assert_allclose(other_gradient, gradient, atol=atol * len(gradient))
