"""How predicted spans match gold ones."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_sparsecrf.targets.matching import KINDS, Matches, Pair

from ..golden import read_golden

N_TOKENS = 8
Spans = list[tuple[int, int, str]]


@pytest.mark.parametrize(
    ("gold", "predicted", "recall", "precision", "faults"),
    [pytest.param(*row[1:], id=row[0]) for row in read_golden(__file__, "matches.jsonl")],
)
def test_kinds_of_match(
    gold: Spans, predicted: Spans, recall: list[float], precision: list[float], faults: list[str]
):
    """Of spans by tokens and their types "A" and "B"."""
    gold, predicted = ([tuple(span) for span in spans] for spans in (gold, predicted))
    matches = Matches()
    pairs = matches.add(gold, predicted)
    total = matches.scores()[0]
    assert (total.label, total.n_gold, total.n_predicted) == ("", len(gold), len(predicted))
    assert [total.rates[kind].recall for kind in KINDS] == recall
    assert [total.rates[kind].precision for kind in KINDS] == precision
    assert sorted(pair.fault for pair in pairs) == sorted(faults)
    assert [span for pair in pairs if (span := pair.gold)] == gold
    assert [span for pair in pairs if (span := pair.predicted)] == predicted


def test_pairs_share_most_tokens():
    gold, predicted = [(0, 2, "A"), (2, 8, "B")], [(1, 6, "A")]
    assert Matches().add(gold, predicted) == [Pair(gold[0], None), Pair(gold[1], predicted[0])]


@st.composite
def spans(draw: st.DrawFn) -> list[tuple[int, int, str]]:
    bounds = sorted(draw(st.sets(st.integers(0, N_TOKENS))))
    found = [(a, b, draw(st.sampled_from("AB "))) for a, b in pairwise(bounds)]
    return [span for span in found if span[2] != " "]


@given(st.lists(st.tuples(spans(), spans()), max_size=4))
def test_strict_scores_are_those_of_spacy(docs: list):
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
