"""The parts of SAG: steps made up for, the forward recursion alone, draws in proportion."""

import numpy as np
import pytest

from spacy_sparsecrf.solvers.sag.sag_updates import (
    Pending,
    Steps,
    draw_leaf,
    repeat_steps,
    set_leaf,
    set_leaves,
)

from ..kernels.kernel_functions import compiled


@pytest.mark.parametrize("l1", [0.0, 0.3])
@pytest.mark.parametrize("decay", [0.0, 0.2])
def test_missed_steps_are_made_up_for(l1, decay):
    rng = np.random.default_rng(73)
    n_steps, n_weights = 40, 3000
    alphas, counts = rng.uniform(0.05, 0.6, n_steps), rng.integers(1, 9, n_steps)
    shrunk, moved = np.zeros(n_steps + 1), np.zeros(n_steps + 1)
    for i, (alpha, m) in enumerate(zip(alphas, counts, strict=True)):
        shrunk[i + 1] = shrunk[i] + np.log1p(-alpha * decay)
        moved[i + 1] = (1.0 - alpha * decay) * moved[i] + alpha / m
    theta = rng.normal(size=n_weights) * (rng.random(n_weights) < 0.8)
    total = 0.8 * rng.normal(size=n_weights)
    expected, first, last = theta.copy(), 7, 33
    crossed = np.zeros(n_weights, dtype=bool)
    for alpha, m in zip(alphas[first:last], counts[first:last], strict=True):
        drawn = (1.0 - alpha * decay) * expected - alpha / m * total
        before = expected
        expected = np.sign(drawn) * np.maximum(np.abs(drawn) - alpha / m * l1, 0.0)
        crossed |= expected * before <= 0.0
    pending = Pending(theta, total, l1, Steps(np.array([first]), shrunk, moved))
    compiled(repeat_steps)(0, n_weights, first, last, pending)
    np.testing.assert_allclose(theta, expected, atol=1e-12)
    assert crossed.any() and not crossed.all()
    if l1 > 0.0:
        np.testing.assert_array_equal(theta == 0.0, expected == 0.0)
        assert 0 < np.count_nonzero(theta) < n_weights


def test_leaves_are_drawn_in_proportion():
    rng = np.random.default_rng(75)
    weights = rng.exponential(size=11)
    weights[[3, 10]] = 0.0
    sums, tops = np.zeros(32), np.zeros(32)
    set_leaves(sums, tops, rng.exponential(size=11))
    for leaf in rng.permutation(11):
        compiled(set_leaf)(sums, tops, leaf, weights[leaf])
    fresh = np.zeros(32), np.zeros(32)
    set_leaves(*fresh, weights)
    np.testing.assert_allclose(sums, fresh[0], rtol=1e-14)
    np.testing.assert_array_equal(tops, fresh[1])
    assert sums[1] == pytest.approx(weights.sum(), rel=1e-14)
    assert tops[1] == weights.max()
    # At the numbers of a fine grid, each as often as its share to within one.
    n = 100_000
    drawn = [compiled(draw_leaf)(sums, (i + 0.5) / n) for i in range(n)]
    counts = np.bincount(drawn, minlength=11)
    np.testing.assert_allclose(counts, n * weights / weights.sum(), atol=1.001)
    assert compiled(draw_leaf)(sums, np.nextafter(1.0, 0.0)) == 9
