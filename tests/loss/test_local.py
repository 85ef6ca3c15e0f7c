"""Per-position models: losses and decoding equal enumeration; pipelines."""

import contextlib

import numpy as np
import pytest
import spacy

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.kernels.layout import Scored
from spacy_sparsecrf.kernels.log_space import normalise_steps
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.per_token import local_corpus
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.solvers.gis.gis import GIS
from spacy_sparsecrf.solvers.gis.scgis import SCGIS
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training.training import Training

from ..reference import Problem, local_loss, random_problem
from ..runs import training_of
from ..toy import accuracy, docs_of, examples_of, run_steps, tags_of

OPTIONS = [
    {},
    {"start_label": False, "n_bigram": 3},
    {"missing": 0.3, "weighted": True, "n_bigram": 3},
    {"n_bigram": 0},
    {"n_unigram": 0, "missing": 0.2},
]


def n_unigram(problem: Problem) -> int:
    return len(problem.corpus.unigram_keys) * problem.n_labels


def make_loss(problem: Problem, pairs: bool, **options) -> ChainLoss:
    corpus = local_corpus(problem.corpus, problem.n_labels, pairs)
    return ChainLoss(corpus, problem.n_labels, Workers(1), **options)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_loss_and_gradient_equal_enumeration(pairs, options):
    problem, _ = random_problem(61, 3, [5, 0, 4, 1, 6], **options)
    expected, gradient = local_loss(problem, pairs)
    loss = make_loss(problem, pairs)
    n = len(problem.theta) if pairs else n_unigram(problem)
    assert loss.n_potential == n
    working = loss.restrict(loss.all_coordinates())
    value, found = working.value_and_grad(problem.theta[:n])
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(found, gradient[:n], atol=1e-10)
    half = np.arange(0, n, 2)
    problem.theta[np.setdiff1d(np.arange(len(problem.theta)), half)] = 0.0
    value, found = loss.restrict(half).value_and_grad(problem.theta[half])
    expected, gradient = local_loss(problem, pairs)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(found, gradient[half], atol=1e-10)
    # Outside of the working set, screening returns the gradient.
    working = loss.restrict(half)
    coordinates, gradients, _ = loss.screen(working, problem.theta[half], 1e-3, 10**6)
    np.testing.assert_array_equal(coordinates, np.flatnonzero(np.abs(gradient[:n]) > 1e-3))
    np.testing.assert_allclose(gradients, gradient[coordinates], atol=1e-10)


def test_too_many_pair_tests_are_refused():
    problem, _ = random_problem(64, 3, [5])
    with pytest.raises(SparseCRFError, match="SC301"):
        local_corpus(problem.corpus, 2**31 - 1, pairs=True)


def test_a_corpus_without_usable_tokens_is_refused():
    problem, _ = random_problem(65, 3, [5], missing=1.0)
    for kind in ("maxent", "memm"):
        with pytest.raises(SparseCRFError, match="SC305"), warnings_of(kind):
            make_training(problem, kind)


def warnings_of(kind: str):
    """Expect the warning that a maxent model drops bigram features."""
    if kind == "maxent":
        return pytest.warns(SparseCRFWarning, match="SCW340")
    return contextlib.nullcontext()


def make_training(problem: Problem, kind: str, **options) -> Training:
    names = [str(y) for y in range(problem.n_labels)]
    options = {"l1": 0.05, "l2": 0.01, "dtype": "float64", "n_threads": 1} | options
    solver = options.pop("solver", None) or OWLQN(inner_iterations=5)
    return training_of(problem.corpus, names, solver, kind=kind, **options)


def test_scores_far_apart_are_normalised():
    scores = np.array([[0.0] * 8, [900.0, -900.0, 3.0, *[0.0] * 5]])
    pairs = np.zeros((1, 4, 8))
    pairs[0, 0] = [-900.0, 900.0, -3.0, *[0.0] * 5]
    pairs[0, 1, :3] = -1000.0
    normalise_steps(Scored(3, np.array([0, 2]), scores, np.zeros(2, np.int32), pairs))
    np.testing.assert_allclose(scores[0, :3], [-np.log(3.0), 100.0, -900.0], rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "solver", "clusters"), [("maxent", SCGIS, 0), ("memm", OWLQN, 0), ("maxent", OWLQN, 2)]
)
def test_pipelines_train_save_load_and_predict_the_same(corpus, tmp_path, kind, solver, clusters):
    templates = ["u:suffix(4)[0]", "u:lower[0]"] + ["b:"] * (kind == "memm")
    config = {
        "model": kind,
        "learning": {"clusters": clusters},
        "n_threads": 1,
        "features": {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": templates},
        "solver": {"@crf_solvers": f"spacy_sparsecrf.{solver.__name__}.v1"},
    }
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", config=config)
    examples = examples_of(nlp, corpus.train)
    nlp.initialize(lambda: examples)
    losses = run_steps(nlp, examples, 4)
    assert losses[-1] < losses[0]
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.get_pipe("sparse_crf").model.kind == kind
    assert again.get_pipe("sparse_crf").model.bounds == ((0, 2, 5) if clusters else ())
    assert again.config["components"]["sparse_crf"]["model"] == kind
    docs = [tags_of(list(each.pipe(docs_of(each, corpus.dev)))) for each in (nlp, again)]
    assert docs[0] == docs[1]
    assert accuracy(again, corpus.dev) > 0.9


def test_settings_of_pipelines_are_checked(corpus):
    with pytest.raises(SparseCRFError, match="SC205.*model = 'semi'.*\"memm\""):
        spacy.blank("en").add_pipe("sparse_crf", config={"model": "semi"})
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", config={"model": "maxent"})
    examples = examples_of(nlp, corpus.train)
    with pytest.warns(SparseCRFWarning, match="SCW340.*the 1 features"):
        nlp.initialize(lambda: examples)
    nlp = spacy.blank("en")
    solver = {"@crf_solvers": f"spacy_sparsecrf.{GIS.__name__}.v1"}
    nlp.add_pipe("sparse_crf", config={"solver": solver})
    with pytest.raises(SparseCRFError, match="SC340"):
        nlp.initialize(lambda: examples)
