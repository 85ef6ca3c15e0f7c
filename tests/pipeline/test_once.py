"""The setting `once` of a component: in a config, saved and loaded, with all other settings."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

from ..reference import n_repetitions
from ..support.span_cases import add_spans, span_examples, spans_of
from ..support.toy import blank_with, docs_of, examples_of, make_sentences, tags_of, train

TRAINING, NEW = make_sentences(60, seed=1), make_sentences(10, seed=5)
TEMPLATES = ["b:", "u:lower[0]", "u:suffix(3)[0]"]
pytestmark = pytest.mark.filterwarnings("ignore:.*SCW205.* read tag,")


def runs_of(tags, name):
    return n_repetitions([*map(tags.index, tags)], tags, [name] if name in tags else [])


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"decoding": {"method": "posterior"}},
        {"decoding": {"scores": True, "temperature": 2.0, "forbidden": [["", "VB"]]}},
        {"model": "memm"},
        {"model": "maxent", "learning": {"clusters": 2}, "templates": TEMPLATES[1:]},
        {"templates": [*TEMPLATES, "b:lower[0]"]},
        {
            "templates": [*TEMPLATES, "u:first[-1]"],
            "learning": {"stack": {"folds": 2, "steps": 1}},
        },
    ],
    ids=str,
)
def test_ten_sentences_with_one_noun(config, tmp_path):
    own = {"templates": TEMPLATES, **config}
    own["decoding"] = {**own.get("decoding", {}), "once": ["NN"]}
    nlp = blank_with(**own)
    train(nlp, examples_of(nlp, TRAINING), 4)
    pipe, docs = nlp.get_pipe("sparse_crf"), docs_of(nlp, NEW)
    tags = tags_of(nlp.pipe(docs_of(nlp, NEW)))
    free = blank_with(**{**own, "decoding": {**own["decoding"], "once": []}})
    free.get_pipe("sparse_crf").from_bytes(pipe.to_bytes())
    others = tags_of(free.pipe(docs_of(nlp, NEW)))
    assert sum(runs_of(row, "NN") > 0 for row in others) > 3
    for doc, row, other in zip(docs, tags, others, strict=True):
        assert not runs_of(row, "NN")
        assert row == other or runs_of(other, "NN")
        [(best, p), *rest] = pipe.nbest(doc, 4)
        assert not any(runs_of(labels, "NN") for labels, _ in rest)
        assert np.log(p) == pytest.approx(pipe.log_probability(doc, best))
        if own["decoding"].get("method") is None:
            assert best == row
            assert pipe.uncertainty([doc])[0].least_confidence == pytest.approx(1.0 - p)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded.get_pipe("sparse_crf").settings.decoding.once == ("NN",)
    assert tags_of(loaded.pipe(docs_of(nlp, NEW))) == tags


@pytest.mark.parametrize("scheme", ["IOB2", "BILUO"])
@pytest.mark.parametrize("factory", ["sparse_crf_ner", "sparse_crf_spans"])
def test_a_type_of_entities_or_spans_occurs_once(factory, scheme):
    key = "ents" if factory == "sparse_crf_ner" else "sc"
    kind = "Entities" if key == "ents" else "Spans"
    target = {"@crf_targets": f"spacy_sparsecrf.{kind}.v1", "scheme": scheme}
    nlp = blank_with(TEMPLATES, factory, target=target, decoding={"once": ["NP"], "scores": True})
    train(nlp, span_examples(nlp, TRAINING, key), 4)
    for words, _ in NEW:
        doc = nlp(Doc(nlp.vocab, words=words))
        assert [name for *_, name in spans_of(doc, key)].count("NP") == 1
    # Spans that are set are kept, and no other one is added.
    words = ["the", "drobliness", "wexates", "the", "fengulness"]
    doc = add_spans(Doc(nlp.vocab, words=words), [(0, 1, "NP"), (4, 5, "NP")], key)
    with pytest.warns(SparseCRFWarning, match="SCW403.* 5 tokens repeats 'NP'"):
        nlp(doc)
    assert [x for x in spans_of(doc, key) if x[2] == "NP"] == [(0, 1, "NP"), (4, 5, "NP")]
    # No entity crosses an empty line.
    doc = nlp(Doc(nlp.vocab, words=["the", "\n\n", *words[1:]]))
    crossing = [(start, end) for start, end, _ in spans_of(doc, key) if start < 1 < end - 1]
    assert not crossing and [x for *_, x in spans_of(doc, key)].count("NP") == 1


@pytest.mark.parametrize(
    ("factory", "name", "message"),
    [
        ("sparse_crf", "NM", r"SC419.*\[components\.sparse_crf\.decoding\] once: 'NM'.*, NN,"),
        ("sparse_crf_ner", "B-NP", r"SC419.*sparse_crf_ner\.decoding\] once: 'B-NP'.*NP, VP"),
    ],
)
def test_unknown_names(factory, name, message):
    nlp = blank_with(TEMPLATES, factory, decoding={"once": [name]})
    make = examples_of(nlp, TRAINING)
    make = make if factory == "sparse_crf" else span_examples(nlp, TRAINING, "ents")
    with pytest.raises(SparseCRFError, match=message):
        nlp.initialize(lambda: make)
