"""Edge cases: threads, lengths, label counts, empty working sets."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training.training import Training

from ..loss.layouts import in_every_layout
from ..reference import Problem, random_problem
from ..runs import training_of


def trained(problem: Problem, n_steps: int = 3, **settings) -> Training:
    names = [str(y) for y in range(problem.n_labels)]
    options = {"l1": 0.1, "l2": 0.01, **settings}
    training = training_of(problem.corpus, names, OWLQN(), **options)
    for _ in range(n_steps):
        training.step()
    return training


@in_every_layout
def test_a_thousand_labels(limits):
    problem, _ = random_problem(73, 1000, [4, 1], n_bigram=1, n_unigram=1, n_values=1)
    rng = np.random.default_rng(0)
    problem.theta[rng.random(len(problem.theta)) < 0.99] = 0.0
    loss = ChainLoss(problem.corpus, 1000, Workers(2), limits=limits)
    working = loss.restrict(np.flatnonzero(problem.theta))
    theta = problem.theta[problem.theta != 0.0]
    value, gradient = working.value_and_grad(theta)
    paths = [
        problem.log_space_marginals(tokens)[0]
        - problem.score(tokens, tuple(problem.corpus.labels[list(tokens)]))
        for tokens in problem.sequences()
    ]
    assert value == pytest.approx(sum(paths), rel=1e-12)
    step = 1e-6 * rng.normal(size=len(theta))
    difference = working.value_and_grad(theta + step)[0] - working.value_and_grad(theta - step)[0]
    assert difference == pytest.approx(2.0 * float(gradient @ step), rel=1e-6)


def test_a_thousand_labels_train_and_decode():
    problem, observations = random_problem(74, 1000, [5, 3], n_bigram=1, n_unigram=2)
    training = trained(problem, n_steps=2)
    labels = Decoder(training.model()).viterbi(observations)
    assert labels.tolist() == problem.corpus.labels.tolist()


def test_a_working_set_of_size_zero():
    problem, observations = random_problem(75, 4, [5, 3])
    training = trained(problem, l1=1e6)
    assert training.objective == pytest.approx(8 * np.log(4))
    model = training.model()
    assert model.n_active == 0
    decoder = Decoder(model)
    assert (decoder.viterbi(observations) == 0).all()
    np.testing.assert_allclose(decoder.marginals(observations), 0.25)


@pytest.mark.parametrize("l1", [0.5, 1e6])
@pytest.mark.parametrize("tags", [["A"], ["A", "A"]])
def test_tiny_corpora_go_through_the_component(tags, l1):
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", config={"l1": l1, "n_threads": 0})
    doc = Doc(nlp.vocab, words=["word"] * len(tags))
    examples = [Example(doc, Doc(nlp.vocab, words=["word"] * len(tags), tags=tags))]
    nlp.initialize(lambda: examples)
    for _ in range(3):
        nlp.update(examples)
    assert [token.tag_ for token in nlp("other words")] == ["A", "A"]
