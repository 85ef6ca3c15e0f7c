"""Polishing: L-BFGS on the non-zero weights of a model, without l1."""

import numpy as np
import pytest

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.per_token import local_corpus
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.solver import BatchSolver
from spacy_sparsecrf.crf.training.run import Polish
from spacy_sparsecrf.crf.training.training import Training
from spacy_sparsecrf.registry import crf_solvers

from ..reference import Problem, random_problem
from ..support.runs import training_of

NAMES = list("abcd")


def sparse_problem() -> Problem:
    problem, _ = random_problem(81, 4, [9, 8, 10, 3] * 5, n_bigram=3, n_values=8)
    return problem


def trained(solver: BatchSolver, **options) -> Training:
    training = training_of(sparse_problem().corpus, NAMES, solver, l1=0.5, l2=1e-3, **options)
    training.step()
    return training


def test_polishing_keeps_the_active_set_and_lowers_the_loss():
    loss = ChainLoss(sparse_problem().corpus, 4, Workers(1))
    training = trained(OWLQN())
    training.step()
    coordinates, theta = training.weights
    assert 0 < len(coordinates) < loss.n_potential / 2
    given = theta.copy()
    polished = Polish(8)(loss.restrict(coordinates), theta, np.arange(len(theta)))
    np.testing.assert_array_equal(theta, given)
    assert (polished != 0.0).all()
    working = loss.restrict(coordinates)
    before, after = working.value_and_grad(theta)[0], working.value_and_grad(polished)[0]
    assert after < 0.95 * before


def test_enough_iterations_reach_the_minimum_on_the_active_set():
    loss = ChainLoss(sparse_problem().corpus, 4, Workers(1))
    coordinates, theta = trained(OWLQN()).weights
    working = loss.restrict(coordinates)
    theta = Polish(500, 0.1)(working, theta, np.arange(len(theta)))
    _, gradient = working.value_and_grad(theta)
    assert np.abs(gradient + 0.1 * theta).max() <= 1e-3


@pytest.mark.parametrize("name", sorted(crf_solvers.get_all()))
def test_models_of_every_solver_are_polished(name):
    make = crf_solvers.get(name)
    kind = "memm" if "single tokens" in make.requires else "chain"
    penalty = {"l1": 0.0 if "no l1" in make.requires else 0.5}
    penalty["l2"] = 1.0 if "l2" in make.requires else 0.0
    problem = sparse_problem()
    training = training_of(problem.corpus, NAMES, make(), kind=kind, polish=Polish(8), **penalty)
    training.step()
    coordinates, theta = training.weights
    model = training.model()
    assert model.n_active == len(coordinates) > 0
    corpus = problem.corpus
    if kind != "chain":
        corpus = local_corpus(corpus, len(NAMES), pairs=True)
    working = ChainLoss(corpus, len(NAMES), Workers(1)).restrict(coordinates)
    after = training_of(problem.corpus, NAMES, OWLQN(), l1=0.5, l2=0.0, kind=kind, init=model)
    np.testing.assert_array_equal(after.weights[0], coordinates)
    before, polished = (working.value_and_grad(w)[0] for w in (theta, after.weights[1]))
    assert polished < before
