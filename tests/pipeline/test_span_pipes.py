"""The factories for entities and spans, from the view of a spaCy user."""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

import spacy_sparsecrf
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.pipeline.component import SparseCRFPipe
from spacy_sparsecrf.pipeline.targets.matching import KINDS
from spacy_sparsecrf.tools.analysis.error_analysis import find_mistakes

from ..support.span_cases import HELD_OUT, TRAINING, add_spans, chunks_of, span_examples, spans_of
from ..support.toy import blank_with, examples_of, train

# Docs of these tests have no tags, which the default span templates read.
pytestmark = pytest.mark.filterwarnings("ignore:.*SCW205.* read tag,")

FACTORIES = {"sparse_crf_ner": "ents", "sparse_crf_spans": "sc"}
TYPES = ("NP", "VP")


@pytest.fixture(scope="module")
def trained_dirs(tmp_path_factory) -> dict[str, Path]:
    """A trained pipeline for each factory, on disk."""
    paths = {}
    for name, key in FACTORIES.items():
        nlp = blank_with(factory=name)
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
        for span in mistake.gold + mistake.predicted:
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
    other = spacy.blank("xx").add_pipe(name)
    other.initialize(lambda: held_out(fitted), labels=json.loads(json.dumps(pipe.label_data)))
    assert other.label_data == pipe.label_data
    fresh = spacy.blank("xx").add_pipe(name)
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
    nlp = spacy.blank("xx")
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
    with pytest.warns(SparseCRFWarning, match="SCW236"):
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


# Settings of components, and labels in an order of which "O" is not the first.
BLANK: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"model": "maxent", "learning": {"clusters": 2}}, []),
    ({"model": "memm", "target": {"scheme": "IOB2"}}, ["I-NP", "B-NP", "O", "B-VP", "I-VP"]),
    ({"decoding": {"method": "posterior"}, "target": {"scheme": "IOB2"}}, []),
    ({"decoding": {"outside_weight": -2.0}, "target": {"scheme": "BILUO"}}, ["VP", "NP"]),
]


def found_in(nlp: Language, words: list[str]) -> list[Any]:
    """Return the predicted spans, and the best labels that are not outside."""
    doc = Doc(nlp.vocab, words=words)
    [(labels, _), *_] = nlp.get_pipe(nlp.pipe_names[0]).nbest(doc, 2)
    return spans_of(nlp(doc), key_of(nlp)) + [label for label in labels if label != "O"]


@pytest.mark.filterwarnings("ignore:.*SCW340")
@pytest.mark.parametrize(("settings", "order"), BLANK)
@pytest.mark.parametrize("factory", FACTORIES)
def test_without_weights_nothing_is_found_and_saving_warns(factory, settings, order, tmp_path):
    kind = {"sparse_crf_ner": "Entities", "sparse_crf_spans": "Spans"}[factory]
    target = {"@crf_targets": f"spacy_sparsecrf.{kind}.v1", **settings.get("target", {})}
    make = {**settings, "target": target, "factory": factory}
    words = TRAINING[0][0]

    def check(nlp: Language) -> None:
        assert found_in(nlp, words) == found_in(nlp, ["x"]) == []
        with pytest.warns(SparseCRFWarning, match=r"SCW236.*l1 = "):
            nlp.to_disk(tmp_path)
        assert found_in(spacy.load(tmp_path), words) == []

    nlp = blank_with(**make)
    for name in ("CITY", "A"):
        nlp.get_pipe(factory).add_label(name)
    nlp.to_disk(tmp_path)  # not initialized yet
    nlp.initialize()
    check(nlp)
    nlp = blank_with(**make, l1=1e5, l2=0.0)
    examples = span_examples(nlp, TRAINING, FACTORIES[factory])
    nlp.get_pipe(factory).initialize(lambda: examples, nlp=nlp, labels=order or None)
    check(nlp)
    nlp.update(examples[:1])
    assert nlp.get_pipe(factory).model.n_active == 0
    check(nlp)


def test_a_loaded_pipeline_that_is_initialized_again_finds_nothing(trained, tmp_path):
    words = TRAINING[0][0]
    assert found_in(trained, words)
    trained.to_disk(tmp_path)
    trained.initialize()
    assert set(trained.get_pipe(trained.pipe_names[0]).labels) == set(TYPES)
    assert found_in(trained, words) == []
    with pytest.warns(SparseCRFWarning, match="SCW236"):
        trained.to_disk(tmp_path)


@pytest.mark.parametrize("factory", FACTORIES)
def test_tokens_without_active_features_are_outside(factory):
    # No feature of any token, and none of pairs of labels.
    nlp = blank_with(["u:lower[0]"], factory=factory)
    train(nlp, span_examples(nlp, TRAINING, FACTORIES[factory]), 3)
    words = TRAINING[0][0]
    assert spans_of(nlp(Doc(nlp.vocab, words=words)), key_of(nlp))
    assert found_in(nlp, ["qqq", "ppp", "qqq"]) == []


def test_labels_are_strings_of_the_vocab(trained, tmp_path):
    trained.to_disk(tmp_path)
    name = trained.pipe_names[0]
    for load in (lambda pipe: pipe.from_disk(tmp_path / name, exclude=["vocab"]),):
        nlp = spacy.blank("xx")
        load(nlp.add_pipe(name))
        assert {"NP", "VP"} <= {*nlp.vocab.strings}
    data = trained.get_pipe(name).to_bytes(exclude=["vocab"])
    nlp = spacy.blank("xx")
    nlp.add_pipe(name).from_bytes(data, exclude=["vocab"])
    nlp.get_pipe(name).add_label("NEW-TYPE")
    assert {"NP", "VP", "NEW-TYPE"} <= {*nlp.vocab.strings}
    tagger = blank_with()
    tagger.get_pipe("sparse_crf").add_label("TAG-A")
    tagger.initialize(lambda: examples_of(tagger, TRAINING[:5]))
    assert {"TAG-A", "NN"} <= {*tagger.vocab.strings}


def test_groups_of_spans_have_scores_as_spancat_writes_them(trained_dirs):
    nlp = spacy.load(trained_dirs["sparse_crf_spans"])
    pipe = nlp.get_pipe("sparse_crf_spans")
    docs = [Doc(nlp.vocab, words=words) for words in (TRAINING[0][0], [], TRAINING[1][0])]
    for doc in nlp.pipe(docs):
        group = doc.spans["sc"]
        scores = group.attrs["scores"]
        assert scores.shape == (len(group),) and scores.dtype == np.float64
        bare = Doc(nlp.vocab, words=[token.text for token in doc])
        np.testing.assert_allclose(scores, pipe.entity_probabilities(bare, group), atol=1e-9)
        assert not doc.user_data  # token and span extensions are written on request only
        copy = Doc(nlp.vocab).from_bytes(doc.to_bytes())
        np.testing.assert_array_equal(copy.spans["sc"].attrs["scores"], scores)
    assert len(docs[0].spans["sc"]) and not len(docs[1].spans["sc"])
    assert nlp(Doc(nlp.vocab)).spans["sc"].attrs["scores"].shape == (0,)
    config = {"components": {"sparse_crf_spans": {"decoding": {"outside_weight": 1000.0}}}}
    nlp = spacy.load(trained_dirs["sparse_crf_spans"], config=config)
    group = nlp(Doc(nlp.vocab, words=TRAINING[0][0])).spans["sc"]
    assert not len(group) and group.attrs["scores"].shape == (0,)
    assert pipe.key == "sc"
    assert not hasattr(spacy.load(trained_dirs["sparse_crf_ner"]).get_pipe("sparse_crf_ner"), "key")


def test_the_model_has_the_weights_of_the_last_update():
    nlp = blank_with(factory="sparse_crf_ner")
    examples, counts = span_examples(nlp, TRAINING, "ents"), []
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("sparse_crf_ner")
    for _ in range(3):
        nlp.update(examples)
        counts.append(pipe.model.n_active)
        assert counts[-1] == sum(1 for _ in pipe.dump()) > 0
    assert len({*counts}) > 1


def test_public_methods_show_their_arguments_and_types():
    methods = inspect.getmembers(SparseCRFPipe, inspect.isfunction)
    own = {name: method for name, method in methods if not name.startswith("_")}
    assert {"initialize", "update", "predict", "explain", "explain_doc", "uncertainty"} <= {*own}
    for name, method in own.items():
        signature = inspect.signature(method)
        assert signature.return_annotation not in (Any, "Any", inspect.Signature.empty), name
        for each in list(signature.parameters.values())[1:]:
            assert each.annotation not in (Any, inspect.Parameter.empty) or each.kind == 4, name
    assert list(inspect.signature(SparseCRFPipe.initialize).parameters)[1:] == [
        *("get_examples", "nlp", "labels", "init_weights", "checkpoint", "shards"),
    ]
    for exported in map(spacy_sparsecrf.__getattr__, spacy_sparsecrf.__all__):
        for name, method in inspect.getmembers(exported, inspect.isroutine):
            if not name.startswith("_") and "sparsecrf" in (
                getattr(method, "__module__", "") or ""
            ):
                assert inspect.signature(method).return_annotation not in (Any, "Any"), name
