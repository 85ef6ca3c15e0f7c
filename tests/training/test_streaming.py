"""Online training compared with slow dense references, and with passes over a whole corpus."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
import spacy
import srsly
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config, minibatch

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.per_token import corpus_of_kind
from spacy_sparsecrf.model.coordinates import WeightNames
from spacy_sparsecrf.model.model import CRFModel
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.adagrad import AdaGrad
from spacy_sparsecrf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.solvers.sgd import SCHEDULES, SGD
from spacy_sparsecrf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.solvers.smd import SMD
from spacy_sparsecrf.training.streaming import Stream

from ..conftest import SHIPPED_CONFIG, Corpus
from ..reference import Problem
from ..solvers.test_sgd import clip, complex_step, example_loss
from ..toy import accuracy, examples_of, make_sentences
from .streaming_cases import (
    LABELS,
    NONE,
    SOLVERS,
    Case,
    N,
    has_repeated_tests,
    make_case,
    make_stream,
)
from .test_training_loop import run_training

HORIZON = 7


def assert_same(found: CRFModel, expected: CRFModel, atol: float = 1e-11) -> None:
    for mine, other in ((found.unigram, expected.unigram), (found.bigram, expected.bigram)):
        np.testing.assert_array_equal(mine.keys, other.keys)
        np.testing.assert_array_equal(mine.indptr, other.indptr)
        np.testing.assert_array_equal(mine.labels, other.labels)
        np.testing.assert_array_equal(mine.previous, other.previous)
        np.testing.assert_allclose(mine.values, other.values, atol=atol, rtol=1e-9)


OPTIONS = [{}, {"start_label": False}, {"missing": 0.2}, {"n_bigram": 0}, {"n_unigram": 0}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("penalty", [ElasticNet(0.4, 0.0), ElasticNet(0.3, 0.8)])
def test_sgd_l1_equals_a_slow_twin(penalty, options):
    if penalty.l2 > 0.0:
        # The delay of shrinkage depends on how pairs are evaluated, unless there is one bigram
        # feature, sequences have two tokens or more, and other features occur once in each.
        lengths = [4, 3, 5, 2, 4, 3, 4, 2, 5]
        options = {"n_bigram": 1, **options, "lengths": lengths, "n_values": 60}
    case = next(
        case
        for case in (make_case(seed, **options) for seed in count(5))
        if penalty.l2 == 0.0 or not has_repeated_tests(case)
    )
    stream = make_stream(case, SGDL1(eta0=0.3, decay=0.6, seed=3, horizon=HORIZON), penalty)
    theta, received = np.zeros_like(case.problem.theta), np.zeros_like(case.problem.theta)
    shrunk, due, decayed, seen = np.zeros_like(theta), 0.0, 0.0, 0

    def apply(k: int, w: float) -> None:
        theta[k], received[k] = clip(w * np.exp(shrunk[k] - decayed), due, received[k])
        shrunk[k] = decayed

    for batch, (order, here, born) in zip(case.batches, case.born(3), strict=True):
        for k in np.flatnonzero(here & born):
            apply(k, theta[k])
        total = 0.0
        for i in order:
            value, gradient = example_loss(case.problem, i, theta)
            weight = case.problem.corpus.weights[i]
            total += weight * value
            eta = 0.3 * 0.6 ** (seen / HORIZON)
            due += eta * penalty.l1 / HORIZON
            decayed += eta * penalty.l2 / HORIZON
            for k in np.flatnonzero(case.tests_of(np.array([i])) & born):
                apply(k, theta[k] - eta * weight * gradient[k])
            seen += 1
        assert stream.learn(batch) == pytest.approx(total, rel=1e-9)
        for k in np.flatnonzero(here & born):
            apply(k, theta[k])
        now = theta * np.exp(shrunk - decayed)
        now = np.array([clip(w, due, q)[0] for w, q in zip(now, received, strict=True)])
        assert_same(stream.model(), case.model_of(now))
    assert 0 < np.count_nonzero(now) < len(now)


def weighted_gradient(case: Case, members: np.ndarray, theta: np.ndarray) -> np.ndarray:
    weights = case.problem.corpus.weights
    return sum(weights[i] * example_loss(case.problem, i, theta)[1] for i in members)


def minibatches(order: np.ndarray, size: int) -> list[np.ndarray]:
    return [order[i : i + size] for i in range(0, len(order), size)]


@pytest.mark.parametrize(("batch", "average_from"), [(1, 0), (1, 2), (2, 1)])
@pytest.mark.parametrize(
    ("schedule", "l2"), [*((name, 0.7) for name in SCHEDULES), ("pegasos", 20)]
)
def test_sgd_equals_a_slow_twin(schedule, average_from, batch, l2):
    case, eta = make_case(), 0.1
    solver = SGD(
        schedule=schedule,
        eta0=eta,
        batch=batch,
        decay=0.6,
        average_from=average_from,
        seed=2,
        horizon=HORIZON,
    )
    stream = make_stream(case, solver, ElasticNet(0.0, l2))
    theta, iterates, seen = np.zeros_like(case.problem.theta), [], 0
    n_batches = -(-HORIZON // batch)
    for encoded, order in zip(case.batches, case.orders(2), strict=True):
        averaging = average_from and seen >= (average_from - 1) * HORIZON
        k = seen
        for members in minibatches(order, batch):
            rate = {
                "constant": eta,
                "annealed": eta / (1 + k / HORIZON),
                "exponential": eta * 0.6 ** (k / HORIZON),
                "pegasos": eta * HORIZON / (l2 * (batch + k)),
            }[schedule]
            theta = theta - rate * weighted_gradient(case, members, theta)
            theta = theta / (1 + rate * l2 / n_batches)
            k += batch
            if averaging:
                iterates.append(theta)
        seen += len(order)
        stream.learn(encoded)
        expected = np.mean(iterates, axis=0) if iterates else theta
        assert_same(stream.model(), case.model_of(expected))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("penalty", [ElasticNet(0.2, 0.3), ElasticNet(0.2, 0.0), NONE])
def test_adagrad_equals_a_slow_twin(penalty, batch):
    case = make_case()
    solver = AdaGrad(eta0=0.4, delta=0.5, batch=batch, seed=2, horizon=HORIZON)
    stream = make_stream(case, solver, penalty)
    theta, squares = np.zeros_like(case.problem.theta), np.zeros_like(case.problem.theta)
    n = -(-HORIZON // batch)
    share = ElasticNet(penalty.l1 / n, penalty.l2 / n)
    for encoded, (order, _, born) in zip(case.batches, case.born(2), strict=True):
        for members in minibatches(order, batch):
            g = weighted_gradient(case, members, theta) * (born | (penalty.l1 == 0.0))
            squares += g * g
            rates = 0.4 / (0.5 + np.sqrt(squares))
            theta = np.array(
                [share.prox(theta[k] - rates[k] * g[k], rates[k]) for k in range(len(theta))]
            )
        stream.learn(encoded)
        assert_same(stream.model(), case.model_of(theta))
    assert np.count_nonzero(theta) > 0


@pytest.mark.parametrize(("l2", "decay"), [(0.0, 1.0), (0.4, 0.7)])
def test_smd_equals_a_slow_twin(l2, decay):
    case = make_case()
    solver = SMD(eta0=0.2, mu=0.8, decay=decay, batch=2, seed=4, horizon=HORIZON)
    stream = make_stream(case, solver, ElasticNet(0.0, l2))
    theta, v = np.zeros_like(case.problem.theta), np.zeros_like(case.problem.theta)
    gains, share = np.full_like(theta, 0.2), l2 / 4
    for encoded, order in zip(case.batches, case.orders(4), strict=True):
        for members in minibatches(order, 2):
            parts = [complex_step(case.problem, i, theta, v) for i in members]
            g = sum(part[0] for part in parts) + share * theta
            curved = sum(part[1] for part in parts) + share * v
            gains *= np.maximum(0.5, 1 - 0.8 * g * v)
            theta = theta - gains * g
            v = decay * v - gains * (g + decay * curved)
        stream.learn(encoded)
        assert_same(stream.model(), case.model_of(theta), atol=1e-10)


def test_the_perceptron_equals_a_slow_twin():
    # Initial weights without ties, which other orders of summation would break differently.
    case = make_case(seed=6)
    start = 0.1 * case.problem.theta
    stream = make_stream(case, AveragedPerceptron(seed=4), NONE, init=case.model_of(start))
    theta, iterates = start.copy(), []
    for encoded, order in zip(case.batches, case.orders(4), strict=True):
        wrong = 0
        for i in order:
            there = Problem(case.problem.corpus, N, theta)
            tokens = there.sequences()[i]
            gold = tuple(there.corpus.labels[tokens.start : tokens.stop])
            best = there.best_path(tokens)
            change = there.counts(tokens, gold) - there.counts(tokens, best)
            theta = theta + there.corpus.weights[i] * change
            wrong += sum(a != b for a, b in zip(gold, best, strict=True))
            iterates.append(theta)
        assert stream.learn(encoded) == wrong
        assert_same(stream.model(), case.model_of(np.mean(iterates, axis=0)))
    assert wrong > 0


@pytest.mark.parametrize("kind", ["chain", "maxent", "memm"])
@pytest.mark.parametrize("name", ["sgd-l1", "asg", "adagrad", "smd", "perceptron"])
@pytest.mark.filterwarnings("ignore:.*SCW340")
def test_batches_of_the_whole_corpus_are_passes_of_the_solver(name, kind):
    make, penalty = SOLVERS[name]
    case = make_case(missing=0.2)
    corpus, solver = case.problem.corpus, make(seed=1)
    options = {"l1": penalty.l1, "l2": penalty.l2, "dtype": "float64", "kind": kind}
    stream = Stream(corpus, LABELS, solver, whole=True, **options)
    loss = ChainLoss(corpus_of_kind(corpus, N, kind), N, Workers(1))
    dense = penalty.l1 == 0.0
    coordinates = loss.all_coordinates() if dense else loss.descent_coordinates()
    working = loss.restrict(coordinates, stochastic=True)
    state = solver.start(working, penalty, np.zeros(len(coordinates)))
    keys = corpus.unigram_keys, corpus.bigram_keys
    names = WeightNames(*keys, tuple(LABELS), (), corpus.start_label, kind)
    for _ in range(3):
        stream.learn(corpus)
        solver.step(working, penalty, state)
        expected = names.model(coordinates, state.theta, "float64")
        assert expected.n_active > 0
        assert_same(stream.model(), expected, atol=1e-13)


def test_weights_without_bounds_are_refused_and_not_kept():
    case = make_case()
    stream = make_stream(case, SGD(eta0=0.1), NONE)
    stream.learn(case.batches[0])
    before = stream.model().to_bytes()
    case.batches[1].weights[:] = np.inf
    with pytest.raises(SparseCRFError, match="SC338.*SGD"), np.errstate(all="ignore"):
        stream.learn(case.batches[1])
    assert stream.model().to_bytes() == before
    assert np.isfinite(stream.learn(case.batches[2]))


def test_what_cannot_be_learnt_from_batches_is_refused():
    case = make_case()
    with pytest.raises(SparseCRFError, match=r"SC383.*clusters = 2\..*clusters = 0"):
        make_stream(case, SGDL1(), NONE, kind="maxent", clusters=2)
    with pytest.raises(SparseCRFError, match="SC308.*SGD"):
        make_stream(case, SGD(), ElasticNet(0.1, 0.0))
    with pytest.raises(SparseCRFError, match="SC336.*Perceptron"):
        make_stream(case, AveragedPerceptron(), ElasticNet(0.0, 0.1))
    with pytest.raises(SparseCRFError, match="SC306.*horizon"):
        SGDL1(horizon=-1)


# Training on batches in spaCy's loop.

NAMES = {"SGDL1": 0.1, "SGD": 0.0, "AdaGrad": 0.1, "SMD": 0.0, "Perceptron": 0.0}


def config_for(corpus: Corpus, solver: str = "SGDL1", **options):
    """Return the shipped config with another solver, on batches of words."""
    config = load_config(SHIPPED_CONFIG, overrides=corpus.overrides)
    config["components"]["sparse_crf"]["features"]["templates"].remove("@word_labels")
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
    # Each row shows the loss of the batches since the preceding row.
    losses = [float(row[2]) for row in rows]
    assert losses[0] > 0.0
    assert losses[-1] < losses[1]
    stream = nlp.get_pipe("sparse_crf")._session.online.stream
    assert stream._terms.horizon == len(corpus.train)


@pytest.mark.parametrize("solver", ["OWLQN", "SAG", "GIS"])
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
    """Return a pipeline that learns from batches in a custom loop, and its examples."""
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
    # Without gold labels, nothing is added.
    blank = [Example(nlp.make_doc("of the"), nlp.make_doc("of the"))]
    total, before = losses["sparse_crf"], weights_of(nlp)
    nlp.update(blank, losses=losses)
    assert losses["sparse_crf"] == total
    assert weights_of(nlp) == before


def test_labels_come_from_a_file(corpus: Corpus, tmp_path):
    srsly.write_json(tmp_path / "labels.json", ["DT", "IN", "JJ", "NN", "VB", "XX"])
    config = config_for(corpus)
    labels = {"@readers": "spacy.read_labels.v1", "path": str(tmp_path / "labels.json")}
    config["initialize"]["components"] = {"sparse_crf": {"labels": labels}}
    nlp = init_nlp(config)
    nlp.update(examples_of(nlp, [(["of", "the"], ["IN", "XX"])]))
    assert nlp.get_pipe("sparse_crf").labels[-1] == "XX"


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
