"""Teachers, pipelines or functions that label texts: their answers, which become Docs."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice, pairwise
from numbers import Real
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeAlias

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import filter_spans

from ..errors import Errors, SparseCRFError, nearest
from ..pipeline.data_checks import LANG
from ..pipeline.targets.entities import Entities
from .records import Mark, trimmed
from .text_files import SPACY, read_lines, unpack

N_ASKED = 16
"""Texts of a call of the teacher, whose answers are lost if it is interrupted."""


class Guess(NamedTuple):
    """A span of characters start:end with a label. probability: None if the teacher has none."""

    start: int
    end: int
    label: str
    probability: float | None


# Returns spans for each text: start, end, label and, if it is known, the probability.
Teacher: TypeAlias = Callable[[Sequence[str]], Iterable[Iterable[Any]]]
Text: TypeAlias = tuple[int, str]  # its number in the file, from 1
Answered: TypeAlias = tuple[int, str, list[Guess] | Exception]  # with what the teacher answers


def load_teacher(name: str) -> Teacher:
    """Load a pipeline, or import a function `module:function`. RAISES: SparseCRFError."""
    if ":" not in name or Path(name).exists():
        nlp = spacy.load(name)
        return lambda texts: map(_entities(nlp), nlp.pipe(texts))
    try:
        teacher: Teacher = resolve_name(name)
        return teacher
    except (ImportError, AttributeError, ValueError) as error:
        near = nearest(error.name, dir(error.obj)) if isinstance(error, AttributeError) else ""
        values = {"teacher": name, "reason": error, "nearest": near}
        raise SparseCRFError(Errors.SC675.format(**values)) from error


def _entities(nlp: Language) -> Callable[[Doc], list[tuple[Any, ...]]]:
    """Return a function of the entities of a Doc; those of a sparse CRF have probabilities."""
    pipes = [pipe for _, pipe in nlp.pipeline if isinstance(getattr(pipe, "target", 0), Entities)]

    def guesses(doc: Doc) -> list[tuple[Any, ...]]:
        spans = [(entity.start, entity.end, entity.label_) for entity in doc.ents]
        chances: Sequence[float | None] = [None] * len(spans)
        for pipe in pipes[-1:]:
            if {entity.label_ for entity in doc.ents} <= {*pipe.labels}:
                chances = pipe.entity_probabilities(doc, spans)
        return [
            (entity.start_char, entity.end_char, entity.label_, chance)
            for entity, chance in zip(doc.ents, chances, strict=True)
        ]

    return guesses


def read_texts(path: Path, nlp: Language, left_out: Counter[str]) -> Iterator[Text]:
    """Yield the texts of a file of lines, of JSONL or of Docs, each once.

    left_out: counts blank texts and repetitions.
    RAISES: SparseCRFError for a line of JSONL without a text.
    """
    is_json = {".jsonl", ".ndjson"} & {*path.suffixes}
    is_packed = path.suffix == SPACY
    texts = (doc.text for doc in unpack(path, nlp.vocab)) if is_packed else read_lines(path)
    seen = {""}
    for number, text in enumerate(texts, start=1):
        if is_json and text.strip():
            text = _text_of(path, number, text)
        text = text if is_packed else text.strip()
        if text in seen or not text.strip():
            left_out["blank or repeated texts are left out"] += 1
        else:
            seen.add(text)
            yield number, text


def _text_of(path: Path, number: int, line: str) -> str:
    """Return the text of a line of JSONL. RAISES: SparseCRFError."""
    try:
        text = json.loads(line)["text"]
        if isinstance(text, str):
            return text
        reason = f"text is {text!r}"
    except (ValueError, KeyError, TypeError) as error:
        reason = repr(error)
    raise SparseCRFError(Errors.SC624.format(path=path, reason=f"line {number}: {reason}"))


def batched(texts: Iterable[Text], n: int) -> Iterator[list[Text]]:
    """Yield lists of n texts, the last one shorter."""
    remaining = iter(texts)
    while chunk := [*islice(remaining, n)]:
        yield chunk


def ask(teacher: Teacher, texts: Sequence[str]) -> list[list[Guess] | Exception]:
    """Return the teacher's spans in each text, or the error that it raises for it alone."""
    try:
        return [_checked(spans, text) for spans, text in zip(teacher(texts), texts, strict=True)]
    except Exception as error:  # a teacher may raise anything
        if len(texts) == 1:
            return [error]
    return [answer for text in texts for answer in ask(teacher, [text])]


def _checked(spans: Iterable[Any], text: str) -> list[Guess]:
    """Return the spans in a text, ascending. RAISES: ValueError for an invalid one."""
    guesses = []
    for start, end, label, *others in spans:
        mark = trimmed(Mark(int(start), int(end), label), text)
        chance = others[0] if others else None
        where = f"{label!r} {start}:{end}"
        if not isinstance(label, str) or not label:
            raise ValueError(f"the label of {where} is not a text")
        if chance is not None and not (isinstance(chance, Real) and 0 <= chance <= 1):
            raise ValueError(f"the probability of {where} is {chance!r}, not a number from 0 to 1")
        if mark.start < mark.end:
            chance = None if chance is None else float(chance)
            guesses.append(Guess(mark.start, mark.end, label, chance))
    guesses.sort(key=lambda guess: guess.start)
    for guess, other in pairwise(guesses):
        if other.start < guess.end:
            raise ValueError(f"{guess[:3]} and {other[:3]} overlap")
    return guesses


class Answers:
    """The answers of a teacher so far, in a file, which an interrupted run is resumed from.

    path: of lines of JSON; name: of the teacher.
    RAISES: SparseCRFError if the file has answers of another teacher.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._spans: dict[str, list[Guess]] = {}
        complete, end, _ = (path.read_bytes() if path.exists() else b"").rpartition(b"\n")
        header, *lines = complete.splitlines() or [json.dumps(name).encode()]
        if json.loads(header) != name:
            values = {"path": path, "other": json.loads(header), "teacher": name}
            raise SparseCRFError(Errors.SC676.format(**values))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("r+b" if end else "wb")
        self._file.truncate(self._file.seek(len(complete + end)))  # a line may be incomplete
        if not end:
            self._file.write(header + b"\n")
        for line in lines:
            text, spans = json.loads(line)
            self._spans[text] = [Guess(*span) for span in spans]

    def of(self, teacher: Teacher, texts: Iterable[Text]) -> Iterator[Answered]:
        """Yield texts with answers; ask the teacher for those that are missing."""
        for chunk in batched(texts, N_ASKED):
            unknown = [text for _, text in chunk if text not in self._spans]
            answers = dict(zip(unknown, ask(teacher, unknown) if unknown else (), strict=True))
            for text, answer in answers.items():
                if not isinstance(answer, Exception):
                    self._spans[text] = answer
                    self._file.write(json.dumps([text, answer]).encode() + b"\n")
            self._file.flush()
            for number, text in chunk:
                yield number, text, self._spans.get(text) or answers.get(text, [])

    def close(self, *, done: bool) -> None:
        """Close the file; remove it if the Docs are saved."""
        self._file.close()
        if done:
            self._path.unlink()


@dataclass
class Lesson:
    """Makes Docs of answers, and counts what they teach.

    sure: tokens of spans with a smaller probability have missing labels; spans, unsure: their
    numbers by label; chances: probabilities by label; least: (probability, number of the text,
    label, span) of the least sure; n: counts of texts, tokens, missing labels and misfits.
    """

    nlp: Language
    sure: float
    spans: Counter[str] = field(default_factory=Counter)
    unsure: Counter[str] = field(default_factory=Counter)
    chances: dict[str, list[float]] = field(default_factory=dict)
    least: list[tuple[float, int, str, str]] = field(default_factory=list)
    n: Counter[str] = field(default_factory=Counter)

    def doc(self, number: int, text: str, guesses: Sequence[Guess]) -> Doc:
        """Create the Doc of a text."""
        doc = self.nlp.make_doc(text)
        doc.user_data[LANG] = self.nlp.lang
        chances = {}
        for guess in guesses:
            span = doc.char_span(*guess[:3], alignment_mode="expand")
            self.n["expanded"] += (span.start_char, span.end_char) != guess[:2]
            chances[span] = guess.probability
        spans = filter_spans(chances)
        self.n["overlapping"] += len(chances) - len(spans)
        missing = []
        for span in spans:
            chance = chances[span]
            self.spans[span.label_] += 1
            if chance is not None:
                self.chances.setdefault(span.label_, []).append(chance)
                self.least.append((chance, number, span.label_, span.text))
                if chance < self.sure:
                    missing.append(span)
        self.least = nsmallest(5, self.least)
        self.unsure.update(span.label_ for span in missing)
        self.n.update(texts=1, tokens=len(doc), missing=sum(map(len, missing)))
        doc.set_ents([span for span in spans if span not in missing], missing=missing)
        return doc
