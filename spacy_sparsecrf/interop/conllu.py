"""CoNLL-U files: the syntactic words of Universal Dependencies."""

import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import Errors, SparseCRFError
from .column_attributes import DOCSTART, ENTITIES, UNSET
from .columns import Row, Sentence, Source, lines_of, paragraphs, wrong_width
from .schemes import OUTSIDE, ColumnScheme, Spans, is_label, write_spans

CONLLU_COLUMNS = ("orth", "lemma", "pos", "tag", "morph", "space_after", ENTITIES)
_WIDTH = 10
_ID = re.compile(r"[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?|.*\..*")  # of words, 3-4, or empty, 3.1
_SPLIT = (
    "multiword tokens are split into their words, which no tokenizer finds in new texts (`python "
    "-m spacy convert --merge-subtokens` keeps them)"
)
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")
# Labels of entities in MISC (Stanza writes ner, spaCy reads name and NE), and the brackets of
# Universal Anaphora, as in (1-person-giv, 1) and (PER).
_LABEL = re.compile(r"[\t|](?:NER|ner|NE|name)=([^|]*)")
_ENTITY = re.compile(r"[\t|]Entity=([^|]*)")
_BRACKET = re.compile(r"\(([^()]+)|([^()]*)\)")
_NESTED = "entities in MISC that overlap longer ones (left out)"


def read_conllu(source: Source[Sentence]) -> Iterator[Sentence]:
    """Read the words of a CoNLL-U file, with lemma, UPOS, XPOS, FEATS, spaces, and MISC's entities.

    Empty nodes are skipped. A multiword token is replaced by its words, of which only the last may
    have a space after it. A comment "# newdoc" begins a document. spaCy's own reader cannot name
    files and lines in messages.
    RAISES: SparseCRFError, when read, for a line that is not a valid word.
    """
    begins = False
    has_entities = any(
        _labels_in(line) or _ENTITY.search(line) for _, line in lines_of(source.path)
    )
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
        labels = _entities(made, source) if has_entities else [UNSET] * len(made)
        for word, label in zip(made, labels, strict=True):
            word.values[-1] = label
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
        words.append(Row(row.line, [*row.values[1:6], str(int(has_space)), f"\t{row.values[-1]}"]))
    return words, n_multiword


def _labels_in(text: str) -> list[str]:
    return [label for label in _LABEL.findall(text) if is_label(label)]


def _entities(words: Sentence, source: Source[Sentence]) -> list[str]:
    """Return the labels of the longest entities of words, whose last values are MISC."""
    values = [word.values[-1] for word in words]
    labels = [[*_labels_in(misc), OUTSIDE][0] for misc in values]
    for start, end, name in sorted(_bracketed(values), key=lambda span: span[0] - span[1]):
        if {*labels[start:end]} == {OUTSIDE}:
            labels[start:end] = write_spans(
                [(0, end - start, name)], end - start, ColumnScheme.iob2
            )
        else:
            source.left_out[_NESTED] += 1
    return labels


def _bracketed(values: list[str]) -> Spans:
    """Return the entities whose brackets are in values of MISC, and whose type has letters only."""
    spans: Spans = []
    begun: list[tuple[int, str]] = []
    for i, misc in enumerate(values):
        for opened, name in _BRACKET.findall("".join(_ENTITY.findall(misc))):
            if opened:
                begun.append((i, opened))
            elif begun:
                named = (x for x in reversed(begun) if f"{x[1]}-".startswith(f"{name}-"))
                start, text = entity = next(named, begun[-1])
                begun.remove(entity)
                kinds = [x for x in text.split("-") if len(x) > 1 and x.replace("_", "").isalpha()]
                spans += [(start, i + 1, kind) for kind in kinds[:1]]
    return spans
