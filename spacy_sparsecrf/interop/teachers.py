"""Teachers, pipelines or functions that label texts: their answers, which become Docs."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeAlias

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ..atomic_write import write_files
from ..errors import Errors, SparseCRFError
from ..pipeline.targets.entities import Entities
from .annotation_tools import read_marks
from .records import Mark, trimmed
from .text_files import read_lines

N_ASKED = 16
"""Texts of a call of the teacher, whose answers are lost if it is interrupted."""


# Returns for each text the spans, see `read_marks`.
Teacher: TypeAlias = Callable[[Sequence[str]], Iterable[Iterable[Any]]]
Text: TypeAlias = tuple[int, str]  # its number in the file, from 1
Answer: TypeAlias = list[Mark] | Exception


def load_teacher(name: str) -> Teacher:
    """Load a pipeline, or import a function `module:function`. RAISES: SparseCRFError."""
    if ":" not in name or Path(name).exists():
        nlp = spacy.load(name)
        return lambda texts: (_entities(nlp, doc) for doc in nlp.pipe(texts))
    try:
        teacher: Teacher = resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SparseCRFError(Errors.SC675.format(teacher=name, reason=error)) from error
    return teacher


def _entities(nlp: Language, doc: Doc) -> Iterable[tuple[Any, ...]]:
    """Return the entities of a Doc, with probabilities if the last sparse CRF knows all."""
    chances: Sequence[float] = [1.0] * len(doc.ents)
    pipes: Any = nlp.pipeline
    for _, pipe in pipes:
        is_ours = isinstance(getattr(pipe, "target", None), Entities)
        if is_ours and {entity.label_ for entity in doc.ents} <= {*pipe.labels}:
            chances = pipe.entity_probabilities(doc, doc.ents).clip(0, 1)
    pairs = zip(doc.ents, chances, strict=True)
    return [(x.start_char, x.end_char, x.label_, chance) for x, chance in pairs]


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


def answered(
    path: Path, name: str, teacher: Teacher, texts: Iterable[Text]
) -> Iterator[tuple[int, str, Answer]]:
    """Yield texts with answers: from a file, or else of the teacher, which are added to it.

    path: of lines of JSON, with which an interrupted run is resumed; name: of the teacher.
    RAISES: SparseCRFError if the file has answers of another teacher.
    """
    written = path.read_bytes() if path.exists() else b""
    # The last line may be incomplete.
    complete = written[: written.rfind(b"\n") + 1] or json.dumps(name).encode() + b"\n"
    header, *pairs = map(json.loads, complete.splitlines())
    if header != name:
        raise SparseCRFError(Errors.SC676.format(path=path, other=header, teacher=name))
    answers: dict[str, Answer] = {text: [Mark(*mark) for mark in marks] for text, marks in pairs}
    write_files(path.parent, {path.name: complete}, "OUT")
    remaining = iter(texts)
    with path.open("ab") as file:
        while chunk := [*islice(remaining, N_ASKED)]:
            unknown = [text for _, text in chunk if text not in answers]
            answers |= zip(unknown, _ask(teacher, unknown) if unknown else (), strict=True)
            for text in unknown:
                if isinstance(answers[text], list):
                    file.write(json.dumps([text, answers[text]]).encode() + b"\n")
            file.flush()
            yield from ((number, text, answers[text]) for number, text in chunk)


def _ask(teacher: Teacher, texts: Sequence[str]) -> list[Answer]:
    """Return the teacher's marks in each text, or the error that it raises for it alone."""
    try:
        return [_checked(spans, text) for spans, text in zip(teacher(texts), texts, strict=True)]
    except Exception as error:  # a teacher may raise anything
        if len(texts) == 1:
            return [error]
    return [answer for text in texts for answer in _ask(teacher, [text])]


def _checked(spans: Iterable[Any], text: str) -> list[Mark]:
    """Return the marks of spans in a text, ascending. RAISES: ValueError for an invalid one."""
    marks = []
    for mark in (mark for span in spans for mark in read_marks(span)):
        chance = float(mark.probability)
        if not 0 <= chance <= 1:
            raise ValueError(f"{mark.label} {mark.start}:{mark.end} has the probability {chance}")
        marks.append(trimmed(mark, text)._replace(probability=chance))
    marks.sort()
    for mark, following in pairwise(marks):
        if following.start < mark.end:
            raise ValueError(f"{mark[:3]} and {following[:3]} overlap")
    return marks
