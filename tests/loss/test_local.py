"""Per-position models: losses and decoding equal enumeration; pipelines."""

import numpy as np
import pytest
import spacy

from spacy_sparsecrf.crf.kernels.layout import Scored
from spacy_sparsecrf.crf.kernels.log_space import normalise_steps
from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.per_token import local_corpus
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

from ..reference import local_loss, random_problem
from ..support.runs import training_of
from ..support.toy import accuracy, blank_with, docs_of, examples_of, tags_of, train

OPTIONS = [
    {},
    {"start_label": False, "n_bigram": 3},
    {"missing": 0.3, "weighted": True, "n_bigram": 3},
    {"n_bigram": 0},
    {"n_unigram": 0, "missing": 0.2},
]


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_loss_and_gradient_equal_enumeration(pairs, options):
    problem, _ = random_problem(61, 3, [5, 0, 4, 1, 6], **options)
    loss = ChainLoss(local_corpus(problem.corpus, 3, pairs), 3, Workers(1))
    n = len(problem.theta) if pairs else len(problem.corpus.unigram_keys) * 3
    assert loss.n_potential == n
    for chosen in (loss.coordinates("all"), np.arange(0, n, 2)):
        problem.theta[np.setdiff1d(np.arange(n), chosen)] = 0.0
        working, theta = loss.restrict(chosen), problem.theta[chosen]
        value, found = working.value_and_grad(theta)
        expected, gradient = local_loss(problem, pairs)
        assert value == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(found, gradient[chosen], atol=1e-10)
    # Outside of the working set, screening returns the gradient.
    coordinates, gradients, _ = loss.screen(working, theta, 1e-3, 10**6)
    np.testing.assert_array_equal(coordinates, np.flatnonzero(np.abs(gradient[:n]) > 1e-3))
    np.testing.assert_allclose(gradients, gradient[coordinates], atol=1e-10)


@pytest.mark.filterwarnings("ignore:.*SCW340")
def test_corpora_without_usable_tokens_or_with_too_many_pairs_are_refused():
    problem, _ = random_problem(65, 3, [5], missing=1.0)
    for kind in ("maxent", "memm"):
        with pytest.raises(SparseCRFError, match="SC305"):
            training_of(problem.corpus, list("abc"), OWLQN(), l1=0.05, l2=0.01, kind=kind)
    with pytest.raises(SparseCRFError, match="SC301"):
        local_corpus(problem.corpus, 2**31 - 1, pairs=True)


def test_scores_far_apart_are_normalised():
    scores = np.array([[0.0] * 8, [900.0, -900.0, 3.0, *[0.0] * 5]])
    pairs = np.zeros((1, 4, 8))
    pairs[0, 0] = [-900.0, 900.0, -3.0, *[0.0] * 5]
    pairs[0, 1, :3] = -1000.0
    normalise_steps(Scored(3, np.array([0, 2]), scores, np.zeros(2, np.int32), pairs))
    np.testing.assert_allclose(scores[0, :3], [-np.log(3.0), 100.0, -900.0], rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "solver", "clusters"),
    [("maxent", "SCGIS", 0), ("memm", "OWLQN", 0), ("maxent", "OWLQN", 2)],
)
def test_pipelines_train_save_load_and_predict_the_same(corpus, tmp_path, kind, solver, clusters):
    templates = ["u:suffix(4)[0]", "u:lower[0]"] + ["b:"] * (kind == "memm")
    own = {"solver": {"@crf_solvers": f"spacy_sparsecrf.{solver}.v1"}}
    nlp = blank_with(templates, model=kind, learning={"clusters": clusters}, **own)
    losses = train(nlp, examples_of(nlp, corpus.train), 4)
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
    nlp = blank_with(model="maxent")
    with pytest.warns(SparseCRFWarning, match="SCW340.*the 1 features"):
        nlp.initialize(lambda: examples_of(nlp, corpus.train))
    nlp = blank_with(solver={"@crf_solvers": "spacy_sparsecrf.GIS.v1"})
    with pytest.raises(SparseCRFError, match="SC340"):
        nlp.initialize(lambda: examples_of(nlp, corpus.train))
