"""Ambiguous gold labels: from annotation to models, and refusals."""

import pytest
from scipy.special import logsumexp
from spacy.language import Language
from spacy.training import Example

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.per_token import local_corpus
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.solvers.gis.gis import GIS
from spacy_sparsecrf.crf.solvers.gis.scgis import SCGIS
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.errors import SparseCRFError

from ..reference import Problem, local_log_probabilities, with_before
from ..support.checks import check_loss
from ..support.learning_cases import partial_problem
from ..support.runs import training_of
from ..support.toy import blank_with, examples_of, run_steps


def reference_local_loss(problem: Problem, pairs: bool) -> float:
    """Return the loss of a per-position model: -log probability of each token's label set."""
    value = 0.0
    for t, previous, weight in with_before(problem):
        if problem.corpus.labels[t] != -1 and not (pairs and previous < 0):
            log_p = local_log_probabilities(problem, t, previous, pairs)
            value -= weight * logsumexp(log_p[problem.gold(t)])
    return float(value)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("options", [{}, {"start_label": False, "weighted": True}])
def test_per_position_losses_equal_their_reference(pairs, options):
    problem = partial_problem(241, 3, [5, 0, 4, 1, 6], **options)
    corpus = local_corpus(problem.corpus, 3, pairs)
    loss = ChainLoss(corpus, 3, Workers(1))
    n = loss.n_potential
    working = loss.restrict(loss.coordinates("all"))
    value, _ = working.value_and_grad(problem.theta[:n])
    assert value == pytest.approx(reference_local_loss(problem, pairs), rel=1e-10)
    check_loss(working, problem.theta[:n])


@pytest.mark.filterwarnings("ignore:.*SCW340")
@pytest.mark.parametrize(
    ("solver", "settings", "message"),
    [
        (GIS(), {"l1": 0.1, "l2": 0.1, "kind": "memm"}, "SC395.*GIS"),
        (SCGIS(), {"l1": 0.1, "l2": 0.1, "kind": "memm"}, "SC395.*SCGIS"),
        # Sequences with ambiguous gold labels are skipped, which leaves none.
        (AveragedPerceptron(), {"l1": 0.0, "l2": 0.0}, "SC337"),
        (OWLQN(), {"l1": 0.1, "l2": 0.1, "kind": "maxent", "clusters": 2}, "SC360. 9 training"),
    ],
)
def test_several_gold_labels_are_refused(solver, settings, message):
    problem = partial_problem(244, 4, [5, 4], missing=0.0, ambiguous=0.9)
    message = message.replace("9 training", f"{(problem.corpus.labels < -1).sum()} training")
    with pytest.raises(SparseCRFError, match=message):
        training_of(problem.corpus, "abcd", solver, **settings).step()


def pipeline(**target: str) -> Language:
    return blank_with(
        l1=0.1, target={"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", **target}
    )


def examples_with(nlp: Language, *sentences: tuple[str, str]) -> list[Example]:
    return examples_of(nlp, [(text.split(), tags.split()) for text, tags in sentences])


def test_alternatives_of_an_attribute():
    nlp = pipeline(alternatives="|")
    sentences = [("the plan fails", "DT NN|VB VB"), ("plan the trip", "VB|NN DT NN|NN")]
    examples = examples_with(nlp, *sentences, ("a plan", "DT| DT|NN|VB"))
    nlp.initialize(lambda: examples)
    corpus = nlp.get_pipe("sparse_crf")._state.restart.args[0]
    assert nlp.get_pipe("sparse_crf").labels == ("DT", "NN", "VB")
    # A set of all labels is missing gold; a repeated or single alternative is one label.
    assert corpus.labels.tolist() == [0, -2, 2, -2, 0, 1, 0, -1]
    assert corpus.sets.tolist()[0] == [False, True, True]
    run_steps(nlp, examples, 10)
    assert [token.tag_ for token in nlp("the trip fails")] == ["DT", "NN", "VB"]


def test_a_negated_tag_excludes_a_label():
    nlp = pipeline()
    sentences = [
        ("the plan fails", "DT !VB VB"),
        ("plan the trip", "!DT DT NN"),
        ("ah ! ah", "!XX ! !!"),
    ]
    examples = examples_with(nlp, *sentences)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("sparse_crf")
    corpus = pipe._state.restart.args[0]
    # XX is no label, so that its negation is missing gold; tags "!" and "!!" are themselves.
    assert pipe.labels == ("!", "!!", "DT", "NN", "VB")
    assert corpus.labels.tolist() == [2, -2, 4, -3, 2, 3, -1, 0, 1]
    assert corpus.sets[:2].tolist() == [[True] * 4 + [False], [True, True, False, True, True]]
    run_steps(nlp, examples, 10)
    assert nlp("the plan fails")[1].tag_ not in ("VB", "DT")
    assert nlp.evaluate(examples_with(nlp, ("the", "DT")))["tag_acc"] == 1.0
    two = examples_with(pipeline(), ("a b", "A !A"), ("a b", "A B"))
    nlp = pipeline()
    nlp.initialize(lambda: two)
    assert nlp.get_pipe("sparse_crf")._state.restart.args[0].labels.tolist() == [0, 1, 0, 1]


def test_alternatives_need_a_separator_and_known_labels_where_labels_are_given():
    for nlp, sentence, labels in (
        (pipeline(), ("the plan", "DT NN|VB"), ("DT", "NN|VB")),
        (pipeline(alternatives="|"), ("a b", "DT NN"), ("DT", "NN")),
    ):
        nlp.initialize(lambda nlp=nlp, sentence=sentence: examples_with(nlp, sentence))
        assert nlp.get_pipe("sparse_crf").labels == labels
    examples = examples_with(nlp, ("a b", "DT NN|VB"))
    with pytest.raises(SparseCRFError, match="SC206.*'VB'"):
        nlp.get_pipe("sparse_crf").initialize(lambda: examples, labels=["NN", "DT"])
