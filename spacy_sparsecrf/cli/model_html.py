"""The explanation of a model as a page: its transitions, and a card a label."""

from collections.abc import Sequence
from html import escape

from ..explanation import BOUNDARY, LabelExplanation, ModelExplanation, Transition
from ..names import escape as visible
from .page import page, row
from .shown import boundary, signed, weight_row

MOST_LABELS = 60  # of a square of transitions; those of more labels are a list

_CARD = """<section>
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


def render_model(explanation: ModelExplanation, title: str) -> str:
    """Render a page: weights of transitions, of those that are not zero, and tests of labels."""
    order = [label.label for label in explanation.labels]
    cards = "".join(map(_card, explanation.labels))
    heading = f"{title}: {explanation.n_active} weights"
    return page(heading, cards, above=_transitions(explanation.transitions, order))


def _transitions(transitions: Sequence[Transition], order: Sequence[str]) -> str:
    """A square of labels before and behind, or a list of pairs where there are many labels."""
    if not transitions:
        return ""
    ends = {transition.label for transition in transitions}
    starts = {transition.previous for transition in transitions}
    if max(len(ends), len(starts)) > MOST_LABELS:
        rows = [row(_pair_row(transition), transition.weight) for transition in transitions]
        return _LIST.format(rows="".join(rows))
    weights = {(pair.previous, pair.label): pair.weight for pair in transitions}
    columns = [label for label in order if label in ends]
    header = "".join(f"<th>{escape(visible(label))}</th>" for label in columns)
    before = [label for label in (BOUNDARY, *order) if label in starts]
    rows = [_square_row(label, columns, weights) for label in before]
    return _SQUARE.format(header=header, rows="".join(rows))


def _pair_row(transition: Transition) -> tuple[str, str, str]:
    return boundary(transition.previous), visible(transition.label), signed(transition.weight)


def _square_row(
    previous: str, columns: Sequence[str], weights: dict[tuple[str, str], float]
) -> str:
    largest = max(map(abs, weights.values()))
    cells = [_cell(previous, label, weights.get((previous, label)), largest) for label in columns]
    return f"<tr><th>{escape(boundary(previous))}</th>{''.join(cells)}</tr>\n"


def _cell(previous: str, label: str, weight: float | None, largest: float) -> str:
    """A weight on a ground whose strength is its share of the largest one."""
    if weight is None:
        return "<td></td>"
    tint = "34, 160, 60" if weight > 0 else "210, 50, 50"
    name = escape(f"{boundary(previous)} -> {visible(label)}: {signed(weight)}")
    share = abs(weight) / largest if largest else 0.0
    style = f"background: rgba({tint}, {0.75 * share:.2f})"
    return f'<td title="{name}" style="{style}">{weight:+.2f}</td>'


def _card(label: LabelExplanation) -> str:
    weights = (*label.supporting, *reversed(label.opposing))
    rows = "".join(row(weight_row(weight), weight.weight) for weight in weights)
    return _CARD.format(label=escape(visible(label.label)), n=label.n_active, rows=rows)
