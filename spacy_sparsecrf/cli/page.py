"""What pages of explanations have in common; they load nothing from elsewhere."""

from collections.abc import Sequence
from html import escape

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


def page(title: str, cards: str, above: str = "") -> str:
    """A page; cards, above: HTML."""
    return _PAGE.format(title=escape(title), cards=cards, above=above)


def row(cells: Sequence[str], weight: float) -> str:
    """A row of a table, whose last cell is coloured by the sign of a weight; cells: texts."""
    side = "for" if weight > 0 else "against"
    columns = "".join(f"<td>{escape(text)}</td>" for text in cells)
    return f'<tr class="{side}">{columns}</tr>\n'
