"""Printing of commands: messages and tables, without control characters."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from wasabi.printer import Printer

from ..errors import printable
from ..pages.rendering import N_SHOWN, Page, render
from ..pipeline.tokenization import MOST_CUT, TokenCuts
from .common import with_folder

WIDTH = 60  # maximum width of a column


class _Printer(Printer):
    """Prints texts that may have unsafe characters."""

    def text(self, title: Any = "", text: Any = "", **options: Any) -> Any:  # type: ignore[override]
        return super().text(printable(title), printable(text), **options)

    def divider(self, text: Any = "", **options: Any) -> None:  # type: ignore[override]
        super().divider(printable(text), **options)


msg = _Printer()


def say_cuts(cuts: TokenCuts, lang: str | None) -> None:
    """Print how many gold tokens the tokenizer of a language splits differently."""
    if not cuts.n_others:
        msg.info(f"The tokenizer of '{lang}' splits all {cuts.n_tokens} tokens as in the file")
        return
    say = msg.warn if cuts.share > MOST_CUT else msg.info
    say(
        f"The tokenizer of '{lang}' splits {cuts.n_others} of {cuts.n_tokens} tokens "
        f"({cuts.share:.2%}) differently: {cuts.examples}. A pipeline with this tokenizer does not "
        "find them in new texts. Give the language of the texts by --lang (zh splits Chinese into "
        "characters), or choose another [nlp.tokenizer] in the config."
    )


def write_page(path: Path, shown: Page, title: str, n: int = N_SHOWN) -> None:
    """Write an explanation or a report as a page of HTML; see `render`."""
    with_folder(path).write_text(render(shown, title, n), encoding="utf8")
    msg.good(f"Page is in {path}")


def print_table(rows: Iterable[Sequence[str]], aligns: str, *header: str) -> None:
    """Print rows, if there are any. aligns: "l" or "r", left or right, for each column."""
    rows = [[*map(printable, row)] for row in rows]
    if rows:
        msg.table(rows, header=header, divider=True, aligns=tuple(aligns), max_col=WIDTH)
