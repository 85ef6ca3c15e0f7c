"""Printing of commands: messages and tables, without control characters."""

import os
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from textwrap import wrap
from typing import Any

import wasabi
from spacy.language import Language
from typer import Context, echo
from wasabi.printer import Printer
from wasabi.util import color

from ... import __version__
from ...errors import printable
from ...pipeline.tokenization import MOST_CUT, TokenCuts
from ..pages.rendering import N_SHOWN, Page, render
from .common import with_folder

LINE = 80  # maximum width


class _Printer(Printer):
    """Prints texts that may have unsafe characters."""

    def text(self, title: Any = "", text: Any = "", **options: Any) -> Any:  # type: ignore[override]
        return super().text(printable(title), printable(text), **options)

    def warn(self, *texts: Any, **options: Any) -> Any:
        """Print a warning to stderr, in order with the texts of stdout."""
        sys.stdout.flush()
        with redirect_stdout(sys.stderr):
            printed = super().warn(*texts, **options)
        sys.stderr.flush()
        return printed

    def divider(self, text: Any = "", **options: Any) -> None:  # type: ignore[override]
        title, line = printable(text), "=" * max(0, (LINE - len(printable(text))) // 2 - 2)
        title = f"{line} {title} {line}"
        echo(f"\n{color(title, bold=True)}")


msg = _Printer()


def without_escapes(ctx: Context) -> None:
    """Write no escape codes, also of spaCy, to a file or pipe, or if NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    elif sys.stdout.isatty():
        return
    os.environ["ANSI_COLORS_DISABLED"] = "1"  # for printers that spaCy creates
    msg.show_color = wasabi.msg.show_color = False


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


def write_page(
    path: Path, shown: Page, title: str, *, nlp: Language, n: int = N_SHOWN, **of: object
) -> None:
    """Write an explanation or a report as a page of HTML; see `render`.

    of: pipeline and data, for the footer. Its date is that of SOURCE_DATE_EPOCH, if set.
    """
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    pipeline = "{lang}_{name} {version}".format(**nlp.meta)
    made = {key: printable(value) for key, value in of.items()} | {
        "version": f"{pipeline}, spacy-sparsecrf {__version__}",
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)),
        "command": printable(shlex.join(["python", "-m", "spacy_sparsecrf", *sys.argv[1:]])),
    }
    with_folder(path).write_text(render(shown, title, n, made), encoding="utf8")
    msg.good(f"Page is in {path}")


def print_table(rows: Iterable[Sequence[str]], header: Sequence[str], aligns: str) -> None:
    """Print rows, if there are any, in lines of `LINE` characters: the widest column is wrapped.

    header, aligns: the name, and "l" or "r", left or right, of each column.
    """
    rows = [[*map(printable, row)] for row in rows]
    if rows:
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        spacing = 3 if table_width(widths, 3) <= LINE else 2
        i = widths.index(max(widths))
        room = max(widths[i] + LINE - table_width(widths, spacing), 9)
        lines = []
        for row in rows:
            for part in wrap(row[i], room, break_on_hyphens=False) or [""]:
                lines.append([*row[:i], part, *row[i + 1 :]])
                row = [""] * len(row)
        options = {"aligns": tuple(aligns), "max_col": LINE, "spacing": spacing}
        msg.table(lines, header=header, divider=True, **options)


def table_width(widths: Sequence[int], spacing: int = 2) -> int:
    """Return the width of a table."""
    return sum(widths) + spacing * (len(widths) - 1)
