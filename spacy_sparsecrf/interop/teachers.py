"""Teachers, pipelines or functions that label texts: their answers, which become Docs."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice, pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeAlias

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import filter_spans

from ..atomic_write import write_files
from ..errors import Errors, SparseCRFError, nearest
from ..pipeline.data_checks import LANG
from ..pipeline.targets.entities import Entities
from .records import Mark, trimmed
from .text_files import read_lines

N_ASKED = 16
"""Texts of a call of the teacher, whose answers are lost if it is interrupted."""


class TeacherSpan(NamedTuple):
    """A span of characters start:end, with a label. probability: None if the teacher has none."""

    start: int
    end: int
    label: str
    probability: float | None = None


# Returns for each text the values of guesses.
Teacher: TypeAlias = Callable[[Sequence[str]], Iterable[Iterable[Any]]]
Text: TypeAlias = tuple[int, str]  # its number in the file, from 1
Answer: TypeAlias = list[TeacherSpan] | Exception


def load_teacher(name: str) -> Teacher:
    """Load a pipeline, or import a function `module:function`. RAISES: SparseCRFError."""
    if ":" not in name or Path(name).exists():
        nlp = spacy.load(name)
        return lambda texts: (_entities(nlp, doc) for doc in nlp.pipe(texts))
    try:
        teacher: Teacher = resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        near = (
            nearest(error.name or "", dir(error.obj)) if isinstance(error, AttributeError) else ""
        )
        message = Errors.SC675.format(teacher=name, reason=error, nearest=near)
        raise SparseCRFError(message) from error
    return teacher


def _entities(nlp: Language, doc: Doc) -> list[TeacherSpan]:
    """Return the entities of a Doc, with probabilities if the last sparse CRF knows all."""
    chances: Sequence[float | None] = [None] * len(doc.ents)
    pipes: list[Any] = [pipe for _, pipe in nlp.pipeline]
    for pipe in (x for x in pipes if isinstance(getattr(x, "target", None), Entities)):
        if {entity.label_ for entity in doc.ents} <= {*pipe.labels}:
            chances = pipe.entity_probabilities(doc, doc.ents).clip(0, 1)
    pairs = zip(doc.ents, chances, strict=True)
    return [TeacherSpan(x.start_char, x.end_char, x.label_, chance) for x, chance in pairs]


def read_texts(path: Path, left_out: Counter[str]) -> Iterator[Text]:
    """Yield the texts of a file of lines or of JSONL, each once.

    left_out: counts blank texts and repetitions. RAISES: SparseCRFError for JSONL without a text.
    """
    seen = {""}
    for number, line in enumerate(read_lines(path), start=1):
        text = line.strip()
        try:
            text = str(json.loads(text)["text"]) if path.suffix == ".jsonl" and text else text
        except (ValueError, KeyError, TypeError) as error:
            reason = f"line {number}: {error!r}"
            raise SparseCRFError(Errors.SC624.format(path=path, reason=reason)) from error
        if text in seen:
            left_out["blank or repeated texts are left out"] += 1
        else:
            seen.add(text)
            yield number, text


def ask(teacher: Teacher, texts: Sequence[str]) -> list[Answer]:
    """Return the teacher's spans in each text, or the error that it raises for it alone."""
    try:
        return [_checked(spans, text) for spans, text in zip(teacher(texts), texts, strict=True)]
    except Exception as error:  # a teacher may raise anything
        if len(texts) == 1:
            return [error]
    return [answer for text in texts for answer in ask(teacher, [text])]


def _checked(spans: Iterable[Any], text: str) -> list[TeacherSpan]:
    """Return the spans in a text, ascending. RAISES: ValueError for an invalid one."""
    guesses = []
    for values in spans:
        guess = TeacherSpan(*values)
        chance = None if guess.probability is None else float(guess.probability)
        if not 0 <= (chance or 0) <= 1 or not isinstance(guess.label, str):
            raise ValueError(f"{guess} has no label, or no probability from 0 to 1")
        mark = trimmed(Mark(int(guess.start), int(guess.end), guess.label), text)
        guesses.append(TeacherSpan(mark.start, mark.end, mark.label, chance))
    guesses.sort(key=lambda guess: guess.start)
    for guess, following in pairwise(guesses):
        if following.start < guess.end:
            raise ValueError(f"{guess} and {following} overlap")
    return [guess for guess in guesses if guess.start < guess.end]


class Answers:
    """The answers of a teacher so far, in a file, from which an interrupted run is resumed.

    path: of lines of JSON; name: of the teacher.
    RAISES: SparseCRFError if the file has answers of another teacher.
    """

    def __init__(self, path: Path, name: str) -> None:
        answered = path.read_bytes() if path.exists() else b""
        # The last line may be incomplete.
        complete = answered[: answered.rfind(b"\n") + 1] or json.dumps(name).encode() + b"\n"
        header, *pairs = map(json.loads, complete.splitlines())
        if header != name:
            message = Errors.SC676.format(path=path, other=header, teacher=name)
            raise SparseCRFError(message)
        write_files(path.parent, {path.name: complete}, "OUT")
        self.file = path.open("ab")
        self._spans = {text: [TeacherSpan(*span) for span in spans] for text, spans in pairs}

    def of(self, teacher: Teacher, texts: Iterable[Text]) -> Iterator[tuple[int, str, Answer]]:
        """Yield texts with answers, from the file or else from the teacher."""
        remaining = iter(texts)
        while chunk := [*islice(remaining, N_ASKED)]:
            unknown = [text for _, text in chunk if text not in self._spans]
            answers = dict(zip(unknown, ask(teacher, unknown) if unknown else (), strict=True))
            for text, answer in answers.items():
                if not isinstance(answer, Exception):
                    self.file.write(json.dumps([text, answer]).encode() + b"\n")
            self.file.flush()
            answers |= self._spans
            yield from ((number, text, answers[text]) for number, text in chunk)


@dataclass
class Lesson:
    """Makes Docs of answers, and counts what they teach.

    sure: tokens of spans with a smaller probability have missing labels; spans, unsure: numbers by
    label; least: (probability, number of the text, label, span) of the least sure; n: counts of
    texts, tokens, and missing labels.
    """

    nlp: Language
    sure: float
    spans: Counter[str] = field(default_factory=Counter)
    unsure: Counter[str] = field(default_factory=Counter)
    least: list[tuple[Any, int, str, str]] = field(default_factory=list)
    n: Counter[str] = field(default_factory=Counter)

    def doc(self, number: int, text: str, guesses: Iterable[TeacherSpan]) -> Doc:
        """Create the Doc of a text; of spans that then share a token, the longest is kept."""
        doc = self.nlp.make_doc(text)
        doc.user_data[LANG] = self.nlp.lang
        chances: dict[Any, float | None] = {
            doc.char_span(*guess[:3], alignment_mode="expand"): guess.probability
            for guess in guesses
        }
        spans = filter_spans(chances)
        missing = [x for x in spans if (p := chances[x]) is not None and p < self.sure]
        doc.set_ents([span for span in spans if span not in missing], missing=missing)
        self.spans.update(span.label_ for span in spans)
        self.unsure.update(span.label_ for span in missing)
        self.n.update(texts=1, tokens=len(doc), missing=sum(map(len, missing)))
        rated = [(chances[span], number, span.label_, span.text) for span in spans]
        self.least = nsmallest(5, [*self.least, *(x for x in rated if x[0] is not None)])
        return doc
