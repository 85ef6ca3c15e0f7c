"""`label`: label a file of columns with a pipeline."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import typer
from spacy.tokens import Doc

from ...interop.column_attributes import ENTITIES, IGNORED, UNSET, WORDS, parse_columns
from ...interop.column_choice import read_columns
from ...interop.columns import layout_of
from ...interop.docs import STORED, DocWriter, of_docs, read_docs
from ...interop.formats import SEPARATORS, format_of
from ...progress import Task
from .common import Component, Force, Model, check_free, load, reported
from .convert import Columns, Input, Kind, Output, write_text
from .printing import msg


def label(
    model: Model,
    source: Input,
    target: Output,
    kind: Kind = None,
    columns: Columns = "",
    component: Component = "",
    force: Force = False,
) -> None:
    """Add the labels that a pipeline predicts to a file of columns, as one more column.

    The pipeline reads the words, sentences and annotation of the file. Without --columns, these are
    the columns of the component's pattern file, the words if there is one column, or what `convert`
    finds. Labels of entities and spans are IOB2.
    """
    with reported():
        check_free(force, target)
        nlp, pipe = load(model, component)
        kind = kind or format_of(source)
        if kind not in SEPARATORS:
            raise typer.BadParameter(f"--format {kind.value} does not have columns: convert it")
        layout = layout_of(source, SEPARATORS[kind])
        of_patterns: Any = getattr(pipe.features, "columns", [WORDS] * (layout.width == 1))
        n_others = layout.width - len(of_patterns)
        every = [*of_patterns, *[IGNORED] * n_others] if WORDS in of_patterns else []
        read = read_columns(layout, parse_columns(columns) if columns else every)
        msg.info(f"Columns are read as {','.join(read.columns)} (see --columns)")
        # Wapiti and CRF++ read _ as a text.
        read.unset = "" if of_patterns else UNSET
        # Gold labels would restrict the predicted ones.
        key = getattr(pipe.target, "key", "")
        attribute = getattr(pipe.target, "attr", f"spans:{key}" if key else ENTITIES)
        read.columns = tuple(IGNORED if name == attribute else name for name in read.columns)
        docs: Iterable[Doc] = read_docs(read, nlp.vocab)
        # Others merge tokens.
        names = [x for x in nlp.pipe_names if not nlp.get_pipe_meta(x).retokenizes]
        for name in names:
            docs = nlp.pipe(map(_restored, docs), disable={*nlp.pipe_names} - {name})
        docs = Task("Labelling", "sentences", items=docs)
        label_of_line: dict[int, str] = {}
        for i, ((_, [rows]), doc) in enumerate(zip(of_docs(read, 1), docs, strict=True), start=1):
            writer = DocWriter(doc, i, source, separator=layout.separator)
            labels = writer.values([*doc], attribute)
            label_of_line |= zip((row.line for row in rows), labels, strict=True)
        texts = (
            layout.extended(text, label_of_line[i]) if i in label_of_line else text
            for i, text in layout.lines
        )
        write_text("".join(f"{text}\n" for text in texts), target)
        msg.good(f"{len(label_of_line)} labels are in {target}")


def _restored(doc: Doc) -> Doc:
    """Restore the annotation of the file, which a pipe may have replaced."""
    of_file = doc.to_array(STORED), {**doc.user_data}
    stored, data = doc.user_data.setdefault("given", of_file)
    doc.from_array(STORED, np.where(stored, stored, doc.to_array(STORED)))  # type: ignore[arg-type]
    doc.user_data.update(data)
    return doc
