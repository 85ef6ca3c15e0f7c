"""`errors`: score a component on gold annotation, and explain its errors."""

from typing import Annotated

import typer

from ...crf.model.names import escape
from ..analysis.error_analysis import Mistake, Report, find_mistakes
from .common import Component, Data, Force, Html, Model, annotated_gold, check_free, load, reported
from .explain import contribution_row
from .printing import LINE, msg, print_table, table_width, write_page

N_PRINTED, N_ON_PAGE = 10, 200  # number of mistakes explained
N_CONFUSIONS = 15  # number of confusions printed


def errors(
    model: Model,
    data: Data,
    component: Component = "",
    label: Annotated[str, typer.Option(help="Explain errors with this label only")] = "",
    word: Annotated[str, typer.Option(help="Explain errors with this word only")] = "",
    limit: Annotated[
        int | None,
        typer.Option(min=0, help=f"Errors explained: {N_PRINTED}, or {N_ON_PAGE} on a page"),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Features for, and against, a label")] = 3,
    html: Html = None,
    force: Force = False,
) -> None:
    """Score a component on gold annotation, and explain its errors.

    Prints scores by label (of spans by strict, boundaries, partial and type match), confusions of
    labels, and errors, the most confident first: gold, prediction, their probabilities, and the
    features in favour of the predicted label over the gold one.
    """
    with reported():
        check_free(force, html)
        nlp, pipe = load(model, component)
        examples = annotated_gold(nlp, pipe.name, data)
        most = limit if limit is not None else N_PRINTED if html is None else N_ON_PAGE
        report = find_mistakes(pipe, examples, label=label, word=word, most=most)
        if html is not None:
            title = f"{pipe.name} on {data.name}"
            write_page(html, report, title, nlp=nlp, n=n, pipeline=model, data=data)
            return
        msg.divider(f"{pipe.name} on {data}")
        _print_scores(report)
        _print_confusions(report)
        msg.text(report.conclusion)
        for mistake in report.mistakes:
            _print_mistake(mistake, n)


def _print_scores(report: Report) -> None:
    """Print precision, recall and F of strict match, and F of the other types of match."""
    rows = []
    for score in report.scores:
        strict, *others = (score.rates[kind] for kind in report.kinds)
        shares = strict.precision, strict.recall, strict.f, *(rates.f for rates in others)
        row = [escape(score.label) or "all", str(score.n_gold), str(score.n_predicted)]
        rows.append(row + [f"{100 * share:.2f}" for share in shares])
    header = ["label", "gold", "predicted", "P", "R", "F", *report.kinds[1:]]
    print_table(rows, header, "l" + "r" * (len(header) - 1))


def _print_confusions(report: Report) -> None:
    names = {label: escape(label) or "none" for label in report.labels}
    if table_width([21, *(max(4, len(name)) for name in names.values())]) <= LINE:
        rows = [
            [name, *(str(report.pairs.get((gold, label), "")) for label in names)]
            for gold, name in names.items()
        ]
        print_table(rows, ["gold, below predicted", *names.values()], "l" + "r" * len(names))
    rows = []
    for c in report.confusions[:N_CONFUSIONS]:
        texts = [f"{escape(text)} ({n})" if n > 1 else escape(text) for text, n in c.examples]
        rows.append([str(c.n), names[c.gold], names[c.predicted], c.fault, ", ".join(texts)])
    print_table(rows, ("errors", "gold", "predicted", "wrong", "examples"), "rllll")


def _print_mistake(mistake: Mistake, n: int) -> None:
    labels = []
    for name, spans in (("gold", mistake.gold), ("predicted", mistake.predicted)):
        labelled = []
        for span in spans:
            labelled.append(f"{escape(span.label)} {span.probability:.4f}")
            if span.end - span.start < len(mistake.words):
                labelled[-1] += f" ({escape(mistake.text_of(span))})"
        labels.append(f"{name} {' + '.join(labelled) or 'none'}")
    msg.divider(f"Doc {mistake.doc}: {'wrong ' * ('' not in mistake.pair)}{mistake.fault}")
    words = *mistake.before, "[", *mistake.words, "]", *mistake.after
    msg.text(escape(" ".join(words)))
    msg.text(", ".join(labels))
    rows = ((escape(text), *contribution_row(part)) for text, part in mistake.strongest(n))
    print_table(rows, ("at", "what", "predicted", "gold", "for"), "llrrr")
