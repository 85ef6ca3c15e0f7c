"""The estimator: the minimiser of the component and CRFsuite, and scikit-learn's checks."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.sklearn import CRF

from ...support.peers import crfsuite
from ...support.sequences import make_xy
from ...support.toy import blank_with, examples_of, make_sentences, train

X, Y = make_xy()
EXACT = OWLQN(tolerance=1e-7, window=0.0)


@pytest.fixture(scope="module")
def fitted() -> CRF:
    return CRF(c1=0.2, c2=0.005, n_threads=1).fit(X, Y)


def exact(c1: float = 0.2, c2: float = 0.05, **settings: Any) -> CRF:
    return CRF(c1=c1, c2=c2, solver=EXACT, dtype="float64", n_threads=1, **settings)


def all_weights(crf: CRF) -> dict[tuple[str, ...], float]:
    return {**crf.state_features_, **crf.transition_features_, **crf.bigram_features_}


def assert_same(found: dict[Any, float], expected: dict[Any, float], tolerance: float) -> None:
    assert expected
    for key in found.keys() | expected.keys():
        assert found.get(key, 0.0) == pytest.approx(expected.get(key, 0.0), abs=tolerance), key


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("bigrams", [(), ("lower[0]",)])
def test_the_minimiser_is_that_of_the_component(everything, bigrams):
    sentences = make_sentences(30, seed=3)
    templates = ["b:", f"{'*' if bigrams else 'u'}:lower[0]", "u:suffix(3)[0]"]
    config = {"solver": {"tolerance": 1e-7, "window": 0.0}, "l1": 0.2, "l2": 0.1}
    config["sequences"] = "sents"  # Docs are not joined
    learning = {"observed_only": not everything, "dtype": "float64"}
    nlp = blank_with(templates, start_label=False, learning=learning, **config)
    losses = train(nlp, examples_of(nlp, sentences), 20)
    X = [
        [
            {"lower[0]": word.lower(), "suffix(3)[0]": [word[-3:]][: len(word) // 3]}
            for word in words
        ]
        for words, _ in sentences
    ]
    both = dict.fromkeys(("all_possible_states", "all_possible_transitions"), everything)
    crf = exact(bigrams=bigrams, **both).fit(X, [tags for _, tags in sentences])
    assert crf.objective_ == pytest.approx(losses[-1], rel=1e-9)
    assert_same(all_weights(crf), weights_of(nlp.get_pipe("sparse_crf")), 1e-4)


def weights_of(pipe: Any) -> dict[tuple[str, ...], float]:
    """Return a component's weights by the estimator's feature names."""
    found = {}
    for line in pipe.dump():
        _, test, before, label, weight = line.split("\t")
        names = [test.replace("=", ":")] * (test != "always") + [before] * (before != "#") + [label]
        found[tuple(names)] = float(weight)
    return found


@pytest.mark.parametrize(
    ("l1", "states", "transitions"),
    [(0.0, 0, 0), (0.0, 1, 1), (0.2, 0, 0), (0.2, 0, 1), (0.2, 1, 0), (0.2, 1, 1)],
)
def test_the_minimiser_is_that_of_crfsuite(l1, states, transitions, tmp_path):
    """With numbers, which both use as real values, and with features that are False.

    (CRFsuite drops features whose numbers sum to less than 0.)
    """
    rng, c2 = np.random.default_rng(0), 0.05
    numbered = [[{**token, "n": abs(rng.normal())} for token in tokens] for tokens in X]
    stop = {"epsilon": 1e-9, "delta": 0.0, "max_iterations": 2000}
    possible = {"feature.possible_states": states, "feature.possible_transitions": transitions}
    tagger = crfsuite(numbered, Y, tmp_path / "model", c1=l1, c2=c2, **stop, **possible)
    both = {"all_possible_states": bool(states), "all_possible_transitions": bool(transitions)}
    crf = exact(l1, c2, **both).fit(numbered, Y)
    theirs = tagger.info()
    assert_same(crf.state_features_, theirs.state_features, 2e-3)
    assert_same(crf.transition_features_, theirs.transitions, 2e-3)
    assert [*crf.predict(numbered)] == [tagger.tag(tokens) for tokens in numbered]
    tagger.set(numbered[0])
    for t, probabilities in enumerate(crf.predict_marginals_single(numbered[0])):
        for label, p in probabilities.items():
            assert p == pytest.approx(tagger.marginal(label, t), abs=2e-3)


def test_the_certificate_tells_how_near_the_minimum_is(fitted):
    crf = exact().fit(X, Y)
    assert 0.0 <= crf.optimality_ <= 1e-6 < fitted.optimality_
    assert CRF(max_iterations=1).fit(X, Y).n_iter_ == 1 < fitted.n_iter_


def test_a_sequence_of_weight_2_counts_as_two_for_any_number_of_threads():
    weights = np.ones(len(X))
    weights[:5] = 2.0
    weighted = exact().fit(X, Y, sample_weight=weights)
    assert_same(all_weights(weighted), all_weights(exact().fit(X + X[:5], Y + Y[:5])), 1e-5)
    found = [all_weights(CRF(c1=0.1, n_threads=n).fit(X, Y)) for n in (1, 3)]
    assert found[0] == found[1]


def test_labels_may_be_missing_and_rare_features_are_left_out():
    hidden = [[None if t == 1 else label for t, label in enumerate(labels)] for labels in Y]
    crf = CRF(c1=0.2, c2=0.005).fit(X, hidden)
    assert crf.classes_ == sorted({label for labels in Y for label in labels})
    assert crf.score(X, hidden) == 1.0
    kept = CRF(c1=0.01, c2=5e-6, min_freq=20).fit(X, Y).attributes_
    counts = {text: sum(text in {f"word:{w['word']}" for w in s} for s in X) for text in kept}
    assert kept and not any(0 < n < 10 for n in counts.values())
    assert len(kept) < len(CRF(c1=0.01, c2=5e-6).fit(X, Y).attributes_)


def test_marginals_sum_to_one_and_agree_with_predictions(fitted):
    for tokens, labels in zip(fitted.predict_marginals(X), fitted.predict(X), strict=True):
        for probabilities, label in zip(tokens, labels, strict=True):
            assert sum(probabilities.values()) == pytest.approx(1.0)
            assert list(probabilities) == fitted.classes_
            assert probabilities[label] > 0.5


def test_the_score_is_the_share_of_right_tokens(fitted):
    wrong = [["?"] * len(labels) for labels in Y[:30]] + Y[30:]
    share = sum(map(len, Y[30:])) / sum(map(len, Y))
    assert fitted.score(X, Y) == 1.0
    assert fitted.score(X, wrong) == pytest.approx(share)
    assert fitted.score(X, wrong, sample_weight=[0.0] * 30 + [1.0] * 30) == 1.0


def test_one_sequence_none_and_features_that_training_did_not_see(fitted):
    assert fitted.predict_single(X[0]) == fitted.predict(X)[0]
    assert len(fitted.predict([])) == len(fitted.predict_marginals([])) == 0
    assert [*fitted.predict([[], X[0], []])] == [[], fitted.predict_single(X[0]), []]
    more = [[{**token, "new": "x", "number": 3.5} for token in tokens] for tokens in X]
    assert [*fitted.predict(more)] == [*fitted.predict(X)]


CHECKS = ["check_no_attributes_set_in_init", "check_estimator_cloneable", "check_estimator_repr"]
CHECKS += ["check_parameters_default_constructible", "check_get_params_invariance"]
CHECKS += ["check_set_params", "check_valid_tag_types", "check_estimator_tags_renamed"]


@pytest.mark.parametrize("check", CHECKS)
def test_checks_of_scikit_learn(check):
    getattr(estimator_checks, check)("CRF", CRF())


def test_it_ends_a_pipeline():
    def read(sentences: list[list[str]]) -> list[list[dict[str, str]]]:
        return [[{"word": word, "end": word[-3:]} for word in words] for words in sentences]

    words = [words for words, _ in make_sentences(60, seed=1)]
    model = make_pipeline(FunctionTransformer(read), CRF(c1=0.1, c2=0.0)).fit(words, Y)
    assert model.score(words, Y) > 0.95
    model.set_params(crf__c1=0.3)
    assert model.get_params()["crf__c1"] == 0.3


def test_what_is_fitted_again_forgets(fitted):
    crf = clone(fitted).fit(X, Y)
    crf.predict(X)
    other = [["A"] * len(labels) for labels in Y]
    assert [*crf.fit(X, other).predict(X)] == other
    assert not hasattr(crf, "partial_fit")


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        (Y[1:], None, r"SC802\] X has length 60, but y has 59"),
        ([*Y[:3], Y[3][:2], *Y[4:]], None, r"SC802\] X\[3\] has length \d+, but y\[3\] has 2"),
        ([*Y[:3], [1] * len(Y[3]), *Y[4:]], None, r"SC804\] y\[3\]\[0\] is 1"),
        (["x" * len(labels) for labels in Y], None, r"SC804\] y\[0\]\[0\] is 'x"),
        ([*Y[:3], None, *Y[4:]], None, r"SC804\] y\[3\]\[0\] is None"),
        ([*Y[:3], set(Y[3]), *Y[4:]], None, r"SC804\] y\[3\]\[0\] is \{'"),
        ([*Y[:3], [["a"]] * len(Y[3]), *Y[4:]], None, r"SC804\] y\[3\]\[0\] is \['a'\]"),
        (Y, [1.0], r"SC802\] X has length 60, but sample_weight has 1"),
        (Y, [-1.0] * 60, r"SC809\] sample_weight = -1.0"),
        (Y, [float("nan")] * 60, r"SC809\] sample_weight = nan"),
    ],
)
def test_labels_and_weights_that_do_not_fit(y, weight, message):
    with pytest.raises(SparseCRFError, match=message):
        CRF().fit(X, y, sample_weight=weight)


def test_generators_and_empty_sequences():
    crf = CRF().fit(X, ((label for label in labels) for labels in Y))
    assert crf.score(X, ((label for label in labels) for labels in Y)) > 0.5
    whole = crf.predict_log_probability(X[:2], Y[:2])
    found = crf.predict_log_probability([[], X[0], X[1], []], [[], Y[0], Y[1], []])
    assert found.tolist() == [0.0, *whole.tolist(), 0.0]
    assert crf.predict_log_probability([[], X[0]], [[], ["ZZ", *Y[0][1:]]]).tolist()[0] == 0.0
    with pytest.raises(SparseCRFError, match="SC802"):
        crf.predict_log_probability(X[:1], Y[:2])


def test_features_of_pairs_are_binary_in_every_batch():
    rng = np.random.default_rng(0)
    flags = [[{"v": bool(rng.integers(2))} for _ in range(4)] for _ in range(20)]
    labels = [[*rng.choice(["A", "B"], 4)] for _ in range(20)]
    labels = [[str(label) for label in own] for own in labels]
    crf = CRF(c2=0.05, bigrams=["v"]).fit(flags, labels)
    assert crf.bigram_features_
    alone = crf.predict_marginals_single(flags[0])
    assert crf.predict_marginals([flags[0], [{"v": 2.0}]])[0] == alone
    numbers = [[{"v": float(rng.random())} for _ in range(4)] for _ in range(20)]
    with pytest.warns(SparseCRFWarning, match="SCW805.*v"):
        CRF(c2=0.05, bigrams=True).fit(numbers, labels)
    with pytest.warns(SparseCRFWarning, match="SCW804.*'typo'"):
        CRF(bigrams=["v", "typo"]).fit(flags, labels)


SC809 = [("c1", -1.0), ("c1", "a"), ("bigrams", "word"), ("min_freq", 0.5), ("bigrams", 3)]
SC809 += [("max_iterations", -1), ("max_iterations", "3"), ("n_threads", "2")]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(({key: value}, rf"SC809\] {key} = {value!r}") for key, value in SC809),
        ({"c2": float("nan")}, r"SC809\] c2 = nan"),
        ({"solver": "Magic"}, r"SC809\] solver = 'Magic'.*OWLQN.*RPROP"),
        ({"min_freq": 10**6}, "SC351"),
        ({"dtype": "float16"}, "SC310"),
    ],
)
def test_settings_that_cannot_be(settings, message, monkeypatch):
    with pytest.raises(SparseCRFError, match=message):
        CRF(**settings).fit(X, Y)
    monkeypatch.setattr(
        "spacy_sparsecrf.interop.sequences.item_encoding.available_memory", lambda: 100
    )
    with pytest.raises(SparseCRFError, match=r"SC808\] 1 features have numbers"):
        CRF().fit([[{"n": 0.5}] * 30], [["A"] * 30])


@pytest.mark.parametrize(("X", "y"), [([], []), ([[]], [[]]), (X, [[None] * len(x) for x in X])])
def test_nothing_to_learn_from(X, y):
    with pytest.raises(SparseCRFError, match="SC305"):
        CRF().fit(X, y)
    with pytest.raises(NotFittedError, match=r"SC805\] CRF is not"):
        CRF().predict(X)
    weights = "tagger size classes num_attributes attributes state_features transition_features"
    assert all(getattr(CRF(), f"{name}_") is None for name in [*weights.split(), "bigram_features"])
