"""Forward-backward in waves: the same as one sequence after another, in another order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.loss.lattice import Shard
from spacy_sparsecrf.loss.workspace import LIMITS, Limits, interleaved_order, sequential_order
from spacy_sparsecrf.parallel import cut

from .layouts import LAYOUTS
from .test_contexts import evaluate, restricted, sparse_problem

LENGTHS = [5, 3, 1, 6, 4, 2, 5, 5]


def in_waves_of(together: int, limits: Limits = LIMITS, n_chunks: int = 1) -> Limits:
    """Have waves of so many sequences; of one, and there are none."""
    return limits._replace(together=together, n_chunks=n_chunks)


def shard_of(lengths: list[int]) -> Shard:
    offsets = np.cumsum([0, *lengths])
    begins = np.zeros(offsets[-1], bool)
    begins[offsets[:-1]] = True
    return Shard(0, len(lengths), 0, int(offsets[-1]), offsets, begins)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=20),
    st.integers(1, 5),
    st.integers(1, 25),
    st.data(),
)
def test_waves_are_an_order_in_which_tokens_follow_their_predecessors(
    lengths, n_chunks, together, data
):
    shard = shard_of(lengths)
    n = shard.end
    matrix_of = np.array(data.draw(st.lists(st.integers(0, 3), min_size=6, max_size=6)), np.int32)
    context = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), np.int32)
    chunks = cut(np.diff(shard.offsets), n_chunks)
    batch = interleaved_order(shard, chunks, together, context, matrix_of)
    order = batch.order
    assert batch.together == together
    runs = [(i, min(i + together, b)) for a, b in chunks for i in range(a, b, together)]
    # Tokens count from the first of their run.
    first_of_run = np.concatenate(
        [np.full(shard.offsets[b] - shard.offsets[a], shard.offsets[a]) for a, b in runs]
    )
    tokens = np.where(order < 0, ~order, order) + first_of_run
    assert sorted(tokens) == list(range(n))
    assert (order < 0).tolist() == shard.begins[tokens].tolist()
    place = np.argsort(tokens)
    assert all(place[t - 1] < place[t] for t in range(n) if not shard.begins[t])
    for first, last in runs:
        begin, end = shard.offsets[first], shard.offsets[last]
        assert sorted(tokens[begin:end]) == list(range(begin, end))
        position = tokens[begin:end] - np.repeat(shard.offsets[:-1], lengths)[tokens[begin:end]]
        for i in range(position.max() + 1):
            wave = matrix_of[context[tokens[begin:end][position == i]]]
            assert np.all(np.diff(wave) >= 0)


def test_in_sequence_tokens_stay_where_they_are():
    assert sequential_order(shard_of([2, 1, 3])).order.tolist() == [-1, 1, -1, -1, 1, 2]


@pytest.mark.parametrize("n_labels", range(1, 41))
@pytest.mark.parametrize(("precision", "atol"), [("float64", 1e-12), ("float32", 1e-4)])
def test_waves_change_nothing_at_every_padding(n_labels, precision, atol):
    options = {"n_bigram": 3, "missing": 0.1, "weighted": True}
    problem = sparse_problem(n_labels, n_labels, LENGTHS, **options)
    for limits in LAYOUTS.values():
        waves, alone = in_waves_of(99, limits), in_waves_of(1, limits)
        value, gradient = evaluate(problem, precision=precision, limits=waves)
        other, other_gradient = evaluate(problem, limits=alone)
        assert value == pytest.approx(other, rel=atol, abs=atol)
        np.testing.assert_allclose(gradient, other_gradient, atol=atol * len(gradient))


@pytest.mark.parametrize("scale", [-30.0, 30.0])
def test_waves_rewrite_the_matrices_of_extreme_entries(scale):
    problem = sparse_problem(63, 3, LENGTHS, n_bigram=3)
    problem.lam[-1, 1] = scale
    value, gradient = evaluate(problem, limits=in_waves_of(1))
    waves = in_waves_of(99, LAYOUTS["frequent"])
    other, other_gradient = evaluate(problem, limits=waves)
    assert other == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-9, atol=1e-11)


def test_whole_chunks_go_together_where_matrices_are_large():
    for n_labels, together in ((10, LIMITS.together), (120, 1 + 40 * len(LENGTHS))):
        problem = sparse_problem(73, n_labels, LENGTHS * 40, n_bigram=1, start_label=False)
        assert restricted(problem).pairs.batch_orders[0].together == together
