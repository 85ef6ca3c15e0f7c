"""BILUO and IOB2: encoding, decoding of arbitrary labels, valid transitions."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example, biluo_to_iob, iob_to_biluo
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.targets.matching import KINDS, Group, Matches
from spacy_sparsecrf.pipeline.targets.scheme import LETTERS, OUTSIDE, LabelledSpans, Scheme

from ..reference import overlap_groups
from ..support.golden import read_golden
from ..support.span_cases import SpanTriple, span_lists

NAMES = ("X", "Y-Z")


def labels_of(scheme: Scheme, names: tuple[str, ...] = NAMES) -> list[str]:
    return [label for name in names for label in scheme.labels_of(name)] + [OUTSIDE]


def encode(scheme: Scheme, n_tokens: int, spans: list[SpanTriple]) -> list[str]:
    labels = [OUTSIDE] * n_tokens
    for start, end, name in spans:
        labels[start:end] = scheme.labels_for(end - start, name)
    return labels


def triples(spans: LabelledSpans) -> list[SpanTriple]:
    names = [spans.names[i] for i in spans.types]
    return list(zip(spans.starts.tolist(), spans.ends.tolist(), names, strict=True))


def decode(scheme: Scheme, sequence: list[str], labels: list[str]) -> list[SpanTriple]:
    ids = np.array([labels.index(label) for label in sequence], dtype=np.int32)
    return triples(scheme.decode(ids, np.array([len(ids)]), labels))


def decode_slowly(sequence: list[str]) -> list[SpanTriple]:
    """Decode token by token, as a reference."""
    spans: list[SpanTriple] = []
    before = OUTSIDE
    for i, label in enumerate(sequence):
        letter, _, name = label.partition("-")
        if letter in ("I", "L") and before in (f"B-{name}", f"I-{name}"):
            spans[-1] = (spans[-1][0], i + 1, name)
        elif label != OUTSIDE:
            spans.append((i, i + 1, name))
        before = label
    return spans


@pytest.mark.parametrize("name", LETTERS)
@given(data=st.data())
def test_spans_come_back(name, data):
    scheme, n = Scheme(name), data.draw(st.integers(0, 12))
    spans = data.draw(span_lists(n))
    labels = labels_of(scheme)
    sequence = encode(scheme, n, spans)
    assert decode(scheme, sequence, labels) == spans
    if name == "IOB2":
        assert sequence == biluo_to_iob(encode(Scheme("BILUO"), n, spans))
        assert iob_to_biluo(sequence) == encode(Scheme("BILUO"), n, spans)


@pytest.mark.parametrize("name", LETTERS)
@given(data=st.data())
def test_any_labels_tell_spans_that_do_not_overlap(name, data):
    scheme = Scheme(name)
    labels = data.draw(st.permutations(labels_of(scheme)))
    sequence = data.draw(st.lists(st.sampled_from(labels), max_size=12))
    spans = decode(scheme, sequence, labels)
    assert spans == decode_slowly(sequence)
    covered = [i for start, end, _ in spans for i in range(start, end)]
    assert covered == [i for i, label in enumerate(sequence) if label != OUTSIDE]


@given(st.lists(st.lists(st.sampled_from(labels_of(Scheme())), max_size=5), max_size=5))
def test_spans_end_with_their_doc(sequences):
    scheme = Scheme()
    labels, joined = labels_of(scheme), [label for sequence in sequences for label in sequence]
    ids = np.array([labels.index(label) for label in joined], dtype=np.int32)
    ends = np.cumsum([len(sequence) for sequence in sequences], dtype=np.int64)
    expected = []
    for sequence, end in zip(sequences, ends.tolist(), strict=True):
        first = end - len(sequence)
        expected += [(i + first, j + first, name) for i, j, name in decode_slowly(sequence)]
    assert triples(scheme.decode(ids, ends, labels)) == expected


@pytest.mark.parametrize("name", LETTERS)
def test_legal_sequences_are_those_that_come_back(name):
    """In BILUO, invalid sequences do not round-trip; in IOB2, I- that begins a span does not."""
    scheme = Scheme(name)
    labels = labels_of(scheme)
    valid = scheme.valid_transitions(labels)
    boundary = len(labels)
    assert valid.shape == (boundary + 1, boundary + 1)
    for n in range(4):
        for sequence in product(range(boundary), repeat=n):
            path = [boundary, *sequence, boundary]
            is_valid = all(valid[a, b] for a, b in pairwise(path))
            names = [labels[i] for i in sequence]
            assert is_valid == (encode(scheme, n, decode(scheme, names, labels)) == names), names


def test_legality_of_labels_that_lack_some_of_a_type():
    valid = Scheme().valid_transitions(["B-X", "O", "U-Y"])
    assert valid.tolist() == [[False] * 4, *[[True] * 4] * 3]


@pytest.mark.parametrize(("label", "biluo", "iob2"), read_golden(__file__, "labels.jsonl"))
def test_what_is_a_label(label, biluo, iob2):
    assert Scheme("BILUO").is_label(label) == biluo
    assert Scheme("IOB2").is_label(label) == iob2


def test_types_whose_names_look_like_labels():
    assert Scheme().names_of(["B-U-X", "O", "U-X"]) == ("U-X", "X")


def test_a_scheme_that_is_not_known():
    with pytest.raises(SparseCRFError, match=r"SC501.*'IO'.*BILUO, IOB2"):
        Scheme("IO")


N_TOKENS = 8
Spans = list[tuple[int, int, str]]


@pytest.mark.parametrize(
    ("gold", "predicted", "recall", "precision", "faults"),
    [pytest.param(*row[1:], id=row[0]) for row in read_golden(__file__, "matches.jsonl")],
)
def test_kinds_of_match(gold, predicted, recall, precision, faults):
    """Match spans by tokens and their types "A" and "B"."""
    gold, predicted = ([tuple(span) for span in spans] for spans in (gold, predicted))
    matches = Matches()
    groups = matches.add(gold, predicted)
    total = matches.scores()[0]
    assert (total.label, total.n_gold, total.n_predicted) == ("", len(gold), len(predicted))
    assert [total.rates[kind].recall for kind in KINDS] == recall
    assert [total.rates[kind].precision for kind in KINDS] == precision
    assert [group.fault for group in groups] == faults
    assert [span for group in groups for span in group.gold] == gold
    assert [span for group in groups for span in group.predicted] == predicted


def test_groups_have_the_labels_of_their_largest_overlap():
    gold, predicted = [(0, 2, "A"), (2, 8, "B"), (8, 9, "A")], [(1, 6, "A"), (6, 7, "B")]
    matches = Matches()
    [group, missed] = matches.add(gold, predicted)
    assert group == Group(tuple(gold[:2]), tuple(predicted))
    assert (group.labels, group.extent) == (("B", "A"), (0, 8))
    assert (missed.labels, missed.fault) == (("A", ""), "missed")
    assert matches.pairs == {("B", "A"): 1, ("A", ""): 1}
    assert [score.label for score in matches.scores()] == ["", "A", "B"]


@st.composite
def spans(draw: st.DrawFn) -> list[tuple[int, int, str]]:
    bounds = sorted(draw(st.sets(st.integers(0, N_TOKENS))))
    found = [(a, b, draw(st.sampled_from("AB "))) for a, b in pairwise(bounds)]
    return [span for span in found if span[2] != " "]


@given(spans(), spans())
def test_groups_are_those_of_the_reference(gold, predicted):
    """Errors are one for each group, and correct spans are alone with themselves."""
    found = Matches().add(gold, predicted)
    assert [(group.gold, group.predicted) for group in found] == overlap_groups(gold, predicted)
    n_right = sum(not group.fault for group in found)
    assert n_right == len({*gold} & {*predicted})
    assert all(group.gold == group.predicted for group in found if not group.fault)


@given(st.lists(st.tuples(spans(), spans()), max_size=4))
def test_strict_scores_are_those_of_spacy(docs):
    matches, examples = Matches(), []
    vocab = Vocab()
    for both in docs:
        matches.add(*both)
        reference, predicted = (Doc(vocab, words=list("abcdefgh")) for _ in both)
        for doc, own in zip((reference, predicted), both, strict=True):
            doc.set_ents([Span(doc, *span[:2], label=span[2]) for span in own])
        examples.append(Example(predicted, reference))
    expected = Scorer.score_spans(examples, "ents")
    total, *labels = matches.scores()
    rates = total.rates["strict"]
    if total.n_gold and total.n_predicted:
        found = rates.precision, rates.recall, rates.f
        assert found == pytest.approx([expected[f"ents_{key}"] for key in "prf"])
        for score in labels:
            own = expected["ents_per_type"][score.label]["f"]
            assert score.rates["strict"].f == pytest.approx(own)
    for score in matches.scores():
        strict, boundaries, partial, _ = (score.rates[kind].f for kind in KINDS)
        assert strict <= boundaries <= partial
