"""A penalty centred at an earlier model: each solver reaches the minimum."""

import numpy as np
import pytest

from spacy_sparsecrf.crf.corpus.coordinates import Weights
from spacy_sparsecrf.crf.loss.hessian_products import HessianProduct
from spacy_sparsecrf.crf.loss.wrappers import Shifted
from spacy_sparsecrf.crf.model.model import CRFModel, WeightNames
from spacy_sparsecrf.crf.model.weights_of_run import coordinates_of, summed
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.training.run import Polish
from spacy_sparsecrf.errors import SparseCRFError

from ..reference import random_problem
from ..support.layouts import in_every_layout
from ..support.learning_cases import LABELS, loss_of, names_of, partial_problem, prior_of
from ..support.minimisers import (
    SOLVERS,
    dense_weights,
    precise,
    skip_where_refused,
    smooth_minimum,
    train,
)
from ..support.runs import training_of

LENGTHS = [5, 4, 0, 6, 1, 3] * 2


@pytest.mark.parametrize(
    ("l1", "l2", "options"),
    [(0.5, 0.1, {}), (0.0, 1.0, {"missing": 0.1, "weighted": True, "n_bigram": 3})],
)
@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "oeg"])
def test_minimiser_equals_scipy_on_the_shifted_problem(solver, l1, l2, options):
    skip_where_refused(solver, l1)
    problem, _ = random_problem(401, 3, LENGTHS, **options)
    prior, origin = prior_of(problem, n_labels=2)
    value, expected = smooth_minimum(problem, l1, l2, origin=origin)
    training = train(problem, l1, l2, precise(solver), prior=prior, dtype="float64")
    assert training.objective == pytest.approx(value, rel=1e-7 if "missing" in options else 1e-9)
    if not options:
        got = dense_weights(training, len(expected))
        np.testing.assert_allclose(got, origin + expected, atol=2e-4)
        kept = coordinates_of(names_of(problem), training.model())
        again = np.zeros(len(expected))
        again[kept[0]] = kept[1]
        np.testing.assert_allclose(again, got, atol=1e-12)


@in_every_layout
@pytest.mark.parametrize("by_example", [False, True])
@pytest.mark.parametrize("case", [{}, {"constrained": True, "n_bigram": 3, "start_label": False}])
def test_a_loss_with_a_prior_is_that_of_the_sum(case, by_example, limits):
    problem = partial_problem(403, 3, [4, 0, 1, 5], **case)
    _, origin = prior_of(problem)
    support = np.flatnonzero(origin)
    plain = loss_of(problem, limits=limits)
    plain_working = plain.restrict(plain.coordinates("all"))
    expected = plain_working.value_and_grad(problem.theta + origin)
    loss = Shifted(loss_of(problem, limits=limits), Weights(support, origin[support]))
    lay_out = loss.by_example if by_example else loss.restrict
    working = lay_out(loss.coordinates("all"))
    value, gradient = working.value_and_grad(problem.theta)
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-12)
    found = loss.screen(working, problem.theta, 0.1, 10_000)
    wanted = plain.screen(plain_working, problem.theta + origin, 0.1, 10_000)
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_allclose(found[1], wanted[1], atol=1e-12)
    direction = np.random.default_rng(0).normal(size=len(gradient))
    product = HessianProduct(plain_working)
    product.prepare(problem.theta + origin)
    turned = product.product(direction)
    if by_example:
        sums, own = np.zeros_like(gradient), np.zeros_like(gradient)
        total = working.add_product(working.sequences, problem.theta, direction, sums, own)
        assert total == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(sums, gradient, atol=1e-12)
    else:
        product = working.products()
        product.prepare(problem.theta)
        own = product.product(direction)
    np.testing.assert_allclose(own, turned, atol=1e-11)


def test_tests_that_the_corpus_does_not_have_keep_their_weights():
    problem, _ = random_problem(404, 3, LENGTHS)
    other, _ = random_problem(405, 3, LENGTHS, n_values=9)
    prior, _ = prior_of(other, share=0.8, n_labels=2)
    training = train(problem, 0.5, 0.1, OWLQN(), prior=prior, dtype="float64")
    model = training.model()
    for own, old in ((model.unigram, prior.unigram), (model.bigram, prior.bigram)):
        known = set(problem.corpus.unigram_keys) | set(problem.corpus.bigram_keys)
        kept = {place: x for place, x in old.entries() if place[0] not in known}
        found = dict(own.entries())
        assert kept
        # The start label has a different id with three labels.
        shown = {(key, 3 if before == 2 else before, y): x for (key, before, y), x in kept.items()}
        assert shown.items() <= found.items()


def test_without_anything_to_learn_the_weights_are_the_prior():
    problem, _ = random_problem(406, 3, LENGTHS)
    prior, origin = prior_of(problem)
    training = train(problem, 1e6, 1.0, OWLQN(), prior=prior, dtype="float64")
    np.testing.assert_array_equal(dense_weights(training, len(origin)), origin)
    assert training.model().to_bytes() == prior.to_bytes()
    keys = (own + np.uint64(10**6) for own in (prior.unigram.keys, prior.bigram.keys))
    stranger = WeightNames(*keys, names_of(problem).labels, (), True, "chain")
    other = CRFModel.of_weights(stranger, np.array([1]), np.ones(1), "float64")
    with pytest.raises(SparseCRFError, match="SC368"):
        training_of(problem.corpus, LABELS, OWLQN(), l1=0.1, l2=0.1, prior=other)


def test_polishing_minimises_with_a_penalty_around_the_prior():
    problem, _ = random_problem(412, 3, LENGTHS)
    prior, origin = prior_of(problem)
    polish = Polish(200, l2=0.1)
    training = train(problem, 0.5, 0.1, OWLQN(), prior=prior, dtype="float64")
    polished = training.model(polish)
    names = names_of(problem)
    coordinates, values = summed(coordinates_of(names, polished))
    assert set(coordinates) == set(summed(coordinates_of(names, training.model()))[0])
    loss = loss_of(problem)
    working = loss.restrict(coordinates)
    _, gradient = working.value_and_grad(values)
    expected = -0.1 * (values - origin[coordinates])
    np.testing.assert_allclose(gradient, expected, atol=1e-3)
