"""CoNLL-U files: the syntactic words of Universal Dependencies."""

import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import Errors, SparseCRFError
from .column_attributes import DOCSTART
from .columns import Row, Sentence, Source, paragraphs, wrong_width

CONLLU_COLUMNS = ("orth", "lemma", "pos", "tag", "morph", "space_after")
_WIDTH = 10
_ID = re.compile(r"[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?|.*\..*")  # of words, 3-4, or empty, 3.1
_SPLIT = (
    "multiword tokens are split into their words, which no tokenizer finds in new texts (`python "
    "-m spacy convert --merge-subtokens` keeps them)"
)
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")


def read_conllu(source: Source[Sentence]) -> Iterator[Sentence]:
    """Read the words of a CoNLL-U file: form, lemma, UPOS, XPOS, FEATS and whether space follows.

    Empty nodes are skipped. A multiword token is replaced by its words, of which only the last may
    have a space after it. A comment "# newdoc" begins a document. spaCy's own reader cannot name
    files and lines in messages.
    RAISES: SparseCRFError, when read, for a line that is not a valid word.
    """
    begins = False
    for lines in paragraphs(source.path):
        rows: Sentence = []
        for number, line in lines:
            if line.startswith("#"):
                begins |= _NEW_DOCUMENT.match(line) is not None
                continue
            rows.append(Row(number, line.split("\t")))
            if len(rows[-1].values) != _WIDTH:
                raise wrong_width(
                    source.path, rows[-1], _WIDTH, why="as in all CoNLL-U", separator="one tab each"
                )
        made, n_multiword = _words(source.path, rows)
        source.left_out[_SPLIT] += n_multiword
        if made:
            # A word -DOCSTART- would be taken for a mark, unless a mark is before it.
            mark = Row(made[0].line, [DOCSTART] * len(CONLLU_COLUMNS))
            yield [mark, *made] if begins or made[0].values[0] == DOCSTART else made
            begins = False


def _words(path: Path, rows: Sentence) -> tuple[Sentence, int]:
    """Return the words of a sentence as CONLLU_COLUMNS, and the number of multiword tokens.

    Of the words of a multiword token, only the last may have a space after it, as the token has.
    """
    words: Sentence = []
    n_multiword, end, of_token = 0, 0, False
    for row in rows:
        number, has_space = row.values[0], "SpaceAfter=No" not in row.values[-1].split("|")
        if _ID.fullmatch(number) is None:
            values = {"path": path, "line": row.line, "value": number, "column": "ID"}
            reason = "a number, a range such as 3-4, or an empty node such as 3.1 is expected"
            raise SparseCRFError(Errors.SC616.format(**values, reason=reason))
        if "." in number:
            continue
        if "-" in number:
            end, of_token = int(number.split("-")[1]), has_space
            n_multiword += 1
            continue
        i = int(number)
        if i <= end:
            has_space = i == end and of_token
        words.append(Row(row.line, [*row.values[1:6], str(int(has_space))]))
    return words, n_multiword
