"""Span targets alone: gold labels, writing, preset spans."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.targets.entities import Entities
from spacy_sparsecrf.pipeline.targets.scheme import LETTERS, OUTSIDE
from spacy_sparsecrf.pipeline.targets.spans import SpanGroups, SpanTarget

from ..support.checks import check_target
from ..support.span_cases import add_spans, scores_of, span_lists, spans_of

NAMES = ("X", "Y-Z")
VOCAB = Vocab()
every_key = pytest.mark.parametrize("key", ["ents", "sc"])
every_scheme = pytest.mark.parametrize("scheme", LETTERS)


def both(key: str, scheme: str = "BILUO") -> SpanTarget:
    return Entities(scheme=scheme) if key == "ents" else SpanGroups(scheme=scheme)


def make_doc(n: int, vocab: Vocab = VOCAB) -> Doc:
    return Doc(vocab, words=[f"w{i}" for i in range(n)])


def labels_of(target: SpanTarget) -> tuple[str, ...]:
    return target.complete(NAMES)


def write(
    target: SpanTarget,
    docs: Sequence[Doc],
    gold: Sequence[Sequence[str | None]],
    overwrite: bool = False,
    **settings: Any,
) -> None:
    labels = labels_of(target)
    ids = [np.array([labels.index(label) for label in row], dtype=np.int32) for row in gold]
    target.write(docs, ids, labels, overwrite=overwrite, **settings)


@every_scheme
@every_key
@given(data=st.data())
def test_gold_comes_back(key, scheme, data):
    target = both(key, scheme)
    lengths = [1, *data.draw(st.lists(st.integers(0, 8), max_size=4))]
    expected = [data.draw(span_lists(n)) for n in lengths]
    both_ends = zip(lengths, expected, strict=True)
    references = [add_spans(make_doc(n), spans, key) for n, spans in both_ends]
    check_target(target, references)
    docs = [make_doc(n, Vocab()) for n in lengths]
    write(target, docs, [target.gold(Example(make_doc(len(d)), d)) for d in references])
    assert [spans_of(doc, key) for doc in docs] == expected


@given(data=st.data())
def test_gold_entities_are_those_that_spacy_reads(data):
    n = data.draw(st.integers(1, 8))
    words = data.draw(st.lists(st.sampled_from(["a", "b", " "]), min_size=n, max_size=n))
    reference = Doc(VOCAB, words=words)
    spans = [Span(reference, *span) for span in data.draw(span_lists(n))]
    spans = [span for span in spans if " " not in (span[0].text, span[-1].text)]
    kinds = data.draw(st.lists(st.sampled_from(["ent", "missing", "blocked"]), min_size=n))
    chosen = {kind: [] for kind in ("ent", "missing", "blocked")}
    for span, kind in zip(spans, kinds, strict=False):
        chosen[kind].append(span)
    default = data.draw(st.sampled_from(["outside", "missing", "unmodified"]))
    others = {"missing": chosen["missing"], "blocked": chosen["blocked"]}
    reference.set_ents(chosen["ent"], **others, default=default)
    example = Example(Doc(VOCAB, words=words), reference)
    expected = [None if tag in ("-", None) else tag for tag in example.get_aligned_ner()]
    read = zip(words, Entities().gold(example), expected, strict=True)
    assert all(own == of_spacy or word == " " for word, own, of_spacy in read)


@every_key
def test_gold_of_other_tokens(key):
    reference = Doc(VOCAB, words=["New", "York-based", "it", "is"], spaces=[True] * 4)
    add_spans(reference, [(0, 2, "X"), (2, 3, "Y-Z")], key)
    words = ["New", "York", "-", "based", "itis"]
    predicted = Doc(VOCAB, words=words, spaces=[True, False, False, True, True])
    target = both(key)
    assert target.gold(Example(predicted, reference))[:4] == ["B-X", "I-X", "I-X", "L-X"]
    split = Doc(VOCAB, words=["New", "York-based it", "is"])
    gold = target.gold(Example(split, reference))
    assert gold == [None, None, "O"]
    assert both(key, "IOB2").gold(Example(predicted, reference))[:4] == ["B-X", *["I-X"] * 3]


@every_key
def test_no_annotation_is_missing_gold_and_no_spans_are_gold(key):
    target = both(key)
    assert target.gold(Example(make_doc(2), make_doc(2))) == [None, None]
    assert target.gold(Example(make_doc(2), add_spans(make_doc(2), [], key))) == ["O", "O"]
    assert target.gold(Example(Doc(VOCAB), Doc(VOCAB))) == []


def test_gold_spans_without_a_label_that_overlap_or_are_damaged():
    reference = make_doc(3)
    reference.spans["sc"] = [reference[0:2], reference[2:2]]
    assert SpanGroups().gold(Example(make_doc(3), reference)) == [None, None, "O"]
    reference = add_spans(make_doc(4), [(2, 4, "X"), (0, 3, "Y")], "sc")
    with pytest.raises(SparseCRFError, match=r"SC502.*'sc'.*'w2 w3'.*begins: 'w0 w1"):
        SpanGroups().gold(Example(make_doc(4), reference))
    reference = make_doc(2)
    reference.from_array(["ENT_IOB"], np.array([[2], [1]], dtype=np.uint64))
    with pytest.raises(SparseCRFError, match=r"(?s)SC503.*E093.*begins: 'w0 w1"):
        Entities().gold(Example(make_doc(2), reference))


@every_scheme
@every_key
@given(data=st.data())
def test_what_is_set_is_kept_and_nothing_overlaps_it(key, scheme, data):
    target, n = both(key, scheme), data.draw(st.integers(1, 8))
    preset = data.draw(span_lists(n, [*NAMES, "OTHER"]))
    doc, plain = add_spans(make_doc(n), preset, key), make_doc(n)
    labels = labels_of(target)
    row = data.draw(st.lists(st.sampled_from(labels), min_size=n, max_size=n))
    write(target, [doc], [row])
    write(target, [plain], [row])
    taken = {i for start, end, _ in preset for i in range(start, end)}
    free = [s for s in spans_of(plain, key) if taken.isdisjoint(range(*s[:2]))]
    assert spans_of(doc, key) == sorted([*preset, *free])
    write(target, [doc], [row], overwrite=True)
    assert spans_of(doc, key) == spans_of(plain, key)


@every_scheme
@every_key
@given(data=st.data())
def test_permitted_legal_labels_are_those_that_agree_with_what_is_set(key, scheme, data):
    """A label sequence is permitted if its spans agree with the annotation at preset tokens."""
    target, n = both(key, scheme), data.draw(st.integers(1, 7))
    labels = labels_of(target)
    preset, found = data.draw(span_lists(n)), data.draw(span_lists(n))
    mask = target.permitted([add_spans(make_doc(n), preset, key)], labels, overwrite=False)
    if not preset:
        assert mask is None
        return
    assert mask is not None and mask.shape == (n, len(labels))
    row = target.gold(Example(make_doc(n), add_spans(make_doc(n), found, key)))
    fits = all(mask[i, labels.index(label)] for i, label in enumerate(row) if label)
    taken = {i for start, end, _ in preset for i in range(start, end)}
    touching = [span for span in found if not taken.isdisjoint(range(*span[:2]))]
    assert fits == (touching == preset)


@every_key
def test_spans_that_labels_cannot_tell_are_outside(key):
    target = both(key)
    doc = make_doc(5)
    doc[3].is_sent_start = True
    add_spans(doc, [(0, 1, "OTHER"), (2, 4, "X")], key)
    labels = labels_of(target)
    mask = target.permitted([make_doc(1), doc], labels, overwrite=False)
    assert mask is not None
    permitted = [[labels[y] for y in np.flatnonzero(row)] for row in mask]
    everything = list(labels)
    assert permitted == [everything, ["O"], everything, ["O"], ["O"], everything]
    assert target.permitted([doc], labels, overwrite=True) is None
    alone = target.permitted(
        [doc], [label for label in labels if label != OUTSIDE], overwrite=False
    )
    assert alone is not None and alone.all()


def test_groups_whose_spans_overlap_and_attributes_of_groups_are_kept():
    target, doc = SpanGroups(), add_spans(make_doc(5), [(0, 2, "X"), (1, 3, "X")], "sc")
    labels = labels_of(target)
    mask = target.permitted([doc], labels, overwrite=False)
    assert mask is not None and mask.sum(axis=1).tolist() == [1, 1, 1, len(labels), len(labels)]
    write(target, [doc], [["O", "O", "B-X", "L-X", "U-X"]])
    assert spans_of(doc, "sc") == [(0, 2, "X"), (1, 3, "X"), (4, 5, "X")]
    doc, attrs = make_doc(3), {"by": "me", "scores": [0.1]}
    doc.spans["sc"] = SpanGroup(doc, name="sc", attrs=attrs, spans=[doc[0:1]])
    write(SpanGroups(), [doc], [["O", "O", "U-X"]])
    assert doc.spans["sc"].attrs == {"by": "me"} and len(doc.spans["sc"]) == 2


def test_ids_of_entities_that_are_set_are_kept_and_others_have_none():
    doc = make_doc(4)
    doc.set_ents([Span(doc, 0, 2, "X", kb_id="Q1", span_id="E1"), Span(doc, 3, 4, "X", kb_id="Q2")])
    write(Entities(), [doc], [["O", "O", "U-Y-Z", "O"]])
    found = [(entity.label_, entity.kb_id_, entity.id_) for entity in doc.ents]
    assert found == [("X", "Q1", "E1"), ("Y-Z", "", ""), ("X", "Q2", "")]
    write(Entities(), [doc], [["U-X", "O", "O", "U-X"]], overwrite=True)
    assert [(entity.kb_id_, entity.id_) for entity in doc.ents] == [("", "")] * 2


def test_blocked_tokens_stay_outside_and_others_are_free():
    doc = make_doc(5)
    doc.set_ents([], blocked=[doc[1:2]], missing=[doc[2:3]])
    labels = labels_of(Entities())
    mask = Entities().permitted([doc], labels, overwrite=False)
    assert mask is not None and mask.sum(axis=1).tolist() == [9, 1, 9, 9, 9]
    write(Entities(), [doc], [["B-X", "L-X", "U-X", "B-Y-Z", "L-Y-Z"]])
    assert spans_of(doc, "ents") == [(2, 3, "X"), (3, 5, "Y-Z")]
    assert [token.ent_iob for token in doc] == [2, 3, 3, 3, 1]
    assert doc[1].ent_type == 0


@every_key
def test_scores_are_those_of_the_spans(key):
    target = both(key)
    docs = [make_doc(3), make_doc(0), add_spans(make_doc(3), [(1, 2, "X")], key)]
    rows = [["U-X", "B-X", "L-X"], [], ["U-X", "U-X", "U-Y-Z"]]
    write(target, docs, rows, scores=np.array([0.9, 0.8, 0.7, 0.6, 0.5]))
    expected = [[0.9, 0.8], [], [0.7, 1.0, 0.5]]
    assert [scores_of(doc, key) for doc in docs] == expected
    if key == "ents":  # `Doc.from_docs` leaves out what span groups have
        assert scores_of(Doc.from_docs(docs), key) == [0.9, 0.8, 0.7, 1.0, 0.5]
    copies = [Doc(VOCAB).from_bytes(doc.to_bytes()) for doc in docs]
    assert [spans_of(doc, key) for doc in copies] == [spans_of(doc, key) for doc in docs]


@pytest.mark.parametrize("ids", [[0, 2], [5, 0], [2**31 - 1, 0], [0], []])
def test_label_ids_that_do_not_fit_are_refused(ids):
    doc, labels = Doc(Vocab(), words=["a", "b"]), ["U-X", OUTSIDE]
    with pytest.raises(SparseCRFError, match=r"SC510.*not below 2, the number of labels"):
        Entities().write([doc], [np.array(ids, np.int32)], labels, overwrite=True)
    assert not doc.ents
    if len(ids) == 2:
        with pytest.raises(SparseCRFError, match="SC510"):
            Entities().spans([np.array(ids, np.int32)], labels)


@pytest.mark.parametrize("scheme", LETTERS)
@given(data=st.data())
def test_spans_are_taken_out_of_labels(scheme, data):
    target = Entities(scheme)
    labels = labels_of(target)
    rows = data.draw(st.lists(st.lists(st.integers(0, len(labels) - 1), max_size=6), min_size=1))
    ids = [np.array(row, dtype=np.int32) for row in rows]
    spans = target.spans(ids, labels)
    dropped = np.array([data.draw(st.booleans()) for _ in range(len(spans))], dtype=np.bool_)
    left = target.spans(target.outside(ids, labels, spans.where(dropped)), labels)
    expected = spans.where(~dropped)
    for name in ("starts", "ends", "types"):
        np.testing.assert_array_equal(getattr(left, name), getattr(expected, name))
    assert [row.tolist() for row in ids] == rows


def test_labels_and_types():
    target = Entities()
    assert target.complete([]) == ()
    assert target.complete(["B-X"]) == ("B-X", "O")
    assert target.complete(["O", "PER"]) == ("O", "B-PER", "I-PER", "L-PER", "U-PER")
    assert target.labels_of("B-cell")[0] == "B-B-cell"
    assert Entities("IOB2").labels_of("PER") == ("B-PER", "I-PER", "O")
    assert target.names_of(["B-X", "O", "U-Y", "L-X"]) == ("X", "Y")
    with pytest.raises(SparseCRFError, match=r"SC505.*'PER'.*BILUO.*B-TYPE"):
        target.check_label("PER")
    with pytest.raises(SparseCRFError, match="SC508"):
        SpanGroups("")


def test_writing_nothing():
    for key in ("ents", "sc"):
        write(both(key), [], [])
        doc = Doc(VOCAB)
        write(both(key), [doc], [[]])
        assert spans_of(doc, key) == []
    # As with `ner`, every token is annotated.
    doc = make_doc(2)
    write(Entities(), [doc], [["O", "O"]])
    assert [token.ent_iob for token in doc] == [2, 2]
    assert doc.has_annotation("ENT_IOB")
