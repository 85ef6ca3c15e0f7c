"""`distil`: label texts by a teacher, to train a small model on them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest, nsmallest
from pathlib import Path
from typing import Annotated, TypeAlias

import spacy
import typer

from ...errors import Errors, SparseCRFError, refused_option
from ...interop.columns import Source
from ...interop.fitting import Misfit, RecordReader
from ...interop.label_survey import LabelSurvey
from ...interop.records import Record
from ...interop.teachers import Text, answered, load_teacher, read_texts
from ...progress import Task
from .common import Force, check_free, load, reported
from .convert import Share, Types, save_docs, say_written
from .printing import msg, print_table

# Probability, number of the text, label and text of a span that a teacher has marked.
Rated: TypeAlias = tuple[float, int, str, str]
_SHOWN = 5  # of the least sure spans


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
    force: Force = False,
) -> None:
    """Label texts by a teacher: a large pipeline, or a function around any model.

    A function gets a list of texts, and returns for each of them spans (start, end, label) or
    (start, end, label, probability), in characters. Tokens of spans that the teacher is not sure of
    have missing labels, which training sums over. The same command resumes an interrupted run.
    """
    with reported():
        check_free(force, target)
        read: Source[Record] = Source(source)
        texts = read_texts(source, read.left_out)
        if least_sure is not None:
            texts = _least_sure(texts, *least_sure)
        path = target.with_name(f"{target.name}.answers")
        rated: list[Rated] = []
        asked = Task("Asking", "texts", items=texts)
        answers = answered(path, teacher, load_teacher(teacher), asked)

        def records(_: object) -> Iterator[Record]:
            for number, text, answer in answers:
                if not isinstance(answer, Exception):
                    rated.extend(
                        (x.probability, number, x.label, text[x.start : x.end]) for x in answer
                    )
                    yield Record(f"text {number}", text, answer)
                elif skip_bad:
                    read.left_out["texts that the teacher fails at are left out"] += 1
                else:
                    values = {"teacher": teacher, "number": number, "text": text[:60]}
                    reason = str(answer) or repr(answer)
                    raise SparseCRFError(Errors.SC674.format(**values, reason=reason)) from answer

        read.reader = records
        reader = RecordReader(read, spacy.blank(lang), misfit=Misfit.expand, sure=sure)
        survey = LabelSurvey.of(source, types=annotated, labels=reader.labels)
        n_docs = save_docs(survey.docs(reader.docs()), target, {"dev": dev}, force)
        path.unlink()
        _say(rated, sure)
        say_written(read, survey, n_docs)


def _least_sure(texts: Iterable[Text], student: str, n: int) -> Iterator[Text]:
    """Yield the n texts with the largest entropy of a pipeline, in order."""
    if n < 1:
        raise refused_option("least_sure", n, "give a number of texts, at least 1")
    nlp, pipe = load(student)
    texts = Task("Choosing", "texts", items=texts)
    return iter(sorted(nlargest(n, texts, lambda x: pipe.uncertainty([nlp(x[1])])[0].entropy)))


def _say(rated: Sequence[Rated], sure: float) -> None:
    """Print spans by label, the share that is missing, and the least sure ones."""
    spans = Counter(label for _, _, label, _ in rated)
    missing = Counter(label for chance, _, label, _ in rated if chance < sure)
    rows = [(label, str(n), str(missing[label])) for label, n in sorted(spans.items())]
    print_table(rows, ("label", "spans", "missing"), "lrr")
    least = nsmallest(_SHOWN, (span for span in rated if span[0] < 1))
    shown = ((str(number), label, text, f"{chance:.3f}") for chance, number, label, text in least)
    print_table(shown, ("text", "least sure", "span", "probability"), "rllr")
    n, n_missing = len(rated), missing.total()
    msg.info(f"{n_missing} of {n} spans ({n_missing / max(1, n):.2%}) have missing labels")
    if rated and not least:
        msg.info("The teacher gives no probabilities: it counts as sure, and --sure has no effect")
