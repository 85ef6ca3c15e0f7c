"""Sentences in columns -> Docs."""

from collections.abc import Iterator

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError
from .attributes import (
    ARGUMENTS,
    ENTITIES,
    SPACE,
    UNSET,
    WORDS,
    custom_name,
    register,
    span_key,
    why_not,
)
from .columns import Row, Sentence, Source
from .guessing import DOCSTART
from .schemes import MISSING, BadLabelError, Scheme, Spans, read_spans

STORED = ("TAG", "POS", "MORPH", "LEMMA", "ENT_IOB", "ENT_TYPE", "SENT_START")
"""Attributes of tokens that `read_docs` may set."""


def read_docs(
    source: Source, vocab: Vocab, *, n_sentences: int = 1, scheme: Scheme = Scheme.iob2
) -> Iterator[Doc]:
    """Make Docs of a file.

    n_sentences: in a Doc, at most, which knows where they start; a line whose word is -DOCSTART- is
    no token, but ends the Doc before it; scheme: of the labels of entities and
    other spans.
    RAISES: SparseCRFError that names file and line of a value that cannot be, and if there are no
    tokens.
    """
    register(source.columns)
    is_empty = True
    for sentences in _parts(source, n_sentences):
        is_empty = False
        yield _Maker(source, vocab, scheme, sentences).doc()
    if is_empty:
        raise SparseCRFError(Errors.SC612.format(path=source.path))


def _parts(source: Source, n_sentences: int) -> Iterator[list[Sentence]]:
    """Put sentences together, at most so many, and none of two documents."""
    word = source.columns.index(WORDS) if source.columns else 0
    part: list[Sentence] = []
    for sentence in source.sentences:
        begins = sentence[0].values[word] == DOCSTART
        if part and (begins or len(part) == n_sentences):
            yield part
            part = []
        rows = sentence[1:] if begins else sentence
        if rows:
            part.append(rows)
    if part:
        yield part


class _Maker:
    """Makes a Doc of some sentences; the arguments are those of `read_docs`."""

    def __init__(
        self, source: Source, vocab: Vocab, scheme: Scheme, sentences: list[Sentence]
    ) -> None:
        self._source = source
        self._vocab = vocab
        self._scheme = scheme
        self._sentences = sentences
        self._rows: list[Row] = [row for rows in sentences for row in rows]
        self._check()

    def _check(self) -> None:
        columns = self._source.columns
        for row in self._rows:
            for column, value in zip(columns, row.values, strict=True):
                reason = why_not(column, value)
                if reason:
                    values = {"path": self._source.path, "line": row.line, "value": value}
                    error = Errors.SC616.format(**values, column=column, reason=reason)
                    raise SparseCRFError(error)

    def _column(self, name: str) -> list[str]:
        """Values of a column; "" where they are unset, but for words."""
        i = self._source.columns.index(name)
        values = [row.values[i] for row in self._rows]
        return values if name == WORDS else ["" if value == UNSET else value for value in values]

    def doc(self) -> Doc:
        """Make the Doc."""
        columns = self._source.columns
        arguments = {ARGUMENTS[name]: self._column(name) for name in columns if name in ARGUMENTS}
        spaces = [v == "1" for v in self._column(SPACE)] if SPACE in columns else None
        starts: list[bool | int | None] = [
            i == 0 for rows in self._sentences for i in range(len(rows))
        ]
        doc = Doc(
            self._vocab,
            words=self._column(WORDS),
            spaces=spaces,
            sent_starts=starts,
            **arguments,  # type: ignore[arg-type]
        )
        if ENTITIES in columns:
            labels = [row.values[columns.index(ENTITIES)] for row in self._rows]
            missing = [doc[i : i + 1] for i, label in enumerate(labels) if label in MISSING]
            doc.set_ents(self._spans(doc, ENTITIES), missing=missing)
        for name in columns:
            if key := span_key(name):
                doc.spans[key] = self._spans(doc, name)
            elif custom := custom_name(name):
                for token, value in zip(doc, self._column(name), strict=True):
                    if value:
                        token._.set(custom, value)
        return doc

    def _spans(self, doc: Doc, column: str) -> list[Span]:
        """The spans that a column marks; none goes beyond a sentence."""
        i, first, spans = self._source.columns.index(column), 0, []
        for rows in self._sentences:
            found = self._read_spans(column, rows, [row.values[i] for row in rows])
            spans += [Span(doc, first + a, first + b, label=label) for a, b, label in found]
            first += len(rows)
        return spans

    def _read_spans(self, column: str, rows: Sentence, labels: list[str]) -> Spans:
        try:
            return read_spans(labels, self._scheme)
        except BadLabelError as error:
            message = Errors.SC615.format(
                path=self._source.path,
                line=rows[error.index].line,
                value=labels[error.index],
                reason=error,
                scheme=self._scheme.value,
                known=", ".join(known.value for known in Scheme),
            )
            raise SparseCRFError(message) from error
