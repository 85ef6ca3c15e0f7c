"""Spans that may overlap: one component with a chain for each group of types."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.analysis.calibration import calibrate
from spacy_sparsecrf.analysis.error_analysis import find_mistakes
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.model.model import CRFModel

from ..decoding.span_cases import SpanTriple, add_spans, spans_of

# Some Docs have no group of spans.
pytestmark = pytest.mark.filterwarnings("ignore:.SCW227")
NAME = "sparse_crf_spans"
TEMPLATES = ["b:", "b:lower[0]", "u:", "u:lower[0]", "u:lower[-1]", "u:lower[1]"]
SPANS = "spacy_sparsecrf.Spans.v1"
# Phrases with nested spans, and without; some words occur with several annotations.
PHRASES: list[tuple[str, list[SpanTriple]]] = [("mayor of ulm", [(0, 3, "PER"), (2, 3, "LOC")])]
PHRASES += [("bank of kiel", [(0, 3, "ORG"), (2, 3, "LOC")]), ("ulm", [(0, 1, "LOC")])]
PHRASES += [("ada", [(0, 1, "PER")]), ("ulm", [(0, 1, "LOC"), (0, 1, "ORG")]), ("runs", [])]
PHRASES += [("of", [])]


def pipeline(overlap: object = (("PER", "ORG"),), scheme: str = "BILUO", **config: Any) -> Language:
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": TEMPLATES}
    target = {"@crf_targets": SPANS, "scheme": scheme, "overlap": overlap}
    solver = {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1", "tolerance": 1e-9}
    own = {"features": features, "target": target, "solver": solver, "dtype": "float64"}
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config={**own, "decoding": {"scores": True}, "n_threads": 1, **config})
    return nlp


def make_examples(nlp: Language, n: int, types: tuple[str, ...] = ("PER", "ORG", "LOC")) -> Any:
    """Return Examples, the same in each call, with the spans of some types."""
    rng, found = random.Random(0), []
    for i in range(n):
        words, spans = [], []
        for text, own in rng.choices(PHRASES, k=rng.randint(1, 4)):
            spans += [(len(words) + a, len(words) + b, name) for a, b, name in own if name in types]
            words += text.split()
        reference = Doc(nlp.vocab, words=words)
        # Some Docs have no annotation.
        if i % 10:
            add_spans(reference, spans, "sc")
        found.append(Example(Doc(nlp.vocab, words=words), reference))
    return found


def train(nlp: Language, examples: list[Example], n: int = 30, **settings: Any) -> float:
    pipe = nlp.get_pipe(NAME)
    pipe.initialize(lambda: examples, nlp=nlp, **settings)
    for _ in range(n):
        losses = nlp.update(examples[:1])
    return losses[NAME]


def annotated(nlp: Language, examples: list[Example]) -> list[list[tuple[SpanTriple, float]]]:
    docs = [nlp(Doc(nlp.vocab, words=[t.text for t in e.predicted])) for e in examples]
    return [
        sorted(zip(spans_of(doc, "sc"), doc.spans["sc"].attrs["scores"].tolist(), strict=True))
        for doc in docs
    ]


@pytest.fixture(scope="module")
def trained() -> Language:
    nlp = pipeline()
    train(nlp, make_examples(nlp, 40))
    return nlp


@pytest.mark.parametrize("scheme", ["BILUO", "IOB2"])
def test_chains_are_components_of_their_own(scheme: str):
    nlp = pipeline(scheme=scheme)
    objective = train(nlp, make_examples(nlp, 40))
    pipe, annotations = nlp.get_pipe(NAME), annotated(nlp, make_examples(nlp, 40))
    expected: list[list[tuple[SpanTriple, float]]] = [[] for _ in range(40)]
    total = 0.0
    for chain in pipe.target.chains(pipe.label_data):
        types = chain.target.names_of(chain.labels)
        other = pipeline(False, scheme=scheme)
        examples = make_examples(other, 40, types)
        total += train(other, examples)
        for found, more in zip(expected, annotated(other, examples), strict=True):
            found += more
        single, own = other.get_pipe(NAME).model, pipe.model.with_labels(chain.ids, chain.labels)
        weights = [
            {(key, model.labels[y]): value for (key, _, y), value in model.unigram.entries()}
            for model in (single, own)
        ]
        assert weights[0].keys() == weights[1].keys()
        assert all(abs(weights[0][key] - weights[1][key]) < 1e-4 for key in weights[0])
    assert objective == pytest.approx(total, rel=1e-8)
    for found, wanted in zip(annotations, expected, strict=True):
        spans, probabilities = zip(*found, strict=True) if found else ((), ())
        wanted.sort()
        assert list(spans) == [span for span, _ in wanted]
        assert probabilities == pytest.approx([p for _, p in wanted], abs=1e-5)
    assert nlp.evaluate(make_examples(nlp, 40))["spans_sc_f"] > 0.8


def test_they_are_saved_and_explained(trained: Language, tmp_path: Path):
    examples = make_examples(trained, 40)
    trained.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    assert annotated(loaded, examples) == annotated(trained, examples)
    pipe = loaded.get_pipe(NAME)
    assert set(pipe.labels) == {"LOC", "ORG", "PER"}
    shown = "\n".join(pipe.dump())
    assert "O-LOC" in shown and "O-PER+ORG" in shown
    assert pipe.explain().transitions
    assert pipe.add_label("DATE") == 1 and pipe.add_label("B-DATE") == 0
    assert pipe.add_label("B-cell") == 1 and "I-B-cell" in pipe.label_data
    assert pipe.add_label("O") == pipe.add_label("O-LOC") == 0
    assert annotated(loaded, examples) == annotated(trained, examples)


def test_a_run_goes_on(trained: Language, tmp_path: Path):
    examples = make_examples(trained, 40)
    whole, cut, rest = pipeline(), pipeline(), pipeline()
    train(whole, examples, 4)
    train(cut, examples, 2, checkpoint=tmp_path / "run")
    train(rest, examples, 4, checkpoint=tmp_path / "run")
    assert [*rest.get_pipe(NAME).dump()] == [*whole.get_pipe(NAME).dump()]
    trained.to_disk(tmp_path / "saved")
    again = pipeline()
    objective = train(again, examples, 1, init_weights=tmp_path / "saved")
    assert objective == pytest.approx(trained.get_pipe(NAME)._session.training.objective, rel=1e-6)
    near = pipeline(learning={"prior": str(tmp_path / "saved")}, l1=50.0)
    train(near, examples, 1)
    assert [*near.get_pipe(NAME).dump()] == [*trained.get_pipe(NAME).dump()]


def test_kept_spans_and_thresholds(trained: Language, tmp_path: Path):
    trained.to_disk(tmp_path / "saved")
    nlp = spacy.load(tmp_path / "saved", config={f"components.{NAME}.threshold": 1.0})
    doc = add_spans(Doc(nlp.vocab, words=["mayor", "of", "ulm"]), [(0, 2, "ORG")], "sc")
    found = spans_of(trained(doc.copy()), "sc")
    path, by_type = tmp_path / "saved", {"LOC": 1.0, "PER": 0.0}
    other = spacy.load(path, config={f"components.{NAME}.decoding.thresholds": by_type})
    assert spans_of(other(Doc(other.vocab, words=["mayor", "of", "ulm"])), "sc") == [
        span
        for span in spans_of(trained(Doc(trained.vocab, ["mayor", "of", "ulm"])), "sc")
        if span[2] != "LOC"
    ]
    with pytest.raises(SparseCRFError, match="SC417.*'X'"):
        spacy.load(path, config={f"components.{NAME}.decoding.thresholds": {"X": 0.5}})
    assert found[0] == (0, 2, "ORG") and (2, 3, "LOC") in found and (0, 3, "PER") not in found
    assert spans_of(nlp(doc), "sc") == [(0, 2, "ORG")]
    assert spans_of(trained(Doc(trained.vocab, words=["ulm"])), "sc")
    assert len(trained(Doc(trained.vocab)).spans["sc"]) == 0


def test_what_is_told_of_one_chain_only(trained: Language):
    examples, pipe = make_examples(trained, 3), trained.get_pipe(NAME)
    for ask in (
        lambda: pipe.marginals(examples[0].predicted),
        lambda: find_mistakes(pipe, examples),
        lambda: calibrate(pipe, examples),
    ):
        with pytest.raises(SparseCRFError, match=r"SC423.*decoding\] scores"):
            ask()
    pipe = pipeline(True).get_pipe(NAME)
    pipe.cfg["labels"] = list(trained.get_pipe(NAME).label_data)
    with pytest.raises(SparseCRFError, match="SC421.*O-ORG.*O-PER.ORG"):
        pipe.target.legal(pipe.label_data)


def test_gold_of_chains():
    target = pipeline().get_pipe(NAME).target
    doc = Doc(spacy.blank("en").vocab, words=["a", "b", "c", "d"])
    reference = add_spans(doc.copy(), [(0, 3, "PER"), (1, 2, "LOC"), (3, 4, "")], "sc")
    gold = target.gold(Example(doc, reference))
    assert gold == [("B-PER",), ("I-PER", "U-LOC"), ("L-PER",), None]
    assert target.gold(Example(doc, doc)) == [None] * 4
    assert target.gold(Example(doc, add_spans(doc.copy(), [], "sc"))) == ["O"] * 4
    # A predicted token that merges two gold tokens may have any label of their chain.
    merged = Doc(doc.vocab, words=["ab", "c", "d"], spaces=[True] * 3)
    split = Doc(doc.vocab, words=["a", "b", "c", "d"], spaces=[False, True, True, True])
    lost, *rest = target.gold(Example(merged, add_spans(split, [(1, 2, "LOC")], "sc")))
    assert {"O-LOC", "U-LOC"} < set(lost) and rest == ["O", "O"]
    bad = add_spans(doc.copy(), [(0, 3, "PER"), (2, 4, "ORG")], "sc")
    with pytest.raises(SparseCRFError, match=r"SC422.*'c d', of type 'ORG'"):
        target.gold(Example(doc, bad))


def test_some_labels_of_a_model(trained: Language):
    model: CRFModel = trained.get_pipe(NAME).model
    same = model.with_labels(np.arange(len(model.labels)), model.labels)
    assert same.to_bytes() == model.to_bytes()
