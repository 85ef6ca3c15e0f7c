"""Explanations as rows of texts, for tables, and as pages of HTML, which load nothing else."""

from collections import Counter
from collections.abc import Sequence
from html import escape

from ..model.explanation import (
    BOUNDARY,
    Contribution,
    DocExplanation,
    LabelExplanation,
    ModelExplanation,
    TestWeight,
    TokenExplanation,
    Transition,
)
from ..model.names import ALWAYS
from ..model.names import escape as visible

MOST_LABELS = 60  # of a square of transitions; those of more labels are a list

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff; }}
div {{ overflow-x: auto; margin-bottom: 1rem; }}
main {{ display: flex; flex-wrap: wrap; gap: 0.75rem; align-items: flex-start; }}
section {{ border: 1px solid #ccc; border-radius: 6px; padding: 0.6rem 0.8rem; }}
h2 {{ font-size: 1.2rem; margin: 0; white-space: pre; }}
mark {{ background: #cfe6ff; border-radius: 4px; padding: 0.1rem 0.4rem; font-weight: 600; }}
small {{ color: #555; }}
meter {{ display: block; width: 100%; margin: 0.3rem 0; }}
table {{ border-collapse: collapse; font-size: 0.85rem; }}
td, th {{ padding: 0.1rem 0.4rem; text-align: right; }}
td:first-child, th:first-child {{ text-align: left; max-width: 24rem; overflow-wrap: anywhere; }}
tr.for td:last-child {{ background: #d8f2dc; }}
tr.against td:last-child {{ background: #f8dada; }}
table.heat {{ font-size: 0.7rem; }}
table.heat th, table.heat td {{ border: 1px solid #eee; white-space: nowrap; }}
</style>
</head>
<body>
<h1>{title}</h1>
{above}<main>
{cards}</main>
</body>
</html>
"""
_TOKEN_CARD = """<section>
<h2>{text}</h2>
<mark>{label}</mark> {probability:.4f}<small>{other}</small>
<meter min="0" max="1" value="{probability:.4f}"></meter>
<table>
<tr><th>what</th><th>label</th><th>other</th><th>for</th></tr>
{rows}</table>
</section>
"""
_LABEL_CARD = """<section>
<h2>{label}</h2>
<small>{n} weights</small>
<table>
<tr><th>test</th><th>before</th><th>weight</th></tr>
{rows}</table>
</section>
"""
_LIST = """<table>
<tr><th>before</th><th>label</th><th>weight</th></tr>
{rows}</table>
"""
_SQUARE = """<div>
<table class="heat">
<tr><th>before</th>{header}</tr>
{rows}</table>
</div>
"""


# Texts


def runner_up(token: TokenExplanation) -> str:
    """The most probable other label, or ""."""
    if token.runner_up is None:
        return ""
    return f", not {visible(token.runner_up)} {token.runner_up_probability:.4f}"


def strongest(token: TokenExplanation, n: int) -> Sequence[Contribution]:
    """The n contributions that speak most for a token's label, and the n most against it."""
    return (*token.supporting[:n], *reversed(token.opposing[:n]))


def strongest_pairs(transitions: Sequence[Transition], n: int) -> list[Transition]:
    """The n pairs that speak most for each label behind, and the n most against it, in order.

    transitions: descending by weight, and so is what is left of them.
    """
    kept: set[tuple[str, str]] = set()
    for sign, ordered in ((1.0, transitions), (-1.0, reversed(transitions))):
        counts: Counter[str] = Counter()
        for pair in ordered:
            if sign * pair.weight > 0.0 and counts[pair.label] < n:
                counts[pair.label] += 1
                kept.add((pair.previous, pair.label))
    return [pair for pair in transitions if (pair.previous, pair.label) in kept]


def contribution_row(contribution: Contribution) -> tuple[str, str, str, str]:
    """What contributes, and its weights and their difference, as texts."""
    values = contribution.weight, contribution.rival, contribution.difference
    weight, rival, difference = map(_signed, values)
    return _describe(contribution), weight, rival, difference


def weight_row(weight: TestWeight) -> tuple[str, str, str]:
    """A test, the label before where it matters, and the weight, as texts."""
    before = "" if weight.previous is None else _before(weight.previous)
    return weight.test, before, _signed(weight.weight)


def pair_row(transition: Transition) -> tuple[str, str, str]:
    """A pair of labels and its weight, as texts."""
    return _before(transition.previous), visible(transition.label), _signed(transition.weight)


def _describe(contribution: Contribution) -> str:
    """What contributes: a test, and the pair of labels that it is conjoined with."""
    if contribution.previous is None:
        return contribution.test
    pair = f"{_before(contribution.previous)} -> {visible(contribution.label)}"
    return pair if contribution.test == ALWAYS else f"{pair} {contribution.test}"


def _before(label: str) -> str:
    """A label, or the beginning of a sequence."""
    return visible(label) or "(start)"


def _signed(value: float) -> str:
    """A weight."""
    return f"{value:+.4f}"


# Pages


def render_tokens(explanation: DocExplanation, n: int, title: str) -> str:
    """Render a page of tokens, a card each.

    n: number of contributions for, and against, a token's label.
    """
    return _page(title, "".join(_token_card(token, n) for token in explanation.tokens))


def _token_card(token: TokenExplanation, n: int) -> str:
    rows = [_table_row(contribution_row(each), each.difference) for each in strongest(token, n)]
    return _TOKEN_CARD.format(
        text=escape(token.text),
        label=escape(token.label),
        probability=token.probability,
        other=escape(runner_up(token)),
        rows="".join(rows),
    )


def render_model(explanation: ModelExplanation, title: str) -> str:
    """Render a page: transitions whose weights are not zero, and a card of tests a label."""
    order = [label.label for label in explanation.labels]
    cards = "".join(map(_label_card, explanation.labels))
    heading = f"{title}: {explanation.n_active} weights"
    return _page(heading, cards, above=_transitions(explanation.transitions, order))


def _transitions(transitions: Sequence[Transition], order: Sequence[str]) -> str:
    """A square of labels before and behind, or a list of pairs where there are many labels."""
    if not transitions:
        return ""
    ends = {transition.label for transition in transitions}
    starts = {transition.previous for transition in transitions}
    if max(len(ends), len(starts)) > MOST_LABELS:
        rows = [_table_row(pair_row(transition), transition.weight) for transition in transitions]
        return _LIST.format(rows="".join(rows))
    weights = {(pair.previous, pair.label): pair.weight for pair in transitions}
    largest = max(map(abs, weights.values()))
    columns = [label for label in order if label in ends]
    rows = []
    for before in (label for label in (BOUNDARY, *order) if label in starts):
        cells = [_cell(before, label, weights.get((before, label)), largest) for label in columns]
        rows.append(f"<tr><th>{escape(_before(before))}</th>{''.join(cells)}</tr>\n")
    header = "".join(f"<th>{escape(visible(label))}</th>" for label in columns)
    return _SQUARE.format(header=header, rows="".join(rows))


def _cell(previous: str, label: str, weight: float | None, largest: float) -> str:
    """A weight on a ground whose strength is its share of the largest one."""
    if weight is None:
        return "<td></td>"
    tint = "34, 160, 60" if weight > 0 else "210, 50, 50"
    name = escape(f"{_before(previous)} -> {visible(label)}: {_signed(weight)}")
    share = abs(weight) / largest if largest else 0.0
    style = f"background: rgba({tint}, {0.75 * share:.2f})"
    return f'<td title="{name}" style="{style}">{weight:+.2f}</td>'


def _label_card(label: LabelExplanation) -> str:
    weights = (*label.supporting, *reversed(label.opposing))
    rows = "".join(_table_row(weight_row(weight), weight.weight) for weight in weights)
    return _LABEL_CARD.format(label=escape(visible(label.label)), n=label.n_active, rows=rows)


def _page(title: str, cards: str, above: str = "") -> str:
    """A page; cards, above: HTML."""
    return _PAGE.format(title=escape(title), cards=cards, above=above)


def _table_row(cells: Sequence[str], weight: float) -> str:
    """A row of a table, whose last cell is coloured by the sign of a weight; cells: texts."""
    side = "for" if weight > 0 else "against"
    columns = "".join(f"<td>{escape(text)}</td>" for text in cells)
    return f'<tr class="{side}">{columns}</tr>\n'
