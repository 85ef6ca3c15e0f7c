"""Costs of errors (softmax-margin): enumeration, differences, every solver, pipelines."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.special import logsumexp
from spacy.tokens import Span

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.examples import ChainExamples
from spacy_sparsecrf.loss.hessian import HessianProduct
from spacy_sparsecrf.loss.per_token import local_corpus
from spacy_sparsecrf.registry import crf_solvers
from spacy_sparsecrf.testing import check_loss
from spacy_sparsecrf.training.training import Training

from ..reference import Problem, local_log_probabilities
from ..toy import blank_with, docs_of, examples_of, make_sentences
from ..training.learning_cases import loss_of, partial_problem
from .layouts import in_every_layout

COSTS = np.array([[0.0, 0.7, 0.7], [2.0, 0.0, 0.3], [2.0, 0.3, 0.0]])
CASES = [
    {},
    {"constrained": True, "weighted": True, "n_bigram": 3},
    {"missing": 0.0, "ambiguous": 0.0, "start_label": False},
]


@dataclass
class Costly(Problem):
    """A problem with costs added to its potentials."""

    costs: np.ndarray = field(default_factory=lambda: COSTS)

    def log_potential(self, t, previous, label):
        gold = self.corpus.labels[t]
        added = self.costs[gold, label] if gold >= 0 else 0.0
        return super().log_potential(t, previous, label) + added


def costly(seed: int, **case: object) -> Costly:
    plain = partial_problem(seed, 3, [4, 0, 1, 3, 5], **case)
    return Costly(plain.corpus, 3, plain.theta, plain.valid)


@in_every_layout
@pytest.mark.parametrize("case", CASES)
def test_loss_equals_enumeration(case, limits):
    problem = costly(71, **case)
    expected, gradient = problem.loss()
    loss = loss_of(problem, limits=limits, costs=COSTS)
    working = loss.restrict(loss.all_coordinates())
    value, found = working.value_and_grad(problem.theta)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(found, gradient, atol=1e-10)
    check_loss(working, problem.theta)
    by_example = ChainExamples(loss.restrict(loss.all_coordinates(), stochastic=True))
    found = np.zeros_like(gradient)
    product, direction = np.zeros_like(gradient), np.random.default_rng(0).normal(size=len(found))
    value = by_example.add_product(by_example.sequences, problem.theta, direction, found, product)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(found, gradient, atol=1e-10)
    hessian = HessianProduct(working)
    hessian.prepare(problem.theta)
    np.testing.assert_allclose(hessian.product(direction), product, atol=1e-10)
    gap = 1e-5 * direction
    ahead, behind = (working.value_and_grad(problem.theta + d)[1] for d in (gap, -gap))
    np.testing.assert_allclose(product, (ahead - behind) / 2e-5, atol=1e-5)
    chosen = np.arange(0, len(gradient), 3)
    problem.theta[np.setdiff1d(np.arange(len(gradient)), chosen)] = 0.0
    coordinates, values, _ = loss.screen(loss.restrict(chosen), problem.theta[chosen], 0.1, 10_000)
    gradient = problem.loss()[1]
    np.testing.assert_array_equal(coordinates, np.flatnonzero(np.abs(gradient) > 0.1))
    np.testing.assert_allclose(values, gradient[coordinates], atol=1e-10)


@pytest.mark.parametrize("pairs", [False, True])
def test_per_position_models_have_costs(pairs):
    problem = costly(72, missing=0.0, ambiguous=0.0)
    plain = Problem(local_corpus(problem.corpus, 3, pairs), 3, problem.theta)
    loss = loss_of(plain, costs=COSTS)
    n, expected = loss.n_potential, 0.0
    for tokens in problem.sequences():
        for t in tokens:
            gold = problem.corpus.labels[t]
            before = 3 if t == tokens[0] else problem.corpus.labels[t - 1]
            log_p = local_log_probabilities(problem, t, before, pairs)
            expected += logsumexp(log_p + COSTS[gold]) - log_p[gold]
    value = loss.restrict(loss.all_coordinates()).value_and_grad(problem.theta[:n])[0]
    assert value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", crf_solvers.get_all())
def test_solvers_reach_one_minimum_or_refuse(name):
    problem, solver = costly(73, missing=0.0, ambiguous=0.0), crf_solvers.get_all()[name]
    kind = "memm" if "single tokens" in solver().requires else "chain"
    of = problem.corpus, ["O", "A", "B"]

    def train(make, costs):
        run = Training(*of, make(), l1=0.0, l2=0.5, kind=kind, costs=costs, n_threads=1)
        while not run.step().converged:
            pass
        return run

    if "no costs" in solver().requires:
        with pytest.raises(SparseCRFError, match="SC378"):
            train(solver, COSTS)
        return
    found = train(solver, COSTS)
    best = train(crf_solvers.get_all()["spacy_sparsecrf.OWLQN.v1"], COSTS).objective
    assert found.objective == pytest.approx(best, rel=1e-3 if solver.exact else 0.1)
    assert best > train(crf_solvers.get_all()["spacy_sparsecrf.OWLQN.v1"], None).objective
    assert found.report.gap >= found.objective - best - 1e-6


def test_a_pipeline_trades_precision_for_recall():
    sentences, found = make_sentences(60, 1), []
    for cost in ({}, {"confusion": 0.0}, {"false_negative": 4.0}, {"false_positive": 4.0}):
        nlp = blank_with(["b:", "u:suffix(1)[0]"], "sparse_crf_ner", learning={"cost": cost})
        examples = examples_of(nlp, sentences)
        for number, example in enumerate(examples):
            gold = example.reference
            gold.ents = [Span(gold, t.i, t.i + 1, label="X") for t in gold if (t.i + number) % 2]
        nlp.initialize(lambda: examples)  # noqa: B023
        for _ in range(5):
            nlp.update(examples[:1])
        n_found = sum(len(doc.ents) for doc in nlp.pipe(docs_of(nlp, sentences)))
        found.append((n_found, nlp.get_pipe("sparse_crf_ner").model.to_bytes()))
    plain, nothing, more, fewer = found
    assert plain == nothing
    assert fewer[0] < plain[0] < more[0]
