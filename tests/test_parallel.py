"""Threads over chunks: their results, and their state after a failure."""

import sys
import threading

import numpy as np
import pytest

from spacy_sparsecrf.crf.parallel import Workers, cut
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN

from .reference import random_problem
from .support.runs import training_of

CHUNKS = [(i, i + 1) for i in range(50)]


@pytest.mark.parametrize("cost", [[], [5], [0, 0, 0], [1, 100, 1, 1, 1, 50], list(range(100))])
@pytest.mark.parametrize("n_chunks", [1, 2, 7])
def test_chunks_cover_the_items_once_in_order(cost, n_chunks):
    chunks = cut(np.array(cost, dtype=np.int64), n_chunks)
    assert len(chunks) <= n_chunks
    assert [i for first, last in chunks for i in range(first, last)] == list(range(len(cost)))
    assert all(first < last for first, last in chunks)


@pytest.mark.parametrize("n_threads", [1, 2, 5, 10**9])
def test_results_come_in_the_order_of_chunks(n_threads):
    found = Workers(n_threads).map(lambda first, last, by: first * by + last, CHUNKS, 10)
    assert found == [first * 10 + last for first, last in CHUNKS]


def test_each_chunk_is_taken_once_while_threads_switch():
    """A thread switch may occur within any chunk, and between any operations on shared state."""
    before, taken = sys.getswitchinterval(), [0] * 5_000
    sys.setswitchinterval(1e-6)

    def count(first: int, last: int) -> int:
        taken[first] += 1
        return first

    chunks = [(i, i + 1) for i in range(len(taken))]
    try:
        assert Workers(8).map(count, chunks) == [*range(len(taken))]
    finally:
        sys.setswitchinterval(before)
    assert set(taken) == {1}


def test_all_threads_take_part_and_a_function_may_use_the_same_threads():
    # Each thread waits for the others: fewer threads would break the barrier.
    together = threading.Barrier(3)
    found = Workers(3).map(lambda first, last: together.wait(60.0), CHUNKS[:3])
    assert sorted(found) == [0, 1, 2]
    workers = Workers(2)
    found = workers.map(lambda a, b: sum(workers.map(lambda c, d: a + c, CHUNKS)), CHUNKS)
    assert found == [50 * a + sum(range(50)) for a, _ in CHUNKS]


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_a_failure_is_told_and_nothing_more_begins(n_threads):
    begun = []

    def fail(first: int, last: int) -> None:
        begun.append(first)
        raise ValueError(first)

    workers = Workers(n_threads)
    with pytest.raises(ValueError, match=r"^\d$"):
        workers.map(fail, CHUNKS)
    assert len(begun) <= n_threads
    assert workers.map(lambda a, b: a, CHUNKS) == list(range(50))


def test_a_training_run_ends_its_threads():
    problem, _ = random_problem(5, 3, [5, 4, 6, 3] * 20)
    before = threading.enumerate()
    training = training_of(problem.corpus, list("abc"), OWLQN(), l1=0.1, l2=0.1, n_threads=3)
    objective = training.step().objective
    begun = [thread for thread in threading.enumerate() if thread not in before]
    assert begun
    training.close()
    assert not any(thread.is_alive() for thread in begun)
    assert training.step().objective < objective
    training.close()
