"""The recognizer of Presidio, with the real package, offline."""

import builtins
import sys

import pytest
import spacy
from spacy.training import Example

TEXTS = ["Ada Lee came to Rome.", "Bo Lee left Oslo.", "Nobody came to Rome.", "Ada Day left."]
SPANS = [[(0, 7, "NAME"), (16, 20, "CITY")], [(0, 6, "NAME"), (12, 16, "CITY")]]
SPANS += [[(15, 19, "CITY")], [(0, 7, "NAME")]]


def test_without_presidio_the_extra_is_named(monkeypatch):
    load = builtins.__import__

    def without(name, *rest):
        if name == "presidio_analyzer":
            raise ModuleNotFoundError(name)
        return load(name, *rest)

    monkeypatch.delitem(sys.modules, "spacy_sparsecrf.presidio", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"SC817.*spacy-sparsecrf\[presidio\]"):
        import spacy_sparsecrf.presidio  # noqa: F401


# Presidio's own warnings are not errors here.
@pytest.mark.filterwarnings("default")
def test_scores_are_probabilities_and_explanations_are_decisions(tmp_path):
    presidio = pytest.importorskip("presidio_analyzer")
    from presidio_analyzer.nlp_engine import SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import CreditCardRecognizer

    from spacy_sparsecrf.presidio import SparseCRFRecognizer

    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sparse_crf_ner", name="ner", config={"n_threads": 1})
    pairs = zip(TEXTS, SPANS, strict=True)
    examples = [Example.from_dict(nlp.make_doc(x), {"entities": y}) for x, y in pairs] * 5
    nlp.initialize(lambda: examples)
    for _ in range(5):
        nlp.update(examples)
    nlp.to_disk(tmp_path / "model")
    engine = SpacyNlpEngine([{"lang_code": "en", "model_name": str(tmp_path / "model")}])
    names = {"NAME": "PERSON"}
    recognizer = SparseCRFRecognizer(str(tmp_path / "model"), names=names, explain=True)
    assert recognizer.supported_entities == ["CITY", "PERSON"]
    recognizers = [recognizer, CreditCardRecognizer()]
    registry = presidio.RecognizerRegistry(recognizers, supported_languages=["en"])
    analyzer = presidio.AnalyzerEngine(registry, engine)
    text = "Ada Day left Rome. Her card is 4111 1111 1111 1111."
    results = analyzer.analyze(text, "en", return_decision_process=True)
    found = {result.entity_type: result for result in results}
    assert {name: text[x.start : x.end] for name, x in found.items()} == {
        "PERSON": "Ada Day",
        "CITY": "Rome",
        "CREDIT_CARD": "4111 1111 1111 1111",
    }
    spans = {names.get(x.label, x.label): x for x in pipe.confidences(nlp.make_doc(text)).spans}
    for name, span in spans.items():
        assert found[name].score == pytest.approx(span.probability)
    said = found["PERSON"].analysis_explanation.textual_explanation
    reason = pipe.explain_doc(nlp(text)).tokens[0].strongest(3)[0].feature
    assert said.startswith("NAME 0.") and reason in said
    [city] = analyzer.analyze(text, "en", entities=["CITY"])
    assert city.score == found["CITY"].score and city.analysis_explanation is None
