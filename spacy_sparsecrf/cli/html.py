"""Explanations of tokens as a page: a card a token, without anything from elsewhere."""

from html import escape

from ..explanation import Contribution, DocExplanation, TokenExplanation
from .shown import contribution_row, runner_up, strongest

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff; }}
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
</style>
</head>
<body>
<h1>{title}</h1>
<main>
{cards}</main>
</body>
</html>
"""
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
    return _PAGE.format(title=escape(title), cards=cards)


def _card(token: TokenExplanation, n: int) -> str:
    return _CARD.format(
        text=escape(token.text),
        label=escape(token.label),
        probability=token.probability,
        other=escape(runner_up(token)),
        rows="".join(map(_row, strongest(token, n))),
    )


def _row(contribution: Contribution) -> str:
    side = "for" if contribution.difference > 0 else "against"
    cells = "".join(f"<td>{escape(text)}</td>" for text in contribution_row(contribution))
    return f'<tr class="{side}">{cells}</tr>\n'
