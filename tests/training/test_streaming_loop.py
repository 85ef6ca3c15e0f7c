"""Training on the batches of spaCy's loop."""

import pytest
import spacy
import srsly
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config, minibatch

from spacy_sparsecrf.errors import SparseCRFError

from ..conftest import SHIPPED_CONFIG, Corpus
from ..solvers.in_use import SOLVERS_IN_USE
from ..toy import accuracy, examples_of, make_sentences
from .test_training_loop import run_training

NAMES = {"SGDL1": 0.1, "SGD": 0.0, "AdaGrad": 0.1, "SMD": 0.0, "Perceptron": 0.0}


def config_for(corpus: Corpus, solver: str = "SGDL1", **options):
    """The shipped config with another solver, on batches of words."""
    config = load_config(SHIPPED_CONFIG, overrides=corpus.overrides)
    settings = {"@crf_solvers": f"spacy_sparsecrf.{solver}.v1", **options}
    l1 = NAMES.get(solver, 0.1)
    config["components"]["sparse_crf"].update(l1=l1, l2=0.0, n_threads=1, solver=settings)
    config["training"].update(max_epochs=-1, max_steps=30, patience=0, eval_frequency=10)
    config["training"]["batcher"] = {
        "@batchers": "spacy.batch_by_sequence.v1",
        "size": 16,
        "get_length": None,
    }
    return config


@pytest.mark.parametrize("solver", NAMES)
def test_spacy_train_streams_the_corpus(corpus: Corpus, solver):
    nlp, rows = run_training(config_for(corpus, solver))
    assert len(rows) >= 3
    assert accuracy(nlp, corpus.dev) > 0.9


def test_batches_of_a_finite_corpus_where_the_solver_asks_for_them(corpus: Corpus):
    config = config_for(corpus, online=True)
    config["training"]["max_epochs"] = 4
    nlp, rows = run_training(config)
    assert accuracy(nlp, corpus.dev) > 0.9
    # Each row has the loss of the batches since the row before.
    losses = [float(row[2]) for row in rows]
    assert losses[0] > 0.0
    assert losses[-1] < losses[1]
    stream = nlp.get_pipe("sparse_crf")._session.online.stream
    assert stream._terms.horizon == len(corpus.train)


PASSES = sorted(
    name.removeprefix("spacy_sparsecrf.").removesuffix(".v1")
    for name, make in SOLVERS_IN_USE.items()
    if not make.streaming
)


@pytest.mark.parametrize("solver", PASSES)
def test_solvers_that_need_the_whole_corpus_refuse_a_stream(corpus: Corpus, solver):
    with pytest.raises(SparseCRFError, match=r"SC204.*max_epochs = 0.*SGDL1"):
        init_nlp(config_for(corpus, solver))


def test_the_batcher_of_batch_solvers_is_refused(corpus: Corpus):
    config = config_for(corpus)
    config["training"]["batcher"] = {"@batchers": "spacy_sparsecrf.one_step_per_epoch.v1"}
    with pytest.raises(SparseCRFError, match=r"SC381.*'sparse_crf'.*batch_by_words"):
        init_nlp(config)
    config["training"]["max_epochs"] = 0
    config["components"]["sparse_crf"]["solver"]["online"] = True
    with pytest.raises(SparseCRFError, match="SC381"):
        init_nlp(config)


def begin(solver: str = "SGDL1", examples=None, initialize=None, component=None, **options):
    """A pipeline that learns from batches in a user's own loop, and its examples."""
    nlp = spacy.blank("en")
    settings = {"@crf_solvers": f"spacy_sparsecrf.{solver}.v1", "online": True, **options}
    config = {"solver": settings, "l1": NAMES[solver], "l2": 0.0, "dtype": "float64"}
    config |= component or {}
    nlp.add_pipe("sparse_crf", config=config)
    if initialize:
        nlp.config["initialize"]["components"] = {"sparse_crf": initialize}
    found = examples_of(nlp, make_sentences(60, seed=1) if examples is None else examples)
    nlp.initialize(lambda: found)
    return nlp, found


def weights_of(nlp) -> bytes:
    nlp.get_pipe("sparse_crf").to_bytes()
    return nlp.get_pipe("sparse_crf").model.to_bytes()


def test_losses_add_up():
    nlp, examples = begin(eta0=0.05)
    losses = {"sparse_crf": 100.0}
    nlp.update(examples[:8], losses=losses)
    first = losses["sparse_crf"] - 100.0
    assert first > 0.0
    nlp.update(examples[8:16], losses=losses)
    second = losses["sparse_crf"] - 100.0 - first
    assert 0.0 < second < first * 2
    # Without gold labels there is nothing to add.
    blank = [Example(nlp.make_doc("of the"), nlp.make_doc("of the"))]
    total, before = losses["sparse_crf"], weights_of(nlp)
    nlp.update(blank, losses=losses)
    assert losses["sparse_crf"] == total
    assert weights_of(nlp) == before


def test_an_unknown_label_is_refused_and_leaves_the_weights():
    nlp, examples = begin()
    nlp.update(examples)
    before = weights_of(nlp)
    strange = examples_of(nlp, [(["of", "the"], ["IN", "XX"])])
    with pytest.raises(SparseCRFError, match=r"SC380.*'XX'.*spacy init labels.*'of the '"):
        nlp.update([*examples[:3], *strange])
    assert weights_of(nlp) == before
    nlp.update(examples)
    assert weights_of(nlp) != before


def test_labels_come_from_a_file(corpus: Corpus, tmp_path):
    srsly.write_json(tmp_path / "labels.json", ["DT", "IN", "JJ", "NN", "VB", "XX"])
    config = config_for(corpus)
    labels = {"@readers": "spacy.read_labels.v1", "path": str(tmp_path / "labels.json")}
    config["initialize"]["components"] = {"sparse_crf": {"labels": labels}}
    nlp = init_nlp(config)
    nlp.update(examples_of(nlp, [(["of", "the"], ["IN", "XX"])]))
    assert nlp.get_pipe("sparse_crf").labels[-1] == "XX"


def test_added_labels_may_come_later():
    nlp = spacy.blank("en")
    solver = {"@crf_solvers": "spacy_sparsecrf.SGDL1.v1", "online": True}
    pipe = nlp.add_pipe("sparse_crf", config={"solver": solver})
    pipe.add_label("XX")
    examples = examples_of(nlp, make_sentences(20, seed=1))
    nlp.initialize(lambda: examples)
    nlp.update(examples_of(nlp, [(["of", "the"], ["IN", "XX"])]))
    assert "XX" in pipe.labels


def test_training_continues_from_saved_weights(tmp_path):
    nlp, examples = begin()
    for batch in minibatch(examples, 10):
        nlp.update(batch)
    nlp.to_disk(tmp_path / "saved")
    later, _ = begin(initialize={"init_weights": str(tmp_path / "saved")}, eta0=0.05)
    assert weights_of(later) == weights_of(nlp)
    fresh, _ = begin(eta0=0.05)
    losses = [pipeline.update(examples[:10])["sparse_crf"] for pipeline in (later, fresh)]
    assert losses[0] < 0.5 * losses[1]


def test_weights_of_docs_and_labels_reach_the_stream():
    plain, examples = begin()
    plain.update(examples[:5])
    heavy, _ = begin(component={"learning": {"label_weights": {"NN": 3.0}}})
    heavy.update(examples[:5])
    assert weights_of(heavy) != weights_of(plain)
