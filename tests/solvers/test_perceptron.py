"""The averaged perceptron."""

from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.corpus.index import sliced
from spacy_sparsecrf.distributed.loss import ShardLosses, ShardProblem
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.subproblems import with_distinct_contexts
from spacy_sparsecrf.loss.tree import sum_over_tree
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.parameter_mixing import MEAN, Pass
from spacy_sparsecrf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.solvers.streaming import Batch, Terms
from spacy_sparsecrf.training.training import Training

from ..reference import random_problem

NONE = ElasticNet(0.0, 0.0)


def test_a_corpus_without_complete_sequences_is_refused():
    problem, _ = random_problem(95, 3, [4, 3])
    problem.corpus.labels[[0, 5]] = -1
    with pytest.raises(SparseCRFError, match="SC337.*AveragedPerceptron"):
        Training(problem.corpus, list("abc"), AveragedPerceptron(), l1=0.0, l2=0.0).step()


# Iterative parameter mixing: passes over leaves, averaged.

TOTALS = {"seen": 5.0, "eta": 0.2, "due": 0.01, "decayed": 0.0}


@pytest.mark.parametrize(
    ("solver", "penalty", "totals"),
    [
        (SGDL1(seed=3), ElasticNet(0.4, 0.1), TOTALS),
        (AveragedPerceptron(seed=3), ElasticNet(0.0, 0.0), {"count": 0}),
    ],
)
def test_leaves_are_visited_as_if_each_had_all_weights(
    solver: Any, penalty: ElasticNet, totals: dict[str, float]
) -> None:
    problem, _ = random_problem(7, 3, [4, 3, 5, 2, 1, 3], n_unigram=9, n_bigram=4)
    corpus, workers, shard_ptr = problem.corpus, Workers(1), np.array([0, 2, 2, 5, 6])
    theta, n = 0.1 * problem.theta, corpus.n_sequences
    columns = {name: 0.02 * np.ones_like(theta) for name in solver.stream_columns} | {
        "theta": theta
    }
    begun = Pass(solver, columns, totals, 2, penalty, n)
    coordinates = np.arange(len(theta))
    leaves = ShardLosses(corpus, shard_ptr, 4, ShardProblem(3, None, "float64"), workers)
    total = sum_over_tree(leaves.visit(coordinates, begun.over))
    means, told, lost = begun.averaged(total, 3)
    expected, losses = [], []
    for i in (0, 2, 3):
        # The order of sequences follows from contexts.
        own = with_distinct_contexts(sliced(corpus, *shard_ptr[i : i + 2]))
        whole = ChainLoss(own, 3, workers)
        batch = Batch(whole.restrict(coordinates, True), np.random.default_rng((3, 2, 4 + i)))
        there, after = {k: v.copy() for k, v in columns.items()}, dict(totals)
        losses.append(solver.learn(batch, there, after, Terms(penalty, n)))
        expected.append([*there.values(), solver.stream_weights(there, after)])
    for name, mean in zip([*columns, MEAN], np.mean(expected, axis=0), strict=True):
        np.testing.assert_allclose(means[name], mean, atol=1e-12)
    assert lost == pytest.approx(sum(losses))
    counted = "seen" if "seen" in totals else "count"
    assert told[counted] == pytest.approx(totals[counted] + n / 3)
