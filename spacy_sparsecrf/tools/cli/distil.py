"""`distil`: label texts by a teacher, to train a small model on them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import nlargest
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc

from ...errors import Errors, SparseCRFError, refused_option
from ...interop.label_map import LabelMap
from ...interop.label_survey import LabelSurvey
from ...interop.teachers import Answered, Answers, Lesson, Text, batched, load_teacher, read_texts
from ...progress import Task
from .common import Code, Force, check_free, load, reported, up_to
from .convert import Share, save_docs
from .printing import msg, print_table

_N_READ = 256  # texts that the student reads at once


def distil(
    teacher: Annotated[str, typer.Argument(help="Pipeline, or module:function")],
    source: Annotated[Path, typer.Argument(metavar="TEXTS", help="Lines, JSONL or .spacy")],
    target: Annotated[Path, typer.Argument(metavar="OUT.spacy", help="File to write")],
    lang: Annotated[str, typer.Option(help="Language of the Docs")] = "xx",
    sure: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Spans of a smaller probability are missing")
    ] = 0.8,
    least_sure: Annotated[
        tuple[str, int] | None,
        typer.Option(metavar="STUDENT N", help="Ask for the N texts that a pipeline knows least"),
    ] = None,
    annotated: Annotated[
        list[str],
        typer.Option(
            metavar="TYPES",
            help="The only types that the teacher looks for: other tokens may be of another type",
        ),
    ] = [],  # noqa: B006
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
        check_free(target, force)
        import_code(code)
        lesson, left_out = Lesson(spacy.blank(lang), sure), Counter[str]()
        texts = read_texts(source, lesson.nlp, left_out)
        if least_sure is not None:
            texts = _least_sure(texts, *least_sure)
        function = load_teacher(teacher)
        answers = Answers(target.with_name(f"{target.name}.answers"), teacher)
        survey = LabelSurvey.of(source, lang, types=annotated, labels=LabelMap())
        done = False
        try:
            answered = answers.of(function, Task("Asking", "texts", items=texts))
            docs = _docs(answered, lesson, left_out, source, "" if skip_bad else teacher)
            n_docs = save_docs(survey.docs(docs), target, {"dev": dev}, seed=0, force=force)
            done = True
        finally:
            answers.close(done=done)
        _say(lesson, survey, left_out)
        for path, n in n_docs.items():
            msg.good(f"{n} docs are in {path}")


def _docs(
    answered: Iterable[Answered],
    lesson: Lesson,
    left_out: Counter[str],
    source: Path,
    teacher: str,
) -> Iterator[Doc]:
    """Yield the Docs of answers.

    teacher: its name for messages, or "" to leave out the texts that it fails at.
    RAISES: SparseCRFError for a text that the teacher fails at, and if there is no Doc.
    """
    for number, text, answer in answered:
        if not isinstance(answer, Exception):
            yield lesson.doc(number, text, answer)
            continue
        reason = str(answer) or repr(answer)
        if teacher:
            values = {"teacher": teacher, "number": number, "text": text[:60], "reason": reason}
            raise SparseCRFError(Errors.SC674.format(**values)) from answer
        left_out["texts that the teacher fails at are left out"] += 1
    if not lesson.n["texts"]:
        raise SparseCRFError(Errors.SC612.format(path=source, remedy="Check the path"))


def _least_sure(texts: Iterable[Text], student: str, n: int) -> Iterator[Text]:
    """Yield the n texts with the largest entropy of a pipeline, in order."""
    if n < 1:
        raise refused_option("least_sure", n, "give a number of texts, at least 1")
    nlp, pipe = load(student)

    def ranked() -> Iterator[tuple[float, int, str]]:
        for chunk in batched(texts, _N_READ):
            docs = [*up_to(nlp, pipe.name, (nlp.make_doc(text) for _, text in chunk))]
            for (number, text), unsure in zip(chunk, pipe.uncertainty(docs), strict=True):
                yield unsure.entropy, -number, text

    chosen = nlargest(n, ranked())
    return iter(sorted((-number, text) for _, number, text in chosen))


def _say(lesson: Lesson, survey: LabelSurvey, left_out: Counter[str]) -> None:
    """Print spans by label, the share of missing labels, and examples of the least sure."""
    n = lesson.n
    rows = []
    for label, n_spans in sorted(lesson.spans.items()):
        of_label = lesson.chances.get(label, [])
        mean = f"{sum(of_label) / len(of_label):.3f}" if of_label else ""
        rows.append([label, str(n_spans), str(lesson.unsure[label]), mean])
    print_table(rows, ("label", "spans", "missing", "mean probability"), "lrrr")
    least = ((str(number), label, text, f"{p:.3f}") for p, number, label, text in lesson.least)
    print_table(least, ("text", "least sure", "span", "probability"), "rllr")
    share = n["missing"] / n["tokens"]
    msg.info(f"{n['missing']} of {n['tokens']} tokens ({share:.2%}) have missing labels")
    if rows and not lesson.least:
        msg.info("The teacher gives no probabilities: it counts as sure, and --sure has no effect")
    left_out["spans are expanded to whole tokens"] = n["expanded"]
    left_out["spans that overlap then are left out"] = n["overlapping"]
    for what, count in (+left_out).items():
        msg.warn(f"{count} {what}")
    for text in survey.messages():
        msg.warn(text)
