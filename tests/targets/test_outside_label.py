"""A label of tokens that plays outside, which scores, weights and thresholds leave out."""

import random
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.tools.analysis.error_analysis import find_mistakes

from ..support.commands import run
from ..support.toy import blank_with, train

pytestmark = pytest.mark.usefixtures("own_extensions")

OUTSIDE = "NONE"
SCORES = "tag_p", "tag_r", "tag_f", "tag_acc"


def target(attr: str = "tag", **settings: Any) -> dict[str, Any]:
    return {
        "@crf_targets": "spacy_sparsecrf.TokenAttribute.v1",
        "attr": attr,
        "outside": OUTSIDE,
        **settings,
    }


def marked(n: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """Return texts; of the words "end", two of five have a full stop, of others one of twenty."""
    rng = random.Random(seed)
    texts = []
    for _ in range(n):
        words = rng.choices(["end", "a", "b", "c", "d"], k=12)
        odds = [0.4 if word == "end" else 0.05 for word in words]
        texts.append((words, ["." if rng.random() < p else OUTSIDE for p in odds]))
    return texts


def examples_of(nlp, texts, attr: str = "tag") -> list[Example]:
    examples = []
    for words, marks in texts:
        gold = Doc(nlp.vocab, words=words, tags=marks if attr == "tag" else None)
        if attr != "tag":
            for token, mark in zip(gold, marks, strict=True):
                token._.mark = mark
        examples.append(Example(Doc(nlp.vocab, words=words), gold))
    return examples


def trained(attr: str = "tag", **config: Any):
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": ["u:", "u:lower[0]"]}
    nlp = blank_with(target=target(attr), features=features, **config)
    train(nlp, examples_of(nlp, marked(60, 1), attr), 3)
    return nlp


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("marks")
    trained().to_disk(folder / "model")
    nlp = spacy.blank("xx")
    for name, seed in (("train", 1), ("dev", 2)):
        docs = [example.reference for example in examples_of(nlp, marked(60, seed))]
        DocBin(docs=docs).to_disk(folder / f"{name}.spacy")
    return folder


def scores_of(path: Path, **decoding: Any) -> dict[str, float]:
    config = {f"components.sparse_crf.{key}": value for key, value in decoding.items()}
    nlp = spacy.load(path / "model", config=config)
    return nlp.evaluate(examples_of(nlp, marked(60, 2)))


def test_scores_are_of_the_other_labels():
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe("sparse_crf", config={"target": target()})
    gold = Doc(nlp.vocab, words=["a", "b", "c", "d", "e"], tags=[".", ".", OUTSIDE, "", ","])
    guess = Doc(nlp.vocab, words=["a", "b", "c", "d", "e"], tags=[".", OUTSIDE, ".", ".", "."])
    scores = pipe.score([Example(guess, gold)])
    # Right: a; wrong: c and e; d has no gold label; b and e are missed.
    assert [scores[f"tag_{key}"] for key in "prf"] == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert scores["tag_acc"] == pytest.approx(1 / 4)
    others = Doc(nlp.vocab, words=["ab", "c", "d", "e"], tags=[".", ".", "", ","])
    assert pipe.score([Example(others, gold)])["tag_p"] == 0.5, "ab is two gold tokens"


def test_outside_weight_and_thresholds_trade_recall_for_precision(path):
    plain, more = scores_of(path), scores_of(path, **{"decoding.outside_weight": -1.5})
    assert plain["tag_r"] < 0.1 and more["tag_r"] > 0.5 and more["tag_f"] > plain["tag_f"] + 0.2
    weight = {"decoding.outside_weight": -6.0}
    everywhere = scores_of(path, **weight)
    assert everywhere["tag_r"] == 1.0 and everywhere["tag_p"] < 0.2
    kept = scores_of(path, threshold=0.2, **weight)
    by_label = scores_of(path, **weight, **{"decoding.thresholds": [[".", 0.2]]})
    assert {key: kept[key] for key in SCORES} == {key: by_label[key] for key in SCORES}
    assert kept["tag_p"] > 0.3 and kept["tag_r"] > 0.5
    assert scores_of(path, threshold=1.0, **weight)["tag_r"] == 0.0


def test_what_is_kept_has_no_threshold(path):
    config = {"components.sparse_crf.threshold": 1.0}
    nlp = spacy.load(path / "model", config=config)
    doc = nlp.get_pipe("sparse_crf")(Doc(nlp.vocab, words=["a", "a"], tags=[".", ""]))
    assert [token.tag_ for token in doc] == [".", OUTSIDE]


def test_the_command_calibrates(path, tmp_path):
    report = run(
        "calibrate",
        path / "model",
        path / "dev.spacy",
        "--outside",
        1,
        "--best-f",
        1,
        "--output",
        tmp_path / "out",
    ).output
    assert "Weight of the outside label: -" in report and "threshold" in report
    rows = {line.split()[0]: line.split() for line in report.splitlines() if line.strip()}
    nlp = spacy.load(tmp_path / "out")
    assert nlp.get_pipe("sparse_crf").settings.decoding.outside_weight < 0.0
    scores = nlp.evaluate(examples_of(nlp, marked(60, 2)))
    assert scores["tag_f"] > scores_of(path)["tag_f"] + 0.2
    for row in ("all", "."):
        assert rows[row][-3:] == [f"{100 * scores[f'tag_{key}']:.2f}" for key in "prf"]


def test_errors_are_spurious_or_missed(path):
    nlp = spacy.load(path / "model")
    found = find_mistakes(nlp.get_pipe("sparse_crf"), examples_of(nlp, marked(60, 2)))
    assert {confusion.fault for confusion in found.confusions} <= {"missed", "spurious"}
    assert [score.label for score in found.scores] == ["", "."]


def test_the_score_may_select_the_model(path, tmp_path):
    config = run("config", "tagger", "--lang", "xx").output
    config = config.replace('attr = "tag"', f'attr = "tag"\noutside = "{OUTSIDE}"')
    config = config.replace("tag_acc = 1.0", "tag_f = 1.0")
    (tmp_path / "a.cfg").write_text(config)
    options = ["--components.crf.decoding.outside_weight", -1.5, "--training.max_steps", 2]
    options += ["--paths.train", path / "train.spacy", "--paths.dev", path / "dev.spacy"]
    shown = run("train", tmp_path / "a.cfg", "--output", tmp_path / "out", *options).output
    assert "TAG_F" in shown and "SCW" not in shown
    meta = spacy.load(tmp_path / "out" / "model-best").meta["performance"]
    assert meta["tag_f"] > 0.2 and meta["tag_acc"] < 0.9


def test_extension_attributes_have_an_outside_label_too():
    nlp = trained("_.mark", decoding={"outside_weight": -1.5})
    scores = nlp.evaluate(examples_of(nlp, marked(20, 3), "_.mark"))
    assert scores["mark_r"] > 0.5 and nlp("end").to_json() and nlp("end")[0]._.mark == "."


def test_a_wrong_outside_label_is_refused():
    nlp = blank_with(target=target(outside="NON"))
    examples = examples_of(nlp, marked(5, 1))
    with pytest.raises(SparseCRFError, match=r"SC419.*target\] outside.*'NON'.*mean NONE"):
        nlp.initialize(lambda: examples)
    nlp = blank_with(target=target(), decoding={"thresholds": {OUTSIDE: 0.5}})
    with pytest.raises(SparseCRFError, match=r"SC417.*'NONE'. Choose from: \.\.$"):
        nlp.initialize(lambda: examples)
