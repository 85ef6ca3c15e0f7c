"""CoNLL-U files: the syntactic words of Universal Dependencies."""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ..errors import Errors, SparseCRFError
from .attributes import DOCSTART, UNSET
from .columns import Row, Sentence, Source, lines_of, wrong_width

CONLLU_COLUMNS = ("orth", "lemma", "pos", "tag", "morph", "space_after")
_WIDTH = 10
_MAX_DIGITS = 9  # of the ID of a word
_DONE = (
    "multiword tokens are split into their words, which no tokenizer finds in new texts (see "
    "--merge-subtokens)",
    "multiword tokens are kept as one token each",
)
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")


def read_conllu(path: Path, merge_subtokens: bool = False) -> Source[Sentence]:
    """Read the words of a CoNLL-U file: form, lemma, UPOS, XPOS, FEATS and whether space follows.

    Empty nodes are skipped. A multiword token is replaced by its words, of which only the last may
    have a space after it. A comment "# newdoc" begins a document. spaCy's own reader cannot name
    files and lines in messages.
    merge_subtokens: whether to keep a multiword token as one token, as spaCy's converter does, with
    its own form, the lemmas, XPOS and FEATS of all of its words, and the UPOS of their head.
    RAISES: SparseCRFError, when read, for a line that is not a valid word.
    """
    source: Source[Sentence] = Source(path, columns=CONLLU_COLUMNS)
    source.entries = _sentences(source, merge_subtokens)
    return source


def _sentences(source: Source[Sentence], merge: bool) -> Iterator[Sentence]:
    begins = False
    for has_text, lines in groupby(lines_of(source.path), key=lambda entry: entry[1] != ""):
        rows: Sentence = []
        for number, line in lines if has_text else ():
            if line.startswith("#"):
                begins |= _NEW_DOCUMENT.match(line) is not None
                continue
            rows.append(Row(number, line.split("\t")))
            if len(rows[-1].values) != _WIDTH:
                why = "as in all CoNLL-U", "one tab each"
                raise wrong_width(source.path, rows[-1], _WIDTH, *why)
        tokens = _tokens(source.path, rows)
        source.left_out[_DONE[merge]] += sum(written is not None for written, _ in tokens)
        made = [row for token in tokens for row in _rows(*token, merge)]
        if made:
            # A word -DOCSTART- would be taken for a mark, unless a mark is before it.
            mark = Row(made[0].line, [DOCSTART] * len(CONLLU_COLUMNS))
            yield [mark, *made] if begins or made[0].values[0] == DOCSTART else made
            begins = False


def _tokens(path: Path, rows: Sentence) -> list[tuple[Row | None, Sentence]]:
    """Return the tokens of a sentence: the line of a multiword token or None, and its words."""
    tokens: list[tuple[Row | None, Sentence]] = []
    end = 0
    for row in rows:
        number = row.values[0]
        if "." in number:
            continue
        if "-" in number:
            end = _integer(path, row.line, number, number.split("-")[1])
            tokens.append((row, []))
        elif _integer(path, row.line, number, number) <= end:
            tokens[-1][1].append(row)
        else:
            tokens.append((None, [row]))
    return tokens


def _rows(written: Row | None, words: Sentence, merge: bool) -> Sentence:
    """Return the rows of a token, with the values of CONLLU_COLUMNS."""
    if merge and written and words:
        words = [_merged(written, words)]
    spaces = ["0"] * len(words)
    if words:
        spaces[-1] = "0" if "SpaceAfter=No" in (written or words[-1]).values[-1].split("|") else "1"
    return [Row(w.line, [*w.values[1:6], space]) for w, space in zip(words, spaces, strict=True)]


def _merged(written: Row, words: Sentence) -> Row:
    """Return a multiword token as one line of a word."""
    numbers = [word.values[0] for word in words]
    head = next((word for word in words if word.values[6] not in numbers), words[0])
    lemmas, tags, morphs = (
        [word.values[i] for word in words if word.values[i] != UNSET] for i in (2, 4, 5)
    )
    fields: dict[str, set[str]] = {}
    for feature in "|".join(morphs).split("|") if morphs else []:
        field, _, values = feature.partition("=")
        fields.setdefault(field, set()).update(values.split(","))
    morph = "|".join(f"{field}={','.join(sorted(fields[field]))}" for field in sorted(fields))
    made = " ".join(lemmas), head.values[3], "_".join(tags), morph
    return Row(written.line, [*written.values[:2], *(value or UNSET for value in made)])


def _integer(path: Path, line: int, value: str, digits: str) -> int:
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS and int(digits):
        return int(digits)
    values = {"path": path, "line": line, "value": value, "column": "ID"}
    reason = "a number, a range such as 3-4, or an empty node such as 3.1 is expected"
    raise SparseCRFError(Errors.SC616.format(**values, reason=reason))
