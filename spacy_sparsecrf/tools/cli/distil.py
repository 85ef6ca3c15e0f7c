"""`distil`: label texts by a teacher, to train a small model on them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import chain
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc

from ...errors import Errors, SparseCRFError, refused_option
from ...interop.label_map import LabelMap
from ...interop.label_survey import LabelSurvey
from ...interop.teachers import Answers, Lesson, Text, load_teacher, read_texts
from ...progress import Task
from .common import Code, Force, check_free, load, reported
from .convert import Share, Types, save_docs
from .printing import msg, print_table


def distil(
    teacher: Annotated[str, typer.Argument(help="Pipeline, or module:function")],
    source: Annotated[Path, typer.Argument(metavar="TEXTS", help="File of lines, or JSONL")],
    target: Annotated[Path, typer.Argument(metavar="OUT.spacy", help="File to write")],
    lang: Annotated[str, typer.Option(help="Language of the Docs")] = "xx",
    sure: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Spans of a smaller probability are missing")
    ] = 0.8,
    least_sure: Annotated[
        tuple[str, int] | None,
        typer.Option(metavar="STUDENT N", help="Ask for the N texts that a pipeline knows least"),
    ] = None,
    annotated: Types = [],  # noqa: B006
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out texts that the teacher fails at")
    ] = False,
    dev: Share = 0.0,
    code: Code = None,
    force: Force = False,
) -> None:
    """Label texts by a teacher: a large pipeline, or a function around any model.

    A function gets a list of texts, and returns for each of them spans (start, end, label) or
    (start, end, label, probability), in characters. Tokens of spans that the teacher is not sure of
    have missing labels, which training sums over. The same command resumes an interrupted run.
    """
    from spacy.cli._util import import_code  # takes a second to import

    with reported():
        check_free(force, target)
        import_code(code)
        lesson, left_out = Lesson(spacy.blank(lang), sure), Counter[str]()
        texts = read_texts(source, left_out)
        if least_sure is not None:
            texts = _least_sure(texts, *least_sure)
        function = load_teacher(teacher)
        path = target.with_name(f"{target.name}.answers")
        answers = Answers(path, teacher)
        survey = LabelSurvey.of(source, lang, types=annotated, labels=LabelMap())

        def docs() -> Iterator[Doc]:
            for number, text, answer in answers.of(function, Task("Asking", "texts", items=texts)):
                if not isinstance(answer, Exception):
                    yield lesson.doc(number, text, answer)
                elif skip_bad:
                    left_out["texts that the teacher fails at are left out"] += 1
                else:
                    values = {"teacher": teacher, "number": number, "text": text[:60]}
                    reason = str(answer) or repr(answer)
                    raise SparseCRFError(Errors.SC674.format(**values, reason=reason)) from answer
            if not lesson.n["texts"]:
                raise SparseCRFError(Errors.SC612.format(path=source, remedy="Check the path"))

        with answers.file:
            n_docs = save_docs(survey.docs(docs()), target, {"dev": dev}, seed=0, force=force)
        path.unlink()
        _say(lesson, chain((f"{n} {what}" for what, n in left_out.items()), survey.messages()))
        for file, n in n_docs.items():
            msg.good(f"{n} docs are in {file}")


def _least_sure(texts: Iterable[Text], student: str, n: int) -> Iterator[Text]:
    """Yield the n texts with the largest entropy of a pipeline, in order."""
    if n < 1:
        raise refused_option("least_sure", n, "give a number of texts, at least 1")
    nlp, pipe = load(student)
    texts = Task("Choosing", "texts", items=texts)
    return iter(sorted(nlargest(n, texts, lambda x: pipe.uncertainty([nlp(x[1])])[0].entropy)))


def _say(lesson: Lesson, warnings: Iterable[str]) -> None:
    """Print spans by label, the share of missing labels, examples of the least sure, warnings."""
    rows = [[x, str(n), str(lesson.unsure[x])] for x, n in sorted(lesson.spans.items())]
    print_table(rows, ("label", "spans", "missing"), "lrr")
    least = ((str(number), label, text, f"{p:.3f}") for p, number, label, text in lesson.least)
    print_table(least, ("text", "least sure", "span", "probability"), "rllr")
    n_missing, n_tokens = lesson.n["missing"], lesson.n["tokens"]
    msg.info(f"{n_missing} of {n_tokens} tokens ({n_missing / n_tokens:.2%}) have missing labels")
    if rows and not lesson.least:
        msg.info("The teacher gives no probabilities: it counts as sure, and --sure has no effect")
    for text in warnings:
        msg.warn(text)
