"""`select`: choose texts for annotation by a component's uncertainty (active learning)."""

import json
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from heapq import nlargest
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from wasabi import msg

from ...atomic_write import write_files
from ...cli.common import Component, Model, load, reported, up_to
from ...cli.files import kind_of_text, read_texts
from ...errors import Errors, SparseCRFError
from ...pipeline.component import SparseCRFPipe
from ...pipeline.uncertainty import Uncertainty
from ...progress import track
from ...targets.spans import SpanTarget

_BATCH = 128  # Docs per batch
_RECORD = "record"  # key in `doc.user_data`
# Keys of records that the output replaces.
_WRITTEN = frozenset(["text", "tokens", "spans", "label", "labels", "entities", "ents", "answer"])
_WRITTEN |= {"_input_hash", "_task_hash"}


class Measure(str, Enum):
    """The uncertainty that ranks texts: a field of `Uncertainty`."""

    entropy = "entropy"
    max_entropy = "max_entropy"
    least_confidence = "least_confidence"
    margin = "margin"
    entity = "entity"


class Layout(str, Enum):
    """The annotation tool whose format is written."""

    prodigy = "prodigy"
    doccano = "doccano"


def select(
    model: Model,
    texts: Annotated[
        list[Path],
        typer.Argument(help="Texts: .txt (one per line), .jsonl (`text`), .spacy", exists=True),
    ],
    n: Annotated[int, typer.Option("-n", min=1, help="Maximum number of texts")] = 100,
    by: Annotated[Measure, typer.Option("--by", help="Uncertainty to rank by")] = Measure.entropy,
    label: Annotated[
        str, typer.Option(help="Rank by the uncertainty of this label or type instead")
    ] = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write")] = None,
    layout: Annotated[Layout, typer.Option(help="Tool to write for")] = Layout.prodigy,
    component: Component = "",
) -> None:
    """Select the texts that a component is most uncertain about, for annotation.

    Writes one JSON object per line, the most uncertain text first, with the predicted spans (of a
    tagger: one per token) and the uncertainty. Repeated and blank texts are left out.
    """
    with reported():
        nlp, pipe = load(model, component)
        if label and label not in pipe.labels:
            known = ", ".join(pipe.labels)
            raise SparseCRFError(Errors.SC647.format(label=label, known=known))
        ranked = _rank(nlp, pipe, _read(nlp, texts), by, label)
        chosen = nlargest(n, ranked, key=lambda each: each[0])
        name = label or by.value
        rows = [
            _record(pipe, doc, layout, {"score": round(score, 6), "by": name})
            for _, doc, score in chosen
        ]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        if output is None:
            sys.stdout.write(lines)
            return
        write_files(output.parent, {output.name: lines.encode("utf8")}, "--output")
        msg.good(f"{len(rows)} texts are in {output}")


def _read(nlp: Language, paths: list[Path]) -> Iterator[Doc]:
    """Read each text once, as a Doc without annotation. RAISES: SparseCRFError."""
    seen: set[str] = set()
    for path in paths:
        if not kind_of_text(path):
            raise SparseCRFError(Errors.SC648.format(path=path))
        for text, record in read_texts(path, nlp.vocab):
            doc = nlp.make_doc(text) if isinstance(text, str) else _bare(text)
            if doc.text.strip() and doc.text not in seen:
                seen.add(doc.text)
                doc.user_data[_RECORD] = {k: v for k, v in record.items() if k not in _WRITTEN}
                yield doc


def _bare(doc: Doc) -> Doc:
    """Return a Doc with the same tokens, without annotation."""
    spaces = [bool(token.whitespace_) for token in doc]
    return Doc(doc.vocab, words=[token.text for token in doc], spaces=spaces)


def _rank(
    nlp: Language, pipe: SparseCRFPipe, docs: Iterator[Doc], by: Measure, label: str
) -> Iterator[tuple[float, Doc, float]]:
    """Yield each Doc's rank, which is larger for more uncertain Docs, the Doc, and its score."""
    shown = track(up_to(nlp, pipe.name, docs), "Reading texts", "texts")
    batches: Any = minibatch
    for batch in batches(shown, _BATCH):
        for doc, found in zip(batch, pipe.uncertainty(batch), strict=True):
            score = _score(found, by, label)
            yield (-score if by is Measure.margin and not label else score), doc, score


def _score(found: Uncertainty, by: Measure, label: str) -> float:
    return found.by_label[label] if label else float(getattr(found, by.value))


def _record(
    pipe: SparseCRFPipe, doc: Doc, layout: Layout, meta: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a Doc with its predicted spans in the format of an annotation tool.

    Further values of the record that it was read from, such as its id, are kept.
    """
    spans, record = _spans(pipe, doc), doc.user_data[_RECORD]
    if "meta" in record:
        given = record["meta"]
        meta = {**(given if isinstance(given, Mapping) else {"given": given}), **meta}
    if layout is Layout.doccano:
        label = [[s["start"], s["end"], s["label"]] for s in spans]
        return {**record, "text": doc.text, "label": label, "meta": meta}
    tokens = [
        {
            "text": token.text,
            "start": token.idx,
            "end": token.idx + len(token),
            "id": token.i,
            "ws": bool(token.whitespace_),
        }
        for token in doc
    ]
    return {**record, "text": doc.text, "tokens": tokens, "spans": spans, "meta": meta}


def _spans(pipe: SparseCRFPipe, doc: Doc) -> list[dict[str, Any]]:
    """Return the predicted spans of a Doc; for a tagger, one span per token."""
    [ids] = pipe.predict([doc], forced=False)
    target, labels = pipe.target, pipe.label_data
    if isinstance(target, SpanTarget):
        found = target.spans([ids], labels).named()
    else:
        found = [(t, t + 1, labels[y]) for t, y in enumerate(ids.tolist())]
    return [
        {
            "start": doc[first].idx,
            "end": doc[last - 1].idx + len(doc[last - 1]),
            "token_start": first,
            "token_end": last - 1,
            "label": label,
        }
        for first, last, label in found
    ]
