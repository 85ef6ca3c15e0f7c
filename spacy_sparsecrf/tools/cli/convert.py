"""`convert`: convert annotated text to .spacy files, and .spacy files to columns."""

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import spacy
import typer
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ...atomic_write import write_files
from ...errors import Errors, SparseCRFError
from ...interop.column_attributes import parse_columns
from ...interop.columns import TAB, Source
from ...interop.docs import STORED, annotated_columns, read_docs, write_docs
from ...interop.fitting import Misfit, RecordReader, Unannotated
from ...interop.formats import RECORDS, SEPARATORS, Format, format_of, open_records, open_source
from ...interop.label_map import LabelMap
from ...interop.label_survey import LabelSurvey
from ...interop.records import split
from ...interop.schemes import ColumnScheme
from ...interop.text_files import SPACY, unpack
from ...pipeline.tokenization import MOST_MASKED, TokenCuts
from ...progress import Task
from .common import Force, check_free, reported
from .printing import msg, say_cuts

_SHARE = typer.Option(min=0.0, max=1.0, help="Share of the Docs for a .spacy file of this name")
Share: TypeAlias = Annotated[float, _SHARE]
Input: TypeAlias = Annotated[Path, typer.Argument(help="File to read; .gz is decompressed")]
Output: TypeAlias = Annotated[Path, typer.Argument(help="File to write; .gz is compressed")]
Kind: TypeAlias = Annotated[
    Format | None, typer.Option("--format", "-f", help="Format of the text (default: by its name)")
]
Columns: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Attributes of columns, as orth,tag,ner (default: orth, and B-X as ner); of CRFsuite, "
        "as orth=w[0],ner"
    ),
]
Types: TypeAlias = Annotated[
    list[str],
    typer.Option(
        metavar="TYPES",
        help="The only types that annotators looked for: other tokens may be of another type",
    ),
]

_OF_COLUMNS = frozenset(["columns", "docs", "scheme"])
_OF_RECORDS = frozenset(["spans", "misfit", "skip-bad", "unannotated"])
_OF_DOCS = frozenset(["docs", "dev", "test", "annotated", "map"])  # that are made


def convert(
    source: Input,
    target: Output,
    kind: Kind = None,
    columns: Columns = "",
    docs: Annotated[int, typer.Option(min=1, help="Sentences in a Doc")] = 1,
    lang: Annotated[str, typer.Option(help="Language of the Docs")] = "xx",
    scheme: Annotated[
        ColumnScheme, typer.Option(help="Labels of entities and other spans")
    ] = ColumnScheme.iob2,
    misfit: Annotated[
        Misfit | None,
        typer.Option(help="Treatment of spans that do not fit tokens (default: expand up to 20 %)"),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out records that cannot be read")
    ] = False,
    unannotated: Annotated[
        Unannotated | None,
        typer.Option(help="Treatment of records without annotation (default: refuse a mixture)"),
    ] = None,
    annotated: Types = [],  # noqa: B006
    renamed: Annotated[
        list[str],
        typer.Option("--map", metavar="OLD=NEW", help="New name of a label; OLD= leaves it out"),
    ] = [],  # noqa: B006
    spans: Annotated[
        str, typer.Option(help="Key of doc.spans for character spans (default: entities)")
    ] = "",
    dev: Share = 0.0,
    test: Share = 0.0,
    force: Force = False,
) -> None:
    """Convert text with labels to a .spacy file, or a .spacy file to columns.

    Text: a token a line, an empty line between sentences, columns separated by tabs or by blanks,
    as in the files of CoNLL, Wapiti and CRF++; CoNLL-U, whose columns are given; CRFsuite,
    whose words and label --columns names, as orth=w[0],ner; JSON or JSONL with character
    spans (Prodigy, Doccano, Label Studio) or Docs; and brat.
    """
    with reported():
        kind = _format_of(source, target, kind, scheme)
        labels = LabelMap(renamed)
        options = {"columns": columns, "docs": docs > 1, "spans": spans, "misfit": misfit}
        options |= {"skip-bad": skip_bad, "unannotated": unannotated, "dev": dev, "test": test}
        options |= {"annotated": annotated, "map": renamed, "scheme": scheme != ColumnScheme.iob2}
        _check_options(kind, source, [name for name, value in options.items() if value])
        check_free(force, target)
        names, attribute = _columns_of(columns, kind)
        nlp = spacy.blank(lang)
        if source.suffix == SPACY:
            written = {"scheme": scheme, "separator": SEPARATORS[kind] or TAB}
            _to_columns(source, target, names, nlp.vocab, **written)
            return
        read: Source[Any]
        if kind in RECORDS:
            read = open_records(source, kind, lang)
            converted = RecordReader(
                read,
                nlp,
                spans,
                misfit=misfit,
                skips_invalid=skip_bad,
                unannotated=unannotated,
                labels=labels,
            ).docs()
        else:
            read = open_source(source, kind, names, attribute)
            sentences = read_docs(read, nlp.vocab, n_sentences=docs, scheme=scheme)
            converted = map(labels.rename, sentences)
        survey = LabelSurvey.of(source, types=annotated, labels=labels)
        cuts = TokenCuts(nlp.tokenizer)
        try:
            finished = _words_of(survey.docs(converted), cuts, source)
            n_docs = save_docs(finished, target, {"dev": dev, "test": test}, force)
        finally:
            for note in read.notes.values():
                msg.info(note)
        say_cuts(cuts, lang)
        say_written(read, survey, n_docs)


def say_written(read: Source[Any], survey: LabelSurvey, n_docs: Mapping[Path, int]) -> None:
    """Print what was left out or may be a mistake, and the number of Docs by file."""
    left_out = (f"{n} {what}" for what, n in sorted((+read.left_out).items()))
    for text in chain(left_out, survey.messages()):
        msg.warn(text)
    for path, n in n_docs.items():
        msg.good(f"Wrote {n} document{'s' * (n != 1)} to {path}")


def _words_of(docs: Iterable[Doc], cuts: TokenCuts, source: Path) -> Iterator[Doc]:
    """Yield Docs, and count their tokens. RAISES: SparseCRFError if their words are left out."""
    yield from map(cuts.add, docs)
    if cuts.n_masked > MOST_MASKED * cuts.n_tokens:
        n = f"{cuts.n_masked} of {cuts.n_tokens}"
        raise SparseCRFError(Errors.SC642.format(path=source, n=n))


def _check_options(kind: Format, source: Path, used: Iterable[str]) -> None:
    """Refuse options that have no effect for the format. RAISES: typer.BadParameter."""
    useless = _OF_COLUMNS if kind in RECORDS else _OF_RECORDS
    if kind is Format.conllu:
        useless |= {"columns"}
    if source.suffix == SPACY:
        useless |= _OF_DOCS
    for name in used:
        if name in useless:
            raise typer.BadParameter(f"--{name} has no effect for {kind.value}: remove it")


def _columns_of(text: str, kind: Format) -> tuple[tuple[str, ...], str]:
    """Return the columns in an option, and the name of CRFsuite's attribute of the words."""
    attribute = ""
    if kind is Format.crfsuite:
        words, comma, label = text.partition(",")
        words, _, attribute = words.partition("=")
        text = words + comma + label
    return parse_columns(text) if text else (), attribute


def _to_columns(
    source: Path, target: Path, names: Sequence[str], vocab: Vocab, **options: Any
) -> None:
    """Write the Docs of a .spacy file as columns.

    options: of `write_docs`. RAISES: SparseCRFError if there are none.
    """
    docs = [*unpack(source, vocab)]
    if not names:
        names = annotated_columns(docs)
        msg.info(f"Columns are {','.join(names)} (--columns adds others, such as space_after)")
    texts = [*Task("Converting", "sentences", items=write_docs(docs, source, names, **options))]
    if not texts:
        raise SparseCRFError(Errors.SC612.format(path=source, remedy="Check the path"))
    write_text("".join(texts), target)
    msg.good(f"Wrote {len(texts)} sentence{'s' * (len(texts) != 1)} to {target}")


def _format_of(source: Path, target: Path, kind: Format | None, scheme: ColumnScheme) -> Format:
    """Return the format of the text, given or by its name."""
    if (source.suffix == SPACY) == (target.suffix == SPACY):
        raise SparseCRFError(Errors.SC620.format(source=source, target=target))
    written = source.suffix == SPACY
    kind = kind or format_of(target if written else source, is_read=not written)
    if written and kind not in SEPARATORS:
        raise typer.BadParameter(f"--format {kind.value} can be read, but not written")
    if written and scheme is ColumnScheme.io:
        raise typer.BadParameter("--scheme io can be read, but not written")
    return kind


def save_docs(
    docs: Iterable[Doc], target: Path, shares: Mapping[str, float], force: bool
) -> dict[Path, int]:
    """Write Docs to a .spacy file, and shares of them to others next to it.

    shares: by the names of the other files; force: whether to overwrite these.
    RETURNS: number of Docs by file.
    """
    used = {target.with_name(f"{name}{SPACY}"): share for name, share in shares.items() if share}
    for path in used:
        if path == target:
            option = f"--{path.stem} writes {path.name} next to {target}"
            raise typer.BadParameter(f"{option}: choose another name")
        check_free(force, path)
    converted: Any = Task("Converting", "docs", items=docs)
    parts = split([*converted], [*used.values()]) if used else [converted]
    packed = {
        path: DocBin(STORED, store_user_data=True, docs=part)
        for path, part in zip((target, *used), parts, strict=True)
    }
    contents = {path.name: part.to_bytes() for path, part in packed.items()}
    write_files(target.parent, contents, "the output")
    return {path: len(part) for path, part in packed.items()}


def write_text(text: str, target: Path) -> None:
    """Write a text to a file, compressed if its name ends with .gz."""
    data = text.encode("utf8")
    # Compressed files are reproducible: they have no time stamp.
    packed = gzip.compress(data, mtime=0) if target.suffix == ".gz" else data
    write_files(target.parent, {target.name: packed}, "the output")
