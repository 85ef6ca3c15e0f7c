"""Explanations of tokens as a page: a card a token."""

from html import escape

from ..explanation import Contribution, DocExplanation, TokenExplanation
from .page import page, row
from .shown import contribution_row, runner_up, strongest

_CARD = """<section>
<h2>{text}</h2>
<mark>{label}</mark> {probability:.4f}<small>{other}</small>
<meter min="0" max="1" value="{probability:.4f}"></meter>
<table>
<tr><th>what</th><th>label</th><th>other</th><th>for</th></tr>
{rows}</table>
</section>
"""


def render(explanation: DocExplanation, n: int, title: str) -> str:
    """Render a page.

    n: number of contributions for, and against, a token's label.
    """
    cards = "".join(_card(token, n) for token in explanation.tokens)
    return page(title, cards)


def _card(token: TokenExplanation, n: int) -> str:
    return _CARD.format(
        text=escape(token.text),
        label=escape(token.label),
        probability=token.probability,
        other=escape(runner_up(token)),
        rows="".join(map(_row, strongest(token, n))),
    )


def _row(contribution: Contribution) -> str:
    return row(contribution_row(contribution), contribution.difference)
