"""The factories for entities and spans, from the view of a spaCy user."""

import json
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.analysis.error_analysis import find_mistakes
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.targets.matching import KINDS

from ..decoding.span_cases import (
    HELD_OUT,
    TRAINING,
    add_spans,
    chunks_of,
    span_examples,
    spans_of,
)
from ..toy import blank_with, examples_of, train

# Docs of these tests have no tags, which the default span templates read.
pytestmark = pytest.mark.filterwarnings("ignore:.*SCW205.* read tag,")

FACTORIES = {"sparse_crf_ner": "ents", "sparse_crf_spans": "sc"}
TYPES = ("NP", "VP")


@pytest.fixture(scope="module")
def trained_dirs(tmp_path_factory) -> dict[str, Path]:
    """A trained pipeline for each factory, on disk."""
    paths = {}
    for name, key in FACTORIES.items():
        nlp = blank_with(factory=name, lang="en")
        train(nlp, span_examples(nlp, TRAINING, key), 5)
        paths[name] = tmp_path_factory.mktemp("pipelines") / name
        nlp.to_disk(paths[name])
    return paths


@pytest.fixture(scope="module", params=FACTORIES)
def fitted(request, trained_dirs) -> Language:
    """A trained pipeline for each factory, for tests that do not modify it."""
    return spacy.load(trained_dirs[request.param])


@pytest.fixture(params=FACTORIES)
def trained(request, trained_dirs) -> Language:
    return spacy.load(trained_dirs[request.param])


def key_of(nlp: Language) -> str:
    return FACTORIES[nlp.pipe_names[0]]


def score_of(nlp: Language) -> str:
    return "ents_f" if key_of(nlp) == "ents" else "spans_sc_f"


def held_out(nlp: Language) -> list[Example]:
    return span_examples(nlp, HELD_OUT, key_of(nlp))


def predicted(nlp: Language) -> list[list[tuple[int, int, str]]]:
    docs = [Doc(nlp.vocab, words=words) for words, _ in HELD_OUT]
    return [spans_of(doc, key_of(nlp)) for doc in nlp.pipe(docs)]


def test_mistakes_are_spans(fitted):
    pipe, examples = fitted.get_pipe(fitted.pipe_names[0]), held_out(fitted)
    for example in examples[::3]:
        # One gold span is longer by a token, one has the other type, one is missing.
        spans = spans_of(example.reference, key_of(fitted))
        spans[0] = *spans[0][:2], {"NP": "VP", "VP": "NP"}[spans[0][2]]
        add_spans(example.reference, spans[:-1], key_of(fitted))
    report = find_mistakes(pipe, examples)
    assert report.kinds == KINDS
    expected = fitted.evaluate(examples)[score_of(fitted)]
    assert report.scores[0].rates["strict"].f == pytest.approx(expected)
    assert report.mistakes
    for mistake in report.mistakes:
        doc = examples[mistake.doc].predicted
        for span in filter(None, (mistake.gold, mistake.predicted)):
            asked = span.start, span.end, span.label
            assert span.probability == pipe.entity_probabilities(doc, [asked])[0]
            assert mistake.text_of(span) == " ".join(t.text for t in doc[span.start : span.end])
        assert mistake.tokens and all(token.label != token.runner_up for token in mistake.tokens)
    told = pipe.explain_doc(doc)
    spans = [(span.start, span.end, span.label) for span in told.spans]
    annotated = fitted(Doc(fitted.vocab, words=[t.text for t in doc]))
    assert spans == spans_of(annotated, key_of(fitted))
    # The component's own annotation does not count as preset.
    assert pipe.explain_doc(annotated) == told
    covered = [t for _, own in told.parts() for t in own]
    assert covered == list(range(len(doc)))
    assert [span for span, _ in told.parts() if span] == list(told.spans)


def test_it_learns_types_and_label_data_is_what_initialize_needs(fitted):
    scores = fitted.evaluate(held_out(fitted))
    assert scores[score_of(fitted)] > 0.95
    assert scores[score_of(fitted).replace("_f", "_per_type")].keys() == set(TYPES)
    name = fitted.pipe_names[0]
    pipe = fitted.get_pipe(name)
    assert set(pipe.labels) == set(TYPES)
    assert fitted.pipe_labels[name] == list(pipe.labels)
    assert set(pipe.label_data) == {"B-NP", "I-NP", "L-NP", "O", "U-NP", "U-VP"}
    other = spacy.blank("en").add_pipe(name)
    other.initialize(lambda: held_out(fitted), labels=json.loads(json.dumps(pipe.label_data)))
    assert other.label_data == pipe.label_data
    fresh = spacy.blank("en").add_pipe(name)
    with pytest.raises(SparseCRFError, match=r"SC206.*'[BLU]-[NV]P'"):
        fresh.initialize(lambda: held_out(fitted), labels=["OTHER"])


def test_adding_a_type_adds_all_its_labels(trained):
    pipe = trained.get_pipe(trained.pipe_names[0])
    before = predicted(trained)
    assert pipe.add_label("PER") == 1
    assert pipe.add_label("PER") == 0
    assert pipe.label_data[-4:] == ("B-PER", "I-PER", "L-PER", "U-PER")
    assert pipe.model.labels == pipe.label_data
    assert pipe.labels[-1] == "PER"
    assert predicted(trained) == before
    assert pipe.add_label("VP") == 1  # adds the remaining labels of the type
    pipe.set_output(len(pipe.label_data))


def test_one_label_too_few_is_there_anyway():
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sparse_crf_ner")
    full = add_spans(Doc(nlp.vocab, words=["a", "b"]), [(0, 2, "X")], "ents")
    pipe.initialize(lambda: [Example(Doc(nlp.vocab, words=["a", "b"]), full)])
    assert pipe.label_data == ("B-X", "L-X", "O")


def test_spans_that_are_set_are_kept(fitted):
    words, tags = HELD_OUT[0]
    preset = [(0, 1, "OTHER")]
    kept = fitted(add_spans(Doc(fitted.vocab, words=words), preset, key_of(fitted)))
    found = spans_of(kept, key_of(fitted))
    assert found[0] == preset[0]
    assert found[-1] == chunks_of(tags)[-1]


def test_weights_of_another_scheme_are_refused(tmp_path):
    words, ents = ["ada", "lee", "met", "bob"], ["B-PER", "I-PER", "O", "B-PER"]

    def pipeline(scheme: str, **config: object) -> Language:
        target = {"@crf_targets": "spacy_sparsecrf.Entities.v1", "scheme": scheme}
        return blank_with(factory="sparse_crf_ner", target=target, **config)

    def initialize(nlp: Language, **given: str) -> None:
        examples = examples_of(nlp, [(words, ents)], "ents")
        nlp.get_pipe("sparse_crf_ner").initialize(lambda: examples, **given)

    nlp = pipeline("IOB2")
    initialize(nlp)
    nlp.to_disk(tmp_path)
    path, prior = str(tmp_path), {"learning": {"prior": str(tmp_path)}}
    for use in (
        lambda: pipeline("BILUO").from_disk(tmp_path),
        lambda: initialize(pipeline("BILUO"), init_weights=path),
        lambda: initialize(pipeline("BILUO", **prior)),
    ):
        refused = r"SC418.*trained with scheme = 'IOB2', not .* scheme = 'BILUO'"
        with pytest.raises(SparseCRFError, match=refused):
            use()
    initialize(pipeline("IOB2", **prior))
