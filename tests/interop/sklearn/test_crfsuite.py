"""Scripts for sklearn-crfsuite run with a changed import; the classes have the same interface."""

import pickle
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import RandomizedSearchCV, cross_val_predict

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.sklearn import CRF, estimator, metrics, scorers, utils

from ...support.peers import crfsuite
from ...support.sequences import make_xy

X, Y = make_xy()
X_TEST, Y_TEST = make_xy(20, seed=2)


@pytest.fixture(scope="module")
def crf() -> CRF:
    crf = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    return crf.fit(X, Y)


def test_scripts_evaluate(crf):
    labels = [label for label in crf.classes_ if label != "O"]
    found = crf.predict(X_TEST)
    by_group = sorted(labels, key=lambda name: (name[1:], name[0]))
    assert metrics.flat_f1_score(Y_TEST, found, average="weighted", labels=labels) > 0.9
    report = metrics.flat_classification_report(Y_TEST, found, labels=by_group, digits=3)
    assert all(label in report for label in labels)
    assert crf.score(X_TEST, Y_TEST) == metrics.flat_accuracy_score(Y_TEST, found)
    assert 0.5 < metrics.sequence_accuracy_score(Y_TEST, found) <= 1.0
    flat = utils.flatten(Y_TEST), scorers.metrics.flatten(found)
    with pytest.raises(TypeError, match="positional"):
        metrics.flat_f1_score(Y_TEST, found, ["A"], average="macro")
    with pytest.raises(TypeError, match="each once"):
        metrics.flat_classification_report(Y_TEST, found, ["A"], labels=["B"])
    assert metrics.flat_f1_score(Y_TEST, found, average="macro") == f1_score(*flat, average="macro")


def test_scripts_search_penalties():
    crf = CRF(algorithm="lbfgs", max_iterations=20, all_possible_transitions=True)
    labels = ["DT", "NN"]
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels)
    space = {"c1": [0.05, 5.0], "c2": [0.01, 0.1]}
    options: dict[str, Any] = {"cv": 2, "n_iter": 2, "random_state": 0, "verbose": 0}
    search = RandomizedSearchCV(crf, space, scoring=scorer, **options).fit(X, Y)
    assert {"c1", "c2"} <= search.best_params_.keys()
    assert search.best_estimator_.size_ > 1000
    assert search.cv_results_["mean_test_score"].max() == search.best_score_


def test_scripts_show_weights(crf):
    for (before, label), weight in Counter(crf.transition_features_).most_common(20):
        assert {before, label} <= {*crf.classes_} and weight > -20
    states = Counter(crf.state_features_).most_common()
    assert states[0][1] > 0 > states[-1][1]
    assert {attribute for (attribute, _), _ in states} == {*crf.attributes_}
    assert crf.num_attributes_ == len(crf.attributes_)


def test_scripts_inspect_tagger(crf):
    tagger = crf.tagger_
    info = tagger.info()
    assert info.state_features == crf.state_features_
    assert info.transitions == crf.transition_features_
    assert [*info.labels] == tagger.labels() == crf.classes_
    assert info.header["num_attrs"] == str(crf.num_attributes_)
    assert info.header["size"] == str(crf.size_)
    found = tagger.tag(X_TEST[0])
    shares = [tagger.marginal(label, 0) for label in tagger.labels()]
    assert sum(shares) == pytest.approx(1.0)
    assert 0.0 < tagger.probability(found) <= min(shares[tagger.labels().index(found[0])], 1.0)
    assert tagger.probability(["unknown"] * len(found)) == 0.0
    for label, place in (("ZZ", 0), ("NN", len(found)), ("NN", -1)):
        with pytest.raises(SparseCRFError, match=rf"SC819\].*'{label}' at position {place}:"):
            tagger.marginal(label, place)
    crf.tagger_.set(xseq=X_TEST[1])
    assert crf.tagger_.marginal("NN", 0) == crf.predict_marginals_single(xseq=X_TEST[1])[0]["NN"]


def test_scripts_rank_by_confidence(crf):
    marginals = crf.predict_marginals(X_TEST)
    least = [min(max(token.values()) for token in tokens) for tokens in marginals]
    worst = int(np.argmin(least))
    assert crf.predict_marginals_single(X_TEST[worst]) == marginals[worst]


def test_scripts_plot_iterations(crf):
    rows: list[Any] = []
    same = clone(crf).fit(X, Y, X_TEST, Y_TEST, callback=rows.append)
    losses, seconds = [row.loss for row in rows], [row.seconds for row in rows]
    assert losses == sorted(losses, reverse=True) and seconds == sorted(seconds)
    last = rows[-1]
    assert last.number == same.n_iter_ and last.loss == same.objective_
    assert last.score == same.score(X_TEST, Y_TEST)
    weights = len(same.state_features_) + len(same.transition_features_)
    assert last.n_active == weights
    assert [row.number for row in rows] == [2, *range(12, last.number + 1, 10)]


def test_scripts_predict_by_folds():
    found = cross_val_predict(CRF(c1=0.1, c2=0.1, max_iterations=20), X, Y, cv=3)
    assert metrics.flat_accuracy_score(Y, found) > 0.8


def test_scripts_keep_by_pickle(crf):
    assert isinstance(crf, estimator.CRF)  # a path of sklearn-crfsuite
    copy = pickle.loads(pickle.dumps(crf))  # noqa: S301
    assert [*copy.predict(X_TEST)] == [*crf.predict(X_TEST)]
    assert copy.get_params() == crf.get_params()


def test_scripts_read_generators():
    lazy = CRF(c1=0.1, c2=0.1).fit(((token for token in x) for x in X), (y for y in Y))
    found = lazy.predict((token for token in x) for x in X_TEST)
    assert [*found] == [lazy.predict_single(token for token in x) for x in X_TEST]
    assert lazy.score((x for x in X_TEST), (y for y in Y_TEST)) > 0.9


def test_scripts_train_with_other_algorithms():
    for algorithm, options in {"l2sgd": {"c2": 0.1}, "ap": {}}.items():
        other = CRF(algorithm=algorithm, max_iterations=20, **options).fit(X, Y)
        assert other.score(X_TEST, Y_TEST) > 0.9 and other.n_iter_ <= 20
    assert other.objective_ == pytest.approx(-sum(other.predict_log_probability(X, Y)), rel=1e-3)


@pytest.mark.filterwarnings("ignore:.*SCW803")
def test_the_mean_of_a_perceptron_follows_the_last_weights():
    """Training continues after a pass without an error, until the mean makes none."""
    x = [{"a": 1, "b": 0.5}, {"a": 1}, {"a": 1, "c": 0.5}, {"b": 0.5, "c": 0.5}]
    x += [{"a": 0.5, "c": 1}, {"b": 0.1, "c": 1}, {"a": 1, "b": 0.5}, {}, {"c": 1}]
    y = [*"zzzxxxzzx"]
    crf = CRF("pa").fit([x], [y])
    assert crf.score([x], [y]) == 1.0 and crf.converged_


def test_scripts_train_on_real_values():
    """A feature of 2 counts as two features, one of 0.5 as half a feature."""
    double = [[[*map(str, token.items())] * 2 for token in tokens] for tokens in X]
    numbers = [[{str(item): 2.0 for item in token.items()} for token in tokens] for tokens in X]
    for algorithm in ("ap", "pa", "arow"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same, other = (
                CRF(algorithm, max_iterations=5, dtype="float64").fit(x, Y)
                for x in (double, numbers)
            )
        assert same.score(double, Y) > 0.95
        assert other.state_features_ == pytest.approx(same.state_features_, abs=1e-9)


@pytest.mark.parametrize("options", [{"c1": 0.2, "c2": 0.1}, {"c2": 0.1}], ids=["l1", "l2"])
def test_iterations_end_where_crfsuite_ends(options):
    """After the given number; else near the minimum, or at it with stricter criteria."""
    for n in (1, 3, 25):
        assert CRF(**options, max_iterations=n, delta=0.0).fit(X, Y).n_iter_ == n
    best = CRF(**options, epsilon=1e-6, delta=0.0).fit(X, Y)
    default = CRF(**options).fit(X, Y)
    assert best.objective_ <= default.objective_ <= best.objective_ * (1 + 1e-3)
    assert best.optimality_ <= 1e-6
    assert CRF(**options, epsilon=1e9).fit(X, Y).n_iter_ < default.n_iter_


def test_a_line_is_written_for_each_iteration(capsys):
    rows: list[Any] = []
    dev = [[None, *labels[1:]] for labels in Y_TEST]
    crf = CRF(c1=0.1, max_iterations=12, verbose=True)
    crf.fit(X, Y, X_dev=(iter(x) for x in X_TEST), y_dev=dev, callback=rows.append)
    written = capsys.readouterr().out
    assert f"loss={crf.objective_:.2f}" in written and f"Acc={rows[-1].score:.3f}" in written
    assert written.count("Iter ") == len(rows) and rows[-1].score == crf.score(X_TEST, dev)
    crf.set_params(verbose=False).fit(X, Y, callback=rows.append)
    assert rows[-1].score is None and not capsys.readouterr().out


@pytest.mark.parametrize(
    "options", [{}, {"bigrams": True}, {"start_label": True, "dtype": "float64"}], ids=str
)
def test_weights_are_kept_in_a_file(tmp_path, options):
    """Feature names may be any text; the format is CRFsuite's if it can express the weights."""
    path = tmp_path / "model.crfsuite"
    own = {"} = {\n": "a --> b: 1", "bytes": b"\xff\xfe", "": "\t\u202e "}
    odd = [[{**token, **own} for token in tokens] for tokens in X]
    crf = CRF(c1=0.05, max_iterations=30, model_filename=str(path), **options).fit(odd, Y)
    assert path.read_bytes().startswith(b"lCRF") != bool(options)
    loaded = CRF(model_filename=str(path))
    assert loaded.state_features_ == crf.state_features_
    assert loaded.transition_features_ == crf.transition_features_
    assert loaded.bigram_features_ == crf.bigram_features_
    assert [*loaded.predict(odd)] == [*crf.predict(odd)]
    assert clone(loaded).get_params() == loaded.get_params()
    data, damaged = path.read_bytes(), {b"", b"#mdl#2#1"}
    damaged |= {data[:-9], data.replace(b"attributes", b"attributed").replace(b"CQDB", b"CQDC")}
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(SparseCRFError, match="SC"):
            CRF(model_filename=str(path)).predict(odd)


@pytest.mark.parametrize("where", [("\ud83d", "A"), ("a", "\ud83d")], ids=["feature", "label"])
def test_halves_of_characters_are_refused_before_training(where, monkeypatch):
    monkeypatch.setattr(CRF, "_make_training", None)
    with pytest.raises(SparseCRFError, match=r"SC801\] '.*ud83d'.*surrogates not allowed"):
        CRF().fit([[[where[0]]]], [[where[1]]])


def test_a_model_of_crfsuite_is_read(tmp_path):
    path = str(tmp_path / "model.crfsuite")
    tagger = crfsuite(X, Y, Path(path), c1=0.1, max_iterations=50)
    assert [*CRF(model_filename=path).predict(X)] == [tagger.tag(tokens) for tokens in X]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "arow", "max_iterations": 5}, r"SCW803\] algorithm = 'arow' .*perceptron"),
        ({"linesearch": "Backtracking", "gamma": 1.0}, r"SCW802\] gamma, linesearch: no effect"),
        ({"algorithm": "lbfgs", "solver": "RPROP", "num_memories": 3}, r"SCW802\] algorithm, num_"),
        ({"algorithm": "ap", "c1": 0.1, "max_iterations": 5}, r"SCW802\] c1: .*Perceptron"),
    ],
)
def test_what_has_another_effect_is_warned_of(options, message):
    with pytest.warns(SparseCRFWarning, match=message):
        CRF(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "held_out", "message"),
    [
        ({"algorithm": "sgd"}, {}, r"SC809\] algorithm = 'sgd'"),
        ({"delta": "small"}, {}, r"SC809\] delta = 'small'"),
        ({"period": 0}, {}, r"SC809\] period = 0"),
        ({"c2": -1.0}, {}, r"SC809\] c2 = -1.0"),
        ({}, {"X_dev": X_TEST}, r"SC802\] X_dev.*y_dev has 0"),
        ({}, {"X_dev": X_TEST, "y_dev": Y_TEST[1:]}, r"SC802\] X_dev"),
        ({}, {"X_dev": [3, *X_TEST[1:]], "y_dev": Y_TEST}, r"SC801\] X_dev\[0\]"),
        ({}, {"X_dev": X_TEST, "y_dev": [3, *Y_TEST[1:]]}, r"SC804\].* is 3"),
    ],
)
def test_bad_parameters_are_refused(options, held_out, message):
    with pytest.raises(SparseCRFError, match=message):
        CRF(**options).fit(X, Y, **held_out)
