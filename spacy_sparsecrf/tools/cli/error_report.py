"""`errors`: score a component on gold annotation, and explain its errors."""

from typing import Annotated

import typer

from ...crf.model.names import escape
from ..analysis.error_analysis import Mistake, Report, find_mistakes
from .common import Component, Data, Html, Model, annotated_gold, load, reported
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
) -> None:
    """Score a component on gold annotation, and explain its errors.

    Prints scores by label (of spans by strict, boundaries, partial and type match), confusions of
    labels, and errors, the most confident first: gold, prediction, their probabilities, and the
    features in favour of the predicted label over the gold one.
    """
    with reported():
        nlp, pipe = load(model, component)
        given = annotated_gold(nlp, pipe.name, data)
        most = limit if limit is not None else N_PRINTED if html is None else N_ON_PAGE
        found = find_mistakes(pipe, given, label=label, word=word, most=most)
        if html is not None:
            title = f"{pipe.name} on {data.name}"
            write_page(html, found, title, nlp, n, pipeline=model, data=data)
            return
        msg.divider(f"{pipe.name} on {data}")
        _print_scores(found)
        _print_confusions(found)
        for mistake in found.mistakes:
            _print_mistake(mistake, n)
        n_more = found.n_mistakes - len(found.mistakes)
        if n_more:
            msg.text(f"{n_more} more errors: raise --limit, or write a page by --html")


def _print_scores(found: Report) -> None:
    """Print precision, recall and F of strict match, and F of the other types of match."""
    rows = []
    for own in found.scores:
        strict, *others = (own.rates[kind] for kind in found.kinds)
        shares = strict.precision, strict.recall, strict.f, *(rates.f for rates in others)
        row = [escape(own.label) or "all", str(own.n_gold), str(own.n_predicted)]
        rows.append(row + [f"{100 * share:.2f}" for share in shares])
    header = ["label", "gold", "predicted", "P", "R", "F", *found.kinds[1:]]
    print_table(rows, "l" + "r" * (len(header) - 1), *header)


def _print_confusions(found: Report) -> None:
    names = [escape(label) or "none" for label in found.labels]
    if table_width([21, *(max(4, len(name)) for name in names)]) <= LINE:
        rows = [
            [name, *(str(found.pairs.get((gold, label), "")) for label in found.labels)]
            for name, gold in zip(names, found.labels, strict=True)
        ]
        print_table(rows, "l" + "r" * len(names), "gold, below predicted", *names)
    rows = []
    for c in found.confusions[:N_CONFUSIONS]:
        texts = [f"{escape(text)} ({n})" if n > 1 else escape(text) for text, n in c.examples]
        labels = [escape(label) or "none" for label in (c.gold, c.predicted)]
        rows.append([str(c.n), *labels, c.fault, ", ".join(texts)])
    print_table(rows, "rllll", "errors", "gold", "predicted", "wrong", "examples")


def _print_mistake(mistake: Mistake, n: int) -> None:
    labels = []
    for name, spans in (("gold", mistake.gold), ("predicted", mistake.predicted)):
        own = []
        for span in spans:
            own.append(f"{escape(span.label)} {span.probability:.4f}")
            if span.end - span.start < len(mistake.words):
                own[-1] += f" ({escape(mistake.text_of(span))})"
        labels.append(f"{name} {' + '.join(own) or 'none'}")
    msg.divider(f"Doc {mistake.doc}: {'wrong ' * ('' not in mistake.pair)}{mistake.fault}")
    words = *mistake.before, "[", *mistake.words, "]", *mistake.after
    msg.text(escape(" ".join(words)))
    msg.text(", ".join(labels))
    rows = ((escape(text), *contribution_row(each)) for text, each in mistake.strongest(n))
    print_table(rows, "llrrr", "at", "what", "predicted", "gold", "for")
