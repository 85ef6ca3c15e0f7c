"""Files of annotation tools: JSON of Prodigy, Doccano and Label Studio, Docs, and brat's .ann.

JSON has one record per line (.jsonl) or a list of records (.json). The keys of a record show which
tool wrote it, and which value has the spans, see `_marks_of`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..errors import brief
from ..pipeline.data_checks import LANG
from .columns import Source, lines_of
from .records import Mark, Record
from .text_files import read_lines

_TEXTS = ("text", "data", "content", "sentence")
_SPANS = ("ents", "spans", "entities", "labels", "label", "ner", "annotation", "annotations")
_STARTS, _ENDS = ("start", "start_offset", "begin"), ("end", "end_offset", "stop")
_LABELS = ("label", "labels", "tag", "type", "entity", "entity_group")
_TOKEN, _DOC_TOKEN = {"id", "start", "end", "text"}, {"id", "start", "end"}  # `doc.to_json()`
_NO = ("reject", "ignore")
_SKIPPED = ("was_cancelled", "skipped")
# Keys of answers: Prodigy, and Label Studio's short export, leave out an empty annotation.
_ANSWERS = ("answer", "annotation_id")
_OF_TOOLS = frozenset(["spans", "label", "labels", "entities", "relations"])  # no lists there
_BRAT = re.compile(r"T[^\t]*\t(\S+) ([0-9]{1,18} [0-9]{1,18}(?:;[0-9 ;]*)?)\t([^\t]*)")
# Raised, also by spaCy, for values of other types.
_OTHER_TYPES = (KeyError, TypeError, IndexError, AttributeError, AssertionError)
_KNOWN = "text with spans of Prodigy, Doccano or Label Studio, or a Doc as JSON"


class JsonReader:
    """Reads a JSON file: a record in each line, or a list of records, or one of them.

    lang: language of Docs that `doc.to_json()` wrote.
    """

    def __init__(self, source: Source[Record], lang: str = "") -> None:
        self._source, self._lang, self._vocab = source, lang, Vocab()

    def entries(self) -> Iterator[Record]:
        """Yield the records. `Source.invalid` lists records that cannot be read."""
        for position, value in self.values():
            with self._source.read(position):
                json.dumps(value, ensure_ascii=False).encode()  # refuses lone surrogates
                try:
                    record = self._record(position, value)
                except _OTHER_TYPES as error:
                    shown = f"it is {brief(value)}, and not {_KNOWN} ({error})"
                    raise ValueError(shown) from error
                if record:
                    yield record

    def values(self) -> Iterator[tuple[str, Any]]:
        """Yield the place and the value of each record."""
        texts = [entry for entry in lines_of(self._source.path) if entry[1].strip()]
        # A list or an object of several lines does not begin or end with a line of JSON.
        if texts and not any(is_json(text) for _, text in (texts[0], texts[-1])):
            texts = [(1, "\n".join(text for _, text in texts))]
        for number, text in texts:
            with self._source.read(f"line {number}"):
                value = json.loads(text)
                records = value if isinstance(value, list) and not _is_pair(value) else [value]
                for i, record in enumerate(records, start=1):
                    yield f"line {number}" if len(records) == 1 else f"record {i}", record

    def _doc(self, place: str, value: Mapping[str, Any]) -> Record:
        """Return the record of a Doc that `doc.to_json()` wrote."""
        doc = Doc(self._vocab).from_json(dict(value))
        if doc.has_annotation("DEP"):
            self._source.left_out["Docs with dependencies, which are not kept"] += 1
        doc.user_data[LANG] = self._lang
        return Record(place, doc.text, [], doc=doc)

    def _record(self, place: str, value: Any) -> Record | None:
        if _is_pair(value):
            value = {"text": value[0], **value[1]}
        if not isinstance(value, Mapping):
            raise TypeError("no object")
        if _is_of_doc(value):
            return self._doc(place, value)
        is_binary = value.get("_view_id") == "ner" or value.get("_is_binary") is True
        answer = value.get("answer")
        if answer in _NO and not (is_binary and answer == "reject"):
            self._source.left_out["records whose answer is reject or ignore"] += 1
            return None
        if isinstance(value.get("data"), Mapping) and not (value := self._task(value)):
            return None
        if str(_first_of(value, _TEXTS)).strip() == "" and not self._marks_of(value):
            self._source.left_out["records without text"] += 1
            return None
        text = _text_of(value)
        for key in ("relations", "Comments"):
            self._source.left_out[key] += len(_list_of(value, key))
        tokens = [_ends_of(token) for token in _list_of(value, "tokens")] or None
        document = str(value.get("document", value.get("doc_id", "")))
        hashed = value.get("_input_hash")
        marks = self._marks_of(value)
        is_partial = is_binary or not all(mark.is_accepted for mark in marks)
        if answer == "reject":
            marks = [mark._replace(is_accepted=False) for mark in marks]
        task = (str(hashed), text) if is_partial or hashed is not None else None
        is_answer = any(value.get(key) is not None for key in _ANSWERS)
        is_annotated = is_answer or any(value[key] is not None for key in _keys_of(value))
        gap = "" if is_annotated else _known(value, _SPANS)
        return Record(
            place=place,
            text=text,
            marks=marks,
            tokens=tokens,
            document=document,
            task=task,
            is_partial=is_partial,
            gap=gap,
        )

    def _task(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a task of Label Studio as a record with the first annotation, or an empty one.

        Annotations that were skipped, or that a reviewer rejected, are left out.
        """
        every = _list_of(value, "annotations") or _list_of(value, "completions")
        done = [annotation for annotation in every if not _is_refused(annotation)]
        if not done:
            why = "tasks that nobody annotated"
            if value.get("predictions"):
                why = "tasks that have predictions only (accept them in the tool)"
            if every:
                why = "tasks whose annotations were skipped, cancelled or rejected"
            self._source.left_out[why] += 1
            return {}
        if len(done) > 1:
            self._source.left_out["further annotations of a task (the first is read)"] += 1
        data = value["data"]
        texts = [data[key] for key in (*_TEXTS, *data) if isinstance(data.get(key), str)]
        regions = [region.get("value") for region in _list_of(done[0], "result")]
        spans = [region for region in regions if isinstance(region, Mapping) and "start" in region]
        self._source.left_out["results that are not spans"] += len(regions) - len(spans)
        return {"text": next(iter(texts), None), "spans": spans}

    def _marks_of(self, value: Mapping[str, Any]) -> list[Mark]:
        """Return the marks of a record: under a known key, else a list of objects with labels."""
        keys = _keys_of(value)
        if not keys:
            return []
        # Other values, and an empty list, do not hide a list.
        key = min(keys, key=lambda key: (not _is_list(value, key), not value[key]))
        return [
            mark for span in _list_of(value, key, "a list of spans") for mark in read_marks(span)
        ]


def _is_refused(annotation: Mapping[str, Any]) -> bool:
    """Return whether an annotation of Label Studio was skipped, or its last review rejects it."""
    reviews = _list_of(annotation, "reviews")
    is_rejected = any(review.get("accepted") is False for review in reviews[-1:])
    return is_rejected or any(annotation.get(key) for key in _SKIPPED)


def is_json(text: str) -> bool:
    """Return whether a text is an object or a list of JSON."""
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(text), (dict, list))
    return False


def _is_pair(value: Any) -> bool:
    """Return whether a value is a text and its annotation, as in version 2 of spaCy."""
    types = [*map(type, value)] if isinstance(value, list) else []
    return types == [str, dict]


def _is_list(value: Mapping[str, Any], key: str) -> bool:
    return isinstance(value.get(key), list)


def _is_of_doc(value: Mapping[str, Any]) -> bool:
    """Return whether a record is of `doc.to_json()`, whose tokens have no text."""
    is_of_tool = "answer" in value or any(_is_list(value, key) for key in _OF_TOOLS)
    tokens = value["tokens"] if _is_list(value, "tokens") and not is_of_tool else []
    are_of_doc = (isinstance(t, Mapping) and t.keys() & _TOKEN == _DOC_TOKEN for t in tokens)
    return bool(tokens) and all(are_of_doc)


def _keys_of(value: Mapping[str, Any]) -> list[str]:
    """Return the keys of a record under which its annotation may be."""
    keys = [key for key in _SPANS if key in value]
    return keys + [key for key, listed in value.items() if _has_labels(listed)]


def _has_labels(value: Any) -> bool:
    """Return whether a value is a list of spans as in Label Studio's short export."""
    span = value[0] if isinstance(value, list) and value else None
    return isinstance(span, Mapping) and {"start", "labels"} <= span.keys()


def _text_of(value: Mapping[str, Any]) -> str:
    text = _first_of(value, _TEXTS)
    if not isinstance(text, str) or not text.strip():
        lacks = f"it has no text{_known(value, _TEXTS)}"
        raise ValueError(lacks if text is None else f"its text is {repr(text)[:60]}")
    return text


def _known(value: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the keys of a record or span that lacks one of others."""
    listed = ", ".join(map(str, value))[:200]
    return f" (its keys are {listed}; one of {', '.join(keys)} is needed)" if listed else ""


def _list_of(value: Mapping[str, Any], key: str, what: str = "a list") -> list[Any]:
    """Return the list under a key; empty if there is none. what: for messages."""
    listed = value.get(key)
    if listed is not None and not isinstance(listed, list):
        raise ValueError(f"{brief(key)} is {brief(listed)}, and not {what}")
    return listed or []


def _first_of(value: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((value[key] for key in keys if key in value), None)


def _fields_of(value: Any) -> Mapping[str, Any]:
    """Return the fields of a span or token: an object, or a list of them."""
    if isinstance(value, (list, tuple)):
        return dict(zip(("start", "end", "label", "probability"), value, strict=False))
    if not isinstance(value, Mapping):
        return {}
    inner = value.get("points") or [value.get("span")]
    return {**_fields_of(inner[0]), **value}


def _ends_of(value: Any) -> tuple[int, int]:
    """Return the character offsets of a span or a token."""
    fields = _fields_of(value)
    start, end = _number(_first_of(fields, _STARTS)), _number(_first_of(fields, _ENDS))
    if type(start) is not int or type(end) is not int:
        keys = _known(fields, (*_STARTS, *_ENDS, "span", "points"))
        raise ValueError(f"{brief(value)} has no offsets of a first and last character{keys}")
    return start, end


def _number(value: Any) -> Any:
    """Return a whole number that is written as 11.0, "11" or "11.0"; other values unchanged."""
    if hasattr(value, "dtype"):
        return int(value)
    with suppress(ValueError):
        value = float(value) if isinstance(value, str) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read_marks(value: Any) -> list[Mark]:
    """Return the marks of a span, one for each label and part.

    value: an object, or a list of start, end, label, and perhaps a probability.
    """
    if len(points := _fields_of(value).get("points") or ()) > 1:
        return [mark for part in points for mark in read_marks({**value, "points": [part]})]
    fields = _fields_of(value)
    start, end = _ends_of(value)
    text, named = fields.get("text"), _first_of(fields, _LABELS)
    if "points" in fields:  # of Dataturks, whose ends are the last character
        end = start + len(text) if text else end + 1
    labels: list[Any] = named if isinstance(named, list) and named else [named]
    for label in labels:
        if not isinstance(label, str) or not label.strip():
            keys = _known(fields, _LABELS) if named is None else ""
            raise ValueError(f"span {start}:{end} has the label {repr(label)[:60]}{keys}")
    covered = text if isinstance(text, str) else None
    told = {"probability": fields.get("probability", 1.0)}
    told["is_accepted"] = fields.get("answer") not in _NO
    return [Mark(start, end, label.strip(), text=covered, **told) for label in labels]


def read_brat(source: Source[Record]) -> Iterator[Record]:
    """Read text-bound annotation of brat: an .ann file with its .txt file, or a directory of them.

    Each text is a document. `left_out` counts annotation other than continuous spans.
    RAISES: SparseCRFError, when read, for an invalid annotation, or a missing or empty .txt file.
    """
    path = source.path
    files = sorted(path.rglob("*.ann")) if path.is_dir() else [path.with_suffix(".ann")]
    texts = path.rglob("*.txt") if path.is_dir() else ()
    source.left_out["texts without .ann"] += len({*texts} - {f.with_suffix(".txt") for f in files})
    for file in files:
        with source.read(file.name):
            yield _brat_record(source, file)


def _brat_record(source: Source[Record], path: Path) -> Record:
    """Return the record of an .ann file. RAISES: ValueError."""
    is_empty = not path.stat().st_size  # refuses a path that does not exist
    written, marks = path.with_suffix(".txt"), []
    if not written.is_file():
        raise ValueError(f"its .txt file, {written}, does not exist")
    text = _text_of({"text": "\n".join(read_lines(written))})
    path.stem.encode()  # refuses names that are not Unicode
    # An empty file is made for each text before its annotation.
    what = "texts whose .ann is empty, as before annotation (read as texts without entities)"
    source.left_out[what] += is_empty
    for number, line in lines_of(path):
        if not line.startswith("T"):
            source.left_out["annotations that are not spans"] += bool(line.strip())
        elif (match := _BRAT.fullmatch(line)) is None:
            shown = f"line {number}, {brief(line)}"
            raise ValueError(f"{shown}, is not T1<tab>LABEL START END<tab>TEXT")
        else:
            # A span over a line end has a part in each line.
            start, *ends, end = map(int, re.findall("[0-9]+", match[2]))
            if any(text[a:b].strip() for a, b in zip(ends[::2], ends[1::2], strict=False)):
                source.left_out["discontinuous spans"] += 1
            else:
                marks.append(Mark(start, end, label=match[1], text=match[3]))
    return Record(path.name, text, marks, document=path.stem)
