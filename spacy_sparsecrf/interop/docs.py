"""Sentences in columns -> Docs, and back."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError, Warnings, warn
from ..pipeline.data_checks import LANG
from ..pipeline.targets.scheme import typed_labels
from ..pipeline.type_counts import DOCUMENT
from . import column_attributes as attributes
from .column_attributes import (
    ARGUMENTS,
    DOCSTART,
    ENTITIES,
    IGNORED,
    SENTENCE,
    SPACE,
    UNSET,
    WORDS,
)
from .columns import TAB, Sentence, Source
from .schemes import MISSING, BadLabelError, ColumnScheme, Spans, read_spans, write_spans
from .text_files import BOM

STORED: Any = ["TAG", "POS", "MORPH", "LEMMA", "ENT_IOB", "ENT_TYPE", "SENT_START"]
"""Token attributes that `read_docs` may set."""

_READ = {WORDS: "text", "tag": "tag_", "pos": "pos_", "morph": "morph", "lemma": "lemma_"}
_ANNOTATED = {"lemma": "LEMMA", "pos": "POS", "morph": "MORPH", "tag": "TAG", ENTITIES: "ENT_IOB"}


def read_docs(
    source: Source[Sentence],
    vocab: Vocab,
    *,
    n_sentences: int = 1,
    scheme: ColumnScheme = ColumnScheme.iob2,
) -> Iterator[Doc]:
    """Create Docs from a file of sentences.

    n_sentences: largest number of sentences in a Doc; their starts are set. A line whose word is
    -DOCSTART- is not a token, and ends the Doc before it; scheme: of the labels of entities and
    other spans.
    RAISES: SparseCRFError with the file and line of an invalid value, and if there are no tokens.
    """
    attributes.register(source.columns)
    is_empty = True
    for document, sentences in of_docs(source, n_sentences):
        is_empty = False
        doc = _doc_of(source, vocab, sentences, scheme)
        if "tag" in source.columns and typed_labels(token.tag_ for token in doc):
            columns = ",".join(ENTITIES if x == "tag" else x for x in source.columns)
            what = "tags are labels of entities, such as B-X or O"
            source.left_out[f"{what} (--columns {columns} reads entities)"] += len(doc)
        if document:
            doc.user_data[DOCUMENT] = str(document)
        yield doc
    if is_empty:
        raise SparseCRFError(Errors.SC612.format(path=source.path, remedy="Check the path"))


def of_docs(source: Source[Sentence], n_sentences: int) -> Iterator[tuple[int, list[Sentence]]]:
    """Group up to n_sentences sentences of a document. YIELDS: its number, and the sentences.

    Documents are numbered from 1; the number is 0 before the first mark of a document.
    """
    word = source.columns.index(WORDS) if source.columns else 0
    sentences: list[Sentence] = []
    document = 0
    for rows in source.entries():
        values = rows[0].values
        begins = DOCSTART in (values[0], *values[word : word + 1])
        if sentences and (begins or len(sentences) == n_sentences):
            yield document, sentences
            sentences = []
        document += begins
        if rows := rows[begins:]:
            sentences.append(rows)
    if sentences:
        yield document, sentences


def _doc_of(
    source: Source[Sentence],
    vocab: Vocab,
    sentences: list[Sentence],
    scheme: ColumnScheme,
) -> Doc:
    """Create the Doc of sentences; see `read_docs`."""
    columns, rows = source.columns, [row for rows in sentences for row in rows]
    for row in rows:
        for column, value in zip(columns, row.values, strict=True):
            if reason := attributes.why_not(column, value):
                where = {"path": source.path, "line": row.line, "value": value}
                raise SparseCRFError(Errors.SC616.format(**where, column=column, reason=reason))
    values = {name: [row.values[i] for row in rows] for i, name in enumerate(columns)}
    arguments: dict[str, Any] = {
        argument: ["" if value == source.unset else value for value in values[name]]
        for name, argument in ARGUMENTS.items()
        if name in columns
    }
    if SPACE in columns:
        arguments["spaces"] = [value == "1" for value in values[SPACE]]
    starts: Any = [i == 0 for sentence in sentences for i in range(len(sentence))]
    doc = Doc(vocab, words=values[WORDS], sent_starts=starts, **arguments)
    doc.user_data[LANG] = vocab.lang
    spans_of = partial(_spans, doc, source, sentences, scheme)
    for name in columns:
        if name == ENTITIES:
            labels = values[name]
            missing = [doc[i : i + 1] for i, label in enumerate(labels) if label in MISSING]
            doc.set_ents(spans_of(name), missing=missing)
        elif key := attributes.span_key(name):
            doc.spans[key] = spans_of(name)
        elif custom := attributes.custom_name(name):
            for token, value in zip(doc, values[name], strict=True):
                if value != source.unset:
                    token._.set(custom, value)
    return doc


def _spans(
    doc: Doc,
    source: Source[Sentence],
    sentences: list[Sentence],
    scheme: ColumnScheme,
    name: str,
) -> list[Span]:
    """Return the spans that a column's labels encode; none crosses a sentence boundary."""
    begin, spans, column = 0, list[Span](), source.columns.index(name)
    for rows in sentences:
        labels = [row.values[column] for row in rows]
        try:
            of_sentence = read_spans(labels, scheme)
        except BadLabelError as error:
            every = [[row.values[column] for row in rows] for _, [rows] in of_docs(source, 1)]
            fitting = " or ".join(other for other in ColumnScheme if _fits(every, other))
            fits = f"{fitting or 'none of ' + ', '.join(ColumnScheme)} fits all lines"
            remedy = f"Correct it, or choose another --scheme: {fits}"
            firsts = Counter(labels[0][:2] for labels in every)
            # In IOB1, no sentence begins with B-.
            if firsts["I-"] and firsts["B-"]:
                what = f"In {firsts['I-']} of {len(every)} sentences the first label is I-"
                how = f"number the sentences in a column {SENTENCE!r} of --columns"
                remedy = f"{what}: correct the ends of sentences, or {how}"
            where = {"path": source.path, "line": rows[error.index].line}
            values = {"value": labels[error.index], "scheme": scheme.value, "remedy": remedy}
            raise SparseCRFError(Errors.SC615.format(**where, **values, reason=error)) from error
        spans += [Span(doc, begin + a, begin + b, label=label) for a, b, label in of_sentence]
        begin += len(rows)
    return spans


def _fits(sentences: Iterable[Sequence[str]], scheme: ColumnScheme) -> bool:
    """Return whether all labels of a column are valid in a scheme."""
    with suppress(BadLabelError):
        return all(read_spans(labels, scheme) is not None for labels in sentences)
    return False


def annotated_columns(docs: Sequence[Doc]) -> tuple[str, ...]:
    """Return the columns of all annotation in the Docs; words and tags if there is none."""
    set_columns = [
        name
        for name, attribute in _ANNOTATED.items()
        if any(doc.has_annotation(attribute) for doc in docs)
    ]
    keys = sorted({key for doc in docs for key, spans in doc.spans.items() if len(spans)})
    return (
        WORDS,
        *(set_columns if set_columns or keys else ["tag"]),
        *(f"spans:{key}" for key in keys),
    )


def write_docs(
    docs: Iterable[Doc],
    path: Path,
    columns: Sequence[str],
    *,
    scheme: ColumnScheme = ColumnScheme.iob2,
    separator: str = TAB,
) -> Iterator[str]:
    """Yield the text of each sentence of Docs, with an empty line after it.

    docs: a Doc without sentence boundaries is one sentence, an empty Doc is skipped; path: of their
    file, for messages; columns: to write; values that are not set become _; scheme: of the labels
    of entities and other spans; separator: a tab or a blank. Tokens of white space are left out.
    RAISES: SparseCRFError for a value that would be read differently (it contains the separator or
    a line end, has a blank at an end, is a word -DOCSTART-, makes the first line a header, or is
    blank as all others of its token), and for overlapping spans.
    """
    attributes.register(columns)
    is_first = True
    for number, doc in enumerate(docs, start=1):
        writer = DocWriter(doc, number, path, scheme=scheme, separator=separator)
        for sentence in doc.sents if doc.has_annotation("SENT_START") else [doc[:]]:
            tokens = [token for token in sentence if not token.is_space]
            if not tokens:
                continue
            by_column = [writer.values(tokens, x, x in (columns[0], WORDS)) for x in columns]
            rows = [[values[t] for values in by_column] for t in range(len(tokens))]
            if is_first and attributes.is_header(rows[0], bool(attributes.of_spans(columns))):
                reason = "names columns, as do all values of this line: a header is left out"
                raise writer.error(sentence.start, columns[0], rows[0][0], reason)
            blank = next((row for row in rows if not "".join(row).strip(" ")), None)
            if blank:
                reason = "has blanks in all columns, which ends a sentence where it is read"
                raise writer.error(sentence.start, columns[0], blank[0], reason)
            text = "".join(f"{separator.join(row)}\n" for row in rows) + "\n"
            # Readers remove one byte-order mark.
            yield BOM + text if is_first and text.startswith(BOM) else text
            is_first = False


class DocWriter(NamedTuple):
    """Writes sentences of a Doc. number: of the Doc in its file, from 1; see `write_docs`."""

    doc: Doc
    number: int
    path: Path
    scheme: ColumnScheme = ColumnScheme.iob2
    separator: str = TAB

    def values(self, tokens: Sequence[Token], column: str, may_mark: bool = False) -> list[str]:
        """Return the values of a column. may_mark: whether -DOCSTART- would begin a document."""
        refused = {"\t", "\n", "\r", self.separator}
        texts = self._texts(tokens, column)
        for token, text in zip(tokens, texts, strict=True):
            if may_mark and text == DOCSTART:
                raise self.error(token.i, column, text, "begins a document where it is read")
            if not refused.isdisjoint(text) or text != (text.strip(" ") or text):
                reason = "has a separator or the end of a line in it, or a blank at an end"
                raise self.error(token.i, column, text, reason)
        return texts

    def _texts(self, tokens: Sequence[Token], column: str) -> list[str]:
        if column == ENTITIES:
            labels = self._labels(tokens, column, self.doc.ents)
            # A token may have an unknown entity label, which differs from no entity.
            pairs = zip(labels, tokens, strict=True)
            return [label if token.ent_iob else UNSET for label, token in pairs]
        if key := attributes.span_key(column):
            return self._labels(tokens, column, self.doc.spans.get(key, []))
        if name := attributes.custom_name(column):
            values = [token._.get(name) for token in tokens]
            return [UNSET if value is None else str(value) for value in values]
        if column == SPACE:
            return ["1" if token.whitespace_ else "0" for token in tokens]
        if column == IGNORED:
            return [UNSET] * len(tokens)
        return [str(getattr(token, _READ[column])) or UNSET for token in tokens]

    def _labels(self, tokens: Sequence[Token], column: str, spans: Iterable[Span]) -> list[str]:
        """Return the labels of a sentence's tokens; a span that crosses its boundary is cut."""
        at = [token.i for token in tokens]
        near = [span for span in spans if at and span.start <= at[-1] and at[0] < span.end]
        ends = ((bisect_left(at, span.start), bisect_left(at, span.end), span) for span in near)
        of_sentence: Spans = sorted((a, b, span.label_) for a, b, span in ends if a < b)
        begun = (token for span in near for token in self.doc[span.start : max(span.start, at[0])])
        if not all(token.is_space for token in begun):
            warn(Warnings.SCW221.format(path=self.path))
        end_before = 0
        for begin, end, label in of_sentence:
            if not label:
                raise self.error(at[begin], column, label, "is a span without a label")
            if begin < end_before:
                raise self.error(at[begin], column, label, "overlaps the span before it")
            end_before = end
        return write_spans(of_sentence, len(tokens), self.scheme)

    def error(self, token: int, column: str, value: str, reason: str) -> SparseCRFError:
        """Return an error about a value. token: its index in the Doc."""
        where = {"token": token + 1, "doc": self.number, "path": self.path, "column": column}
        return SparseCRFError(Errors.SC619.format(**where, value=value, reason=reason))
