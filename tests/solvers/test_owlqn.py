"""The state of OWL-QN on a changed working set."""

from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.base import take
from spacy_sparsecrf.solvers.owlqn import OWLQN, OwlqnState


@pytest.mark.parametrize("source", [[1, 4], [0, -1, -1, 1, 2, -1, 4, -1], [-1, 3, 4], [], [-1] * 7])
@pytest.mark.parametrize("n_pairs", [0, 2, 4, 9])
def test_pairs_move_as_vectors_do(source: list[int], n_pairs: int) -> None:
    theta, gradient, *pairs = np.random.default_rng(n_pairs).normal(size=(4, 4, 5))
    pairs = [rows.astype(np.float32) for rows in pairs]
    state = OwlqnState(
        theta[0], gradient[0], 1.0, np.ones(5), *map(np.copy, pairs), n_pairs=n_pairs
    )
    at, solver = np.array(source, np.int64), OWLQN(classic=True, history=4)
    no_loss: Any = None
    moved = solver.remap(no_loss, ElasticNet(0.1, 0.0), state, at, np.ones(len(at)))
    assert np.array_equal(moved.theta, take(theta[0], at)) and moved.n_pairs == n_pairs
    for rows, before in zip((moved.steps, moved.changes), pairs, strict=True):
        assert np.array_equal(rows, take(before[:n_pairs], at))
