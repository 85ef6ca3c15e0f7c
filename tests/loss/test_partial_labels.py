"""Ambiguous and missing gold labels, and valid sequences only: losses, solvers, pipelines."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.training import Example

from spacy_sparsecrf.crf.corpus.gold import find_invalid
from spacy_sparsecrf.crf.loss.workspace import Limits
from spacy_sparsecrf.crf.loss.wrappers import observed_only
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.pipeline.targets.token_attribute import TokenAttribute

from ..reference import Problem
from ..support.checks import check_loss
from ..support.learning_cases import loss_of, partial_problem
from ..support.minimisers import SOLVERS, dense_weights, precise, train
from ..support.runs import training_of
from ..support.toy import blank_with, examples_of
from ..support.toy import train as train_pipeline

LENGTHS = [4, 0, 1, 3, 5]


def everything(problem: Problem, **options: Limits):
    loss = loss_of(problem, **options)
    return loss.restrict(loss.coordinates("all"))


@pytest.mark.parametrize("n_labels", [64, 65, 70])
def test_more_labels_than_a_word_has_bits(n_labels):
    problem = partial_problem(202, n_labels, [2, 1, 2], constrained=True, n_bigram=1)
    value, _ = everything(problem).value_and_grad(problem.theta)
    paths = [(tokens, problem.paths(tokens, agree=True)) for tokens in problem.sequences()]
    assert min(len(found) for _, found in paths) < n_labels
    expected = sum(
        problem.log_z(tokens) - np.logaddexp.reduce([problem.score(tokens, p) for p in found])
        for tokens, found in paths
    )
    assert value == pytest.approx(expected, rel=1e-10)
    check_loss(everything(problem), problem.theta)


def test_scores_of_labels_that_a_token_cannot_have_do_not_drown_the_others():
    problem = partial_problem(209, 3, [1, 1, 1], missing=0.0, n_bigram=0, n_values=1)
    problem.corpus.labels[:] = -2
    problem.corpus.sets[0] = [True, True, False]
    problem.theta[:] = 0.0
    problem.mu[:, 2] = 500.0
    value, gradient = everything(problem).value_and_grad(problem.theta)
    expected, expected_gradient = problem.loss()
    assert expected > 700.0
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-12)


@pytest.mark.parametrize("start_label", [True, False])
def test_observed_coordinates_are_of_labels_that_gold_speaks_of(start_label):
    problem = partial_problem(212, 4, [6, 1, 5, 2], n_bigram=3, start_label=start_label)
    counts = np.zeros_like(problem.theta)
    table = Problem(problem.corpus, 4, counts)
    for tokens in problem.sequences():
        for t in tokens:
            if problem.corpus.labels[t] == -1:
                continue
            for o in problem.unigram_tests(t):
                table.mu[o, problem.gold(t)] = 1.0
            if t > tokens.start and problem.corpus.labels[t - 1] == -1:
                continue
            before = [4] if t == tokens.start else problem.gold(t - 1)
            for o in problem.bigram_tests(t):
                for a in before:
                    table.lam[o, a, problem.gold(t)] = 1.0
    expected = np.flatnonzero(counts)
    loss = observed_only(loss_of(problem))
    np.testing.assert_array_equal(loss.coordinates("observed"), expected)
    assert loss.n_potential == len(expected) < len(counts)
    np.testing.assert_array_equal(loss.coordinates("all"), expected)


COMPLETE = {"missing": 0.0, "ambiguous": 0.0, "constrained": True}


# A warm start on the only complete sequences is worse than zero weights.
@pytest.mark.filterwarnings("ignore:.*SCW341")
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_a_stationary_point_over_legal_sequences(solver):
    l1, l2 = (0.0, 1.0) if "no l1" in SOLVERS[solver]().requires else (0.5, 0.1)
    # With missing labels, the loss has no dual.
    options = COMPLETE if solver == "oeg" else {"constrained": True}
    problem = partial_problem(222, 3, [6, 4, 5, 3], n_values=2, weighted=True, **options)
    training = train(problem, l1, l2, precise(solver), valid=problem.valid)
    problem.theta = dense_weights(training, len(problem.theta))
    value, gradient = problem.loss()
    penalty = ElasticNet(l1, l2)
    assert training.objective == pytest.approx(value + penalty.value(problem.theta), rel=1e-7)
    assert penalty.distance(problem.theta, gradient) <= 1e-6


@given(st.integers(0, 2**32 - 1))
def test_labels_are_illegal_where_no_path_agrees(seed):
    problem = partial_problem(seed, 3, [3, 0, 1, 4], missing=0.3, weighted=True)
    rng = np.random.default_rng(seed)
    problem.valid = rng.random((4, 4)) < 0.7
    problem.corpus.weights[rng.integers(4)] = 0.0
    bad = [
        s
        for s, tokens in enumerate(problem.sequences())
        if problem.corpus.weights[s] > 0.0
        and (problem.corpus.labels[tokens.start : tokens.stop] != -1).any()
        and not problem.paths(tokens, agree=True)
    ]
    found = find_invalid(problem.corpus, problem.valid)
    assert (found.sequence if found else None) == (bad[0] if bad else None)


@pytest.mark.parametrize(
    ("labels", "valid", "message"),
    [
        ([0, 1, 0], (0, 1), "'b' may not follow 'a': token 1"),
        ([0, 0, 0], (2, 0), "'a' may not begin a sequence: token 0"),
        ([0, 0, 1], (1, 2), "'b' may not end a sequence: token 2"),
        ([1, -1, 1], (1, slice(0, 2)), "'a' or 'b' may not follow 'b': token 1"),
    ],
)
def test_illegal_gold_labels_are_refused(labels, valid, message):
    problem = partial_problem(224, 2, [3], **COMPLETE)
    problem.corpus = replace(problem.corpus, labels=np.array(labels, dtype=np.int32))
    allowed = np.ones((3, 3), dtype=np.bool_)
    allowed[valid] = False
    with pytest.raises(SparseCRFError, match=rf"SC358.*{message} .*sequence 1"):
        training_of(problem.corpus, "ab", OWLQN(), l1=0.1, l2=0.1, valid=allowed)


class Alternating(TokenAttribute):
    """A target whose tags may not follow themselves; "B" may not begin a sequence."""

    def valid_transitions(self, labels):
        valid = np.ones((len(labels) + 1, len(labels) + 1), dtype=np.bool_)
        np.fill_diagonal(valid[:-1, :-1], False)
        valid[-1, labels.index("B")] = False
        return valid


def pipeline(constrained: bool = True, target: object = None) -> Language:
    nlp = blank_with(learning={"constrained": constrained})
    nlp.get_pipe("sparse_crf").target = target or Alternating()
    return nlp


def tagged(nlp: Language, *tags: str) -> list[Example]:
    return examples_of(nlp, [(own.lower().split(), own.split()) for own in tags])


def test_a_pipeline_learns_from_legal_sequences_only():
    losses = []
    for constrained in (False, True):
        nlp = pipeline(constrained)
        losses.append(train_pipeline(nlp, tagged(nlp, "A B A C", "C A B", "A C A"), 3)[-1])
        assert [token.tag_ for token in nlp("a b a c")] == ["A", "B", "A", "C"]
    assert losses[1] < losses[0] - 0.1


def test_illegal_gold_labels_are_refused_by_name_and_nothing_to_constrain_is_warned_of():
    nlp = pipeline()
    examples = tagged(nlp, "A B A C", "C A A", "A C A B")
    message = "SC358.*'A' may not follow 'A': token 2 .*training Doc that begins 'c a a"
    with pytest.raises(SparseCRFError, match=message):
        nlp.initialize(lambda: examples)
    nlp = pipeline(target=TokenAttribute())
    with pytest.warns(SparseCRFWarning, match="SCW350.*'?sparse_crf"):
        nlp.initialize(lambda: examples)
