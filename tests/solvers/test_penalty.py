"""The elastic net: its prox is optimal on a grid; the certificate is zero at fixed points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.errors import SparseCRFError

PENALTIES = [ElasticNet(0.5, 0.0), ElasticNet(0.0, 2.0), ElasticNet(0.5, 0.1), ElasticNet(0, 0)]


@pytest.mark.parametrize("penalty", PENALTIES)
def test_value_is_the_sum_of_both_norms(penalty):
    theta = np.array([1.0, -2.0, 0.0, 0.5])
    assert penalty.value(theta) == pytest.approx(penalty.l1 * 3.5 + penalty.l2 * 0.5 * 5.25)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("point", [-3.0, -0.2, 0.0, 0.3, 1.7])
def test_prox_beats_a_grid(penalty, point):
    step = 0.7

    def objective(w):
        return (w - point) ** 2 / (2 * step) + penalty.l1 * abs(w) + penalty.l2 / 2 * w**2

    best = penalty.prox(np.array([point]), step)[0]
    assert all(objective(best) <= objective(w) + 1e-12 for w in np.linspace(-4, 4, 801))


@given(st.sampled_from(PENALTIES), st.lists(st.floats(-5, 5), min_size=1, max_size=5))
def test_distance_is_zero_exactly_at_fixed_points_of_prox(penalty, values):
    z = np.array(values)
    theta = penalty.prox(z, 1.0)
    # theta minimises |w - z|^2 / 2 + penalty: the gradient of that loss at theta is theta - z.
    assert penalty.distance(theta, theta - z) == pytest.approx(0.0, abs=1e-12)
    moved = theta + 0.25
    assert penalty.distance(moved, moved - z) > 0.2


def test_pseudo_gradient_at_zero_points_out_of_the_dead_zone():
    penalty = ElasticNet(0.5, 0.0)
    got = penalty.pseudo_gradient(np.zeros(3), np.array([0.4, 0.7, -0.9]))
    np.testing.assert_allclose(got, [0.0, 0.2, -0.4])


def test_the_gap_is_that_of_the_dual():
    theta, gradient = np.array([1.0, -2.0]), np.array([0.3, 0.1])
    for l2, excess, gap in ((1.0, 3.0, 0.1 + 1.5 + 2.5 + 1.5), (0.5, 0.0, 0.1 + 1.5 + 1.25)):
        assert ElasticNet(0.5, l2).gap(theta, gradient, excess) == pytest.approx(gap)
    assert ElasticNet(0.5, 0.0).gap(theta, gradient, 1e-9) == np.inf
    assert ElasticNet(0.5, 0.0).gap(theta, gradient, 0.0) == pytest.approx(1.6)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("key", ["l1", "l2"])
def test_bad_penalties_are_refused_by_name(key, value):
    with pytest.raises(SparseCRFError, match=rf"SC303.*{key} = "):
        ElasticNet(**{"l1": 0.5, "l2": 0.0, key: value})
