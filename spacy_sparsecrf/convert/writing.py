"""Docs -> sentences in columns."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from spacy.tokens import Doc, DocBin, Span, Token
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError
from .attributes import ENTITIES, SPACE, UNSET, WORDS, custom_name, register, span_key
from .columns import TAB, write_sentence
from .schemes import Scheme, Spans, write_spans

_READ: dict[str, Callable[[Token], str]] = {
    WORDS: lambda token: token.text,
    "tag": lambda token: token.tag_,
    "pos": lambda token: token.pos_,
    "morph": lambda token: str(token.morph),
    "lemma": lambda token: token.lemma_,
    SPACE: lambda token: "1" if token.whitespace_ else "0",
    "_": lambda token: UNSET,
}


def unpack(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read the Docs of a .spacy file. RAISES: SparseCRFError if it is none."""
    try:
        yield from DocBin().from_disk(path).get_docs(vocab)
    except (zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise SparseCRFError(Errors.SC621.format(path=path, reason=error)) from error


def write_docs(
    docs: Iterable[Doc],
    path: Path,
    columns: Sequence[str],
    *,
    scheme: Scheme = Scheme.iob2,
    separator: str = TAB,
) -> Iterator[str]:
    """Write the sentences of Docs, each with the empty line behind it.

    docs: those without sentence boundaries are a sentence each, empty ones none; path: of their
    file, for messages; columns: what to write, _ for a value that is not set; scheme: of the labels
    of entities and other spans; separator: a tab or a blank.
    RAISES: SparseCRFError for a value that would not be read again: with the separator or the end
    of a line in it, and for spans that overlap.
    """
    register(columns)
    for number, doc in enumerate(docs, start=1):
        writer = _Writer(doc, number, path, scheme, separator)
        for sentence in _sentences(doc):
            yield write_sentence(writer.rows(sentence, columns), separator)


def _sentences(doc: Doc) -> Iterable[Span]:
    if not len(doc):
        return []
    return doc.sents if doc.has_annotation("SENT_START") else [doc[:]]


class _Writer:
    """Writes sentences of a Doc. number: of the Doc in its file, from 1; see `write_docs`."""

    def __init__(self, doc: Doc, number: int, path: Path, scheme: Scheme, separator: str) -> None:
        self._doc = doc
        self._number = number
        self._path = path
        self._scheme = scheme
        self._refused = "\t\n\r" if separator == TAB else " \t\n\r"

    def rows(self, sentence: Span, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The values of a sentence's tokens."""
        values = [self._checked(sentence, column) for column in columns]
        return zip(*values, strict=True)

    def _checked(self, sentence: Span, column: str) -> list[str]:
        texts = self._texts(sentence, column)
        for token, text in zip(sentence, texts, strict=True):
            if any(char in self._refused for char in text):
                reason = "has a separator or the end of a line in it"
                raise self._error(token.i, column, text, reason)
        return texts

    def _texts(self, sentence: Span, column: str) -> list[str]:
        if column == ENTITIES:
            labels = self._labels(sentence, column, self._doc.ents)
            # The entity of a token may be unknown, which is other than none.
            known = [token.ent_iob != 0 for token in sentence]
            return [text if k else UNSET for text, k in zip(labels, known, strict=True)]
        if key := span_key(column):
            spans = self._doc.spans.get(key, [])
            return self._labels(sentence, column, spans)
        if name := custom_name(column):
            values = [token._.get(name) for token in sentence]
            return [UNSET if value is None else str(value) for value in values]
        return [_READ[column](token) or UNSET for token in sentence]

    def _labels(self, sentence: Span, column: str, spans: Iterable[Span]) -> list[str]:
        """Labels of a sentence's tokens; a span that goes beyond it is cut."""
        start, end = sentence.start, sentence.end
        found: Spans = sorted(
            (max(span.start, start) - start, min(span.end, end) - start, span.label_)
            for span in spans
            if span.start < end and span.end > start
        )
        last = 0
        for first, behind, label in found:
            if not label:
                raise self._error(start + first, column, label, "is a span without a label")
            if first < last:
                raise self._error(start + first, column, label, "overlaps the span before it")
            last = behind
        return write_spans(found, len(sentence), self._scheme)

    def _error(self, token: int, column: str, value: str, reason: str) -> SparseCRFError:
        return SparseCRFError(
            Errors.SC619.format(
                token=token + 1,
                doc=self._number,
                path=self._path,
                column=column,
                value=value,
                reason=reason,
            )
        )
