"""Edge cases: threads, lengths, label counts, empty working sets."""

import numpy as np
import pytest

from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN

from ..reference import random_problem
from ..support.checks import check_loss
from ..support.layouts import in_every_layout
from ..support.runs import training_of
from ..support.toy import blank_with, examples_of, train


@in_every_layout
def test_a_thousand_labels(limits):
    problem, _ = random_problem(73, 1000, [4, 1], n_bigram=1, n_unigram=1, n_values=1)
    rng = np.random.default_rng(0)
    problem.theta[rng.random(len(problem.theta)) < 0.99] = 0.0
    loss = ChainLoss(problem.corpus, 1000, Workers(2), limits=limits)
    working = loss.restrict(np.flatnonzero(problem.theta))
    theta = problem.theta[problem.theta != 0.0]
    value, _ = working.value_and_grad(theta)
    expected = sum(
        problem.chain(tokens).log_z
        - problem.score(tokens, tuple(problem.corpus.labels[list(tokens)]))
        for tokens in problem.sequences()
    )
    assert value == pytest.approx(expected, rel=1e-12)
    check_loss(working, theta)


def test_a_thousand_labels_and_a_working_set_of_size_zero_train_and_decode():
    for n_labels, lengths, l1 in ((1000, [5, 3], 0.1), (4, [5, 3], 1e6)):
        problem, observations = random_problem(74, n_labels, lengths, n_bigram=1, n_unigram=2)
        names = [str(y) for y in range(n_labels)]
        training = training_of(problem.corpus, names, OWLQN(), l1=l1, l2=0.01)
        for _ in range(3):
            training.step()
        decoder = Decoder(training.model())
        labels = decoder.viterbi(observations)
        if l1 < 1.0:
            assert labels.tolist() == problem.corpus.labels.tolist()
            continue
        assert training.objective == pytest.approx(8 * np.log(4))
        assert training.model().n_active == 0 and not labels.any()
        np.testing.assert_allclose(decoder.marginals(observations), 0.25)


@pytest.mark.parametrize("l1", [0.5, 1e6])
@pytest.mark.parametrize("tags", [["A"], ["A", "A"]])
def test_tiny_corpora_go_through_the_component(tags, l1):
    nlp = blank_with(l1=l1, n_threads=0)
    train(nlp, examples_of(nlp, [(["word"] * len(tags), tags)]), 3)
    assert [token.tag_ for token in nlp("other words")] == ["A", "A"]
