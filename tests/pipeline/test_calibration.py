"""Calibration: results match their definition, and hold for predictions."""

from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.pipeline.settings import DecodingSettings
from spacy_sparsecrf.tools.analysis.calibration import (
    best_weight,
    calibrate,
    reliability,
    threshold_of,
)
from spacy_sparsecrf.tools.pages.rendering import render

from ..support.commands import run
from ..support.toy import blank_with, examples_of, train

WORDS = ["ada", "bob", "rome", "oslo", "went", "to", "met", "in"]


def made_up(nlp: Language, n: int, seed: int) -> list[Example]:
    """Return sentences in which a share of the names is not annotated."""
    rng, examples = np.random.default_rng(seed), []
    for _ in range(n):
        words = [WORDS[i] for i in rng.integers(len(WORDS), size=6)]
        doc = Doc(nlp.vocab, words=words)
        doc.ents = [
            Span(doc, i, i + 1, label="PER" if word in WORDS[:2] else "LOC")
            for i, word in enumerate(words)
            if word in WORDS[:4] and rng.random() > (0.25 if word in WORDS[:3] else 0.45)
        ]
        examples.append(Example(Doc(nlp.vocab, words=words), doc))
    return examples


@pytest.fixture(scope="module")
def noisy(tmp_path_factory) -> Path:
    """A pipeline that predicts every name, right in about three of four cases."""
    nlp = blank_with(factory="sparse_crf_ner", sequences="sents")
    examples = made_up(nlp, 150, 1)
    train(nlp, examples, 4)
    path = tmp_path_factory.mktemp("noisy")
    nlp.to_disk(path)
    return path


scored = st.lists(st.tuples(st.sampled_from([0.1, 0.4, 0.5, 0.9, 1.0]), st.booleans()), min_size=1)


@given(scored)
def test_a_threshold_is_the_least_that_the_bound_allows(pairs):
    p, right = (np.array(column) for column in zip(*pairs, strict=True))
    found = threshold_of("A", p, right=right, n_gold=0, precision=0.7)
    value, n_kept, right_kept = found.value, found.n_kept, found.right_kept
    most = 1.0 - 0.7
    assert (found.n, found.right) == (len(p), pytest.approx(right.mean()))
    allowed = [
        t for t in np.unique(p) if (np.sum(~right[p >= t]) + 1) / (np.sum(p >= t) + 1) <= most
    ]
    if np.mean(~right) <= most or (allowed and min(allowed) == p.min()):
        assert (value, n_kept) == (0.0, len(p))
    else:
        assert value == (min(allowed) if allowed else 1.0)
    if value < 1.0:
        assert n_kept == np.sum(p >= value)
        assert right_kept == pytest.approx(right[p >= value].mean())


@given(scored, st.integers(0, 5), st.sampled_from([0.5, 1.0, 2.0]))
def test_the_best_threshold_has_the_largest_f(pairs, n_missed, beta):
    p, right = (np.array(column) for column in zip(*pairs, strict=True))
    n_gold = int(right.sum()) + n_missed

    def f_of(t: float) -> float:
        return (1 + beta**2) * np.sum(right[p >= t]) / (np.sum(p >= t) + beta**2 * n_gold)

    found = threshold_of("A", p, right=right, n_gold=n_gold, beta=beta)
    assert f_of(found.value) == pytest.approx(max(map(f_of, p)))
    assert found.value == 0.0 or found.n_kept == np.sum(p >= found.value)
    if beta == 1.0:
        assert found.after[2] == pytest.approx(f_of(found.value))


def test_reliability_of_calibrated_probabilities_is_near_the_diagonal():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    found = reliability(p, rng.random(len(p)) < p)
    assert sum(each.n for each in found.bins) == len(p) and len(found.bins) == 10
    assert found.error < 0.02
    assert all(each.low <= each.probability <= each.low + 0.1 for each in found.bins)
    assert reliability(p, rng.random(len(p)) < p**2).error > 0.1


def test_the_wanted_precision_is_reached_on_other_data(noisy):
    nlp = spacy.load(noisy)
    pipe = nlp.get_pipe("sparse_crf_ner")
    found = calibrate(pipe, made_up(nlp, 400, 2), 0.7)
    assert found.n == sum(each.n for each in found.thresholds)
    assert found.after.error <= found.before.error or found.temperature == 1.0
    assert pipe.settings.decoding == DecodingSettings()
    decoding = found.decoding(pipe.settings.decoding)
    pipe.settings = pipe.settings.model_copy(update={"decoding": decoding})
    scores = nlp.evaluate(made_up(nlp, 400, 3))
    assert all(each["p"] > 0.65 for each in scores["ents_per_type"].values() if each["p"])
    assert scores["ents_r"] > 0.3


def test_best_labels_stay_and_probabilities_change_with_temperature(noisy):
    plain = spacy.load(noisy)
    warm = spacy.load(noisy, config={"components.sparse_crf_ner.decoding.temperature": 2.0})
    doc = Doc(plain.vocab, words=["ada", "met", "bob", "in", "rome", "oslo"])
    pipes = [each.get_pipe("sparse_crf_ner") for each in (plain, warm)]
    found = [pipe.predict([doc])[0].tolist() for pipe in pipes]
    assert found[0] == found[1]
    p, q = (pipe.marginals(doc) for pipe in pipes)
    np.testing.assert_allclose(q.sum(axis=1), 1.0)
    assert q.max(axis=1).mean() < p.max(axis=1).mean()
    labels = [pipes[0].label_data[i] for i in found[0]]
    # The probability ratio of two paths becomes its square root.
    ratios = [
        np.log(best[1] / second[1]) for best, second in (pipe.nbest(doc, 2) for pipe in pipes)
    ]
    assert ratios[1] == pytest.approx(ratios[0] / 2.0, rel=1e-6)
    assert pipes[0].log_probability(doc, labels) > pipes[1].log_probability(doc, labels)


def test_thresholds_by_type_replace_the_component_s_and_annotation_is_kept(noisy):
    own = {"threshold": 0.0, "decoding.thresholds": {"LOC": 1.0}}
    config = {f"components.sparse_crf_ner.{key}": value for key, value in own.items()}
    nlp = spacy.load(noisy, config=config)
    doc = nlp(Doc(nlp.vocab, words=["ada", "met", "bob", "in", "rome"]))
    assert {each.label_ for each in doc.ents} == {"PER"}
    config["components.sparse_crf_ner.decoding.thresholds"] = {"LOCATION": 1.0}
    with pytest.raises(SparseCRFError, match=r"SC417.*'LOCATION'.*LOC"):
        spacy.load(noisy, config=config)
    nlp = spacy.load(noisy)
    nlp.get_pipe("sparse_crf_ner").cfg["threshold"] = 0.0  # as spaCy sets it
    doc = Doc(nlp.vocab, words=["ada", "met", "bob"], ents=["O", "B-LOC", "O"])
    assert ("met", "LOC") in [(ent.text, ent.label_) for ent in nlp(doc).ents]


def test_the_weight_of_the_outside_label_has_the_best_f(noisy):
    nlp = spacy.load(noisy)
    pipe, name = nlp.get_pipe("sparse_crf_ner"), "sparse_crf_ner"
    examples, weights, scores = made_up(nlp, 70, 6), [], []
    for beta in (0.3, 1.0, 3.0):
        found = calibrate(pipe, examples, beta=1.0, outside_beta=beta)
        weights.append(found.outside_weight)
        own = found.decoding(pipe.settings.decoding).model_copy(update={"thresholds": {}})
        config = {f"components.{name}.decoding.outside_weight": own.outside_weight}
        weighted = spacy.load(noisy, config=config)
        settings = weighted.get_pipe(name).settings
        assert weighted.from_bytes(weighted.to_bytes()).get_pipe(name).settings == settings
        scores.append(weighted.evaluate(made_up(weighted, 70, 6)))
        # Precision, recall and F1 before thresholds include the weight.
        n = sum(each.n for each in found.thresholds)
        right = sum(each.n * each.right for each in found.thresholds)
        assert scores[-1]["ents_p"] == pytest.approx(right / n)
    assert weights == sorted(weights, reverse=True) and weights[0] > weights[-1]
    recall = [each["ents_r"] for each in scores]
    assert recall == sorted(recall) and recall[0] < recall[-1]
    assert scores[1]["ents_f"] >= max(each["ents_f"] for each in scores)
    assert scores[1]["ents_f"] >= nlp.evaluate(made_up(nlp, 70, 6))["ents_f"]
    assert best_weight(lambda w: -abs(w + 1.37)) == pytest.approx(-1.37, abs=0.02)
    with pytest.raises(SparseCRFError, match=r"SC644.*--outside 0\.0"):
        calibrate(pipe, examples, outside_beta=0.0)


def test_other_predictions_during_a_calibration_keep_the_saved_settings(noisy, monkeypatch):
    config = {"components.sparse_crf_ner.threshold": 0.75}
    nlp = spacy.load(noisy, config=config)
    pipe, examples = nlp.get_pipe("sparse_crf_ner"), made_up(nlp, 40, 7)
    docs = [example.predicted.copy() for example in examples]

    def entities() -> list[list[tuple[int, int, str]]]:
        predicted = map(nlp, [doc.copy() for doc in docs])
        return [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in predicted]

    expected, settings = entities(), pipe.settings
    gold, others = type(pipe.target).gold, []

    def interrupted(self, example):
        if example is examples[0]:
            others.append((entities(), pipe.settings))
        return gold(self, example)

    monkeypatch.setattr(type(pipe.target), "gold", interrupted)
    calibrate(pipe, examples, beta=1.0, outside_beta=2.0)
    assert len(others) > 10 and all(other == (expected, settings) for other in others)


def test_labels_of_tokens_get_a_temperature_only(trained, corpus):
    pipe, examples = trained.get_pipe("sparse_crf"), examples_of(trained, corpus.dev)
    found = calibrate(pipe, examples)
    assert found.thresholds == () and found.n == sum(len(words) for words, _ in corpus.dev)
    assert "<h2>Reliability<" in render(found)
    with pytest.raises(SparseCRFError, match="SC644"):
        calibrate(pipe, examples, precision=0.9)


def test_what_cannot_be_calibrated_is_refused(noisy):
    nlp = spacy.load(noisy)
    pipe = nlp.get_pipe("sparse_crf_ner")
    with pytest.raises(SparseCRFError, match="SC644.*--precision 1.0"):
        calibrate(pipe, made_up(nlp, 5, 4), 1.0)
    for precision, beta in ((0.9, 1.0), (None, 0.0), (None, float("inf"))):
        with pytest.raises(SparseCRFError, match=f"SC644.*--best-f {beta}"):
            calibrate(pipe, made_up(nlp, 5, 4), precision, beta)
    doc = Doc(nlp.vocab, words=["went", "to"])
    others = made_up(nlp, 20, 4)
    others[0].reference.ents = [Span(others[0].reference, 0, 1, "NEW")]
    with pytest.warns(SparseCRFWarning, match=r"SCW641.*NEW \(1\)"):
        found = calibrate(pipe, others)
    # Also gold spans of types that are never predicted count.
    expected = nlp.evaluate([Example(x.predicted.copy(), x.reference) for x in others])
    assert found.overall.before == pytest.approx([expected[f"ents_{key}"] for key in "prf"])
    with pytest.raises(SparseCRFError, match="SC640"):
        calibrate(pipe, [Example(doc, doc.copy())])


def test_the_command_saves_only_on_request(noisy, tmp_path):
    nlp = spacy.load(noisy)
    data, out, page = tmp_path / "dev.spacy", tmp_path / "out", tmp_path / "page.html"
    DocBin(docs=[each.reference for each in made_up(nlp, 60, 5)]).to_disk(data)

    def decoding_of(path: Path) -> DecodingSettings:
        return spacy.load(path).get_pipe("sparse_crf_ner").settings.decoding

    report = run("calibrate", noisy, data, "--html", page).output
    assert "expected calibration error" in report and "Nothing was saved" in report
    assert "threshold" not in report and "<svg" in page.read_text(encoding="utf8")
    # Precision, recall and F1 equal those of spaCy's scorer.
    rows = {line.split()[0]: line.split() for line in report.splitlines() if line.strip()}
    scores = nlp.evaluate(made_up(nlp, 60, 5))
    overall = {key: scores[f"ents_{key}"] for key in "prf"}
    for label, each in {"all": overall, **scores["ents_per_type"]}.items():
        assert [f"{100 * each[key]:.2f}" for key in "prf"] == rows[label][-3:]
    saved = run("calibrate", noisy, data, "--precision", 0.7, "--output", out).output
    assert "threshold" in saved and "To undo: [components.sparse_crf_ner.decoding]" in saved
    assert set(decoding_of(out).thresholds) == {"LOC", "PER"}
    assert decoding_of(noisy) == DecodingSettings()
    # Setting only a temperature keeps thresholds.
    thresholds = decoding_of(out).thresholds
    assert "SC608" in run("calibrate", out, data, "--output", out, code=1).stderr
    run("calibrate", out, data, "--output", out, "--force")
    assert decoding_of(out).thresholds == thresholds
    options = ("--best-f", 0.5, "--outside", 4, "--output", out, "--force")
    report = run("calibrate", out, data, *options).output
    assert decoding_of(out).thresholds != thresholds
    assert f"outside label: {decoding_of(out).outside_weight:g}\n" in report


def test_calibrating_on_training_data_is_warned_of(noisy, tmp_path):
    data = tmp_path / "train.spacy"
    nlp = spacy.load(noisy, config={"paths.train": str(data)})
    nlp.to_disk(tmp_path / "model")
    DocBin(docs=[each.reference for each in made_up(nlp, 20, 1)]).to_disk(data)
    with pytest.warns(SparseCRFWarning, match="SCW640.*train.spacy"):
        run("calibrate", tmp_path / "model", data)
