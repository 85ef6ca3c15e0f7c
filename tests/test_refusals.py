"""Solvers refuse what they cannot minimise, before any work."""

import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.solvers.rprop import RPROP
from spacy_sparsecrf.training import Training

from .reference import random_problem


class WithoutL1(RPROP):
    supports_l1 = False


class WithL2(RPROP):
    needs_l2 = True


@pytest.mark.parametrize(
    ("solver", "l1", "l2", "code"),
    [(WithoutL1(), 0.5, 1.0, "SC308"), (WithL2(), 0.5, 0.0, "SC309")],
)
def test_penalties_that_a_solver_does_not_minimise_are_refused(solver, l1, l2, code):
    problem, _ = random_problem(31, 3, [4, 3])
    with pytest.raises(SparseCRFError, match=f"{code}.*{type(solver).__name__}"):
        Training(problem.corpus, list("abc"), solver, l1=l1, l2=l2)
