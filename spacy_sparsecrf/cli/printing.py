"""Printing of commands: messages and tables, without control characters."""

import os
import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spacy.language import Language
from wasabi.printer import Printer

from .. import __version__
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


def made_of(nlp: Language, model: str, data: Path | None = None) -> dict[str, str]:
    """Return the footer of a page: pipeline, data, version, date and command.

    The date is that of SOURCE_DATE_EPOCH, if set.
    """
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    return {
        "pipeline": f"{model} ({nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']})",
        **({} if data is None else {"data": printable(data)}),
        "version": f"spacy-sparsecrf {__version__}",
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)),
        "command": printable(shlex.join(["python", "-m", "spacy_sparsecrf", *sys.argv[1:]])),
    }


def write_page(
    path: Path, shown: Page, title: str, made: Mapping[str, str], n: int = N_SHOWN
) -> None:
    """Write an explanation or a report as a page of HTML; see `render`."""
    with_folder(path).write_text(render(shown, title, n, made), encoding="utf8")
    msg.good(f"Page is in {path}")


def print_table(rows: Iterable[Sequence[str]], aligns: str, *header: str) -> None:
    """Print rows, if there are any. aligns: "l" or "r", left or right, for each column."""
    rows = [[*map(printable, row)] for row in rows]
    if rows:
        msg.table(rows, header=header, divider=True, aligns=tuple(aligns), max_col=WIDTH)
