"""`explain`: what a model has learnt, and why tokens have their labels."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from spacy.language import Language
from spacy.tokens import Doc
from wasabi import msg

from ..model.explanation import DocExplanation, ModelExplanation
from ..model.names import escape
from .common import Component, Model, load, reported
from .explanations import (
    contribution_row,
    pair_row,
    render_model,
    render_tokens,
    runner_up,
    strongest,
    strongest_pairs,
    weight_row,
)

WIDTH = 60  # of a column; longer names stick out


def explain(
    model: Model,
    text: Annotated[str, typer.Option(help="Explain the labels of this text instead")] = "",
    component: Component = "",
    n: Annotated[
        int,
        typer.Option(
            "-n", min=1, help="Number of tests, and of labels before, for and against a label"
        ),
    ] = 5,
    html: Annotated[
        Path | None, typer.Option(help="Write a page instead of text", show_default=False)
    ] = None,
) -> None:
    """Explain what a component has learnt, or why the tokens of a text have their labels.

    Of a text: each token's label and the most probable other label, their probabilities, and the
    tests and pairs of labels that speak for and against the label: by how much they raise its
    score above that of the other.
    """
    with reported():
        nlp, pipe = load(model, component)
        if text:
            tokens = pipe.explain_doc(_doc_before(nlp, pipe.name, text))
            if html is None:
                _print_tokens(tokens, n)
                return
            page = render_tokens(tokens, n, title=f"{pipe.name}: {text[:60]}")
        else:
            learnt = pipe.explain(n)
            if html is None:
                _print_model(learnt, pipe.name, n)
                return
            page = render_model(learnt, title=pipe.name)
        html.write_text(page, encoding="utf8")
        msg.good(f"Page is in {html}")


def _doc_before(nlp: Language, name: str, text: str) -> Doc:
    """The Doc of a text as a component gets it."""
    names = nlp.pipe_names
    return nlp(text, disable=names[names.index(name) :])


def _print_model(explanation: ModelExplanation, name: str, n: int) -> None:
    msg.divider(f"{name}: {explanation.n_active} weights")
    shown = strongest_pairs(explanation.transitions, n)
    _print_table(map(pair_row, shown), "llr", "before", "label", "weight")
    n_more = len(explanation.transitions) - len(shown)
    if n_more:
        msg.text(f"{n_more} more pairs of labels: raise -n, or write a page by --html")
    for label in explanation.labels:
        msg.divider(f"{escape(label.label)}: {label.n_active} weights")
        weights = (*label.supporting, *reversed(label.opposing))
        _print_table(map(weight_row, weights), "llr", "test", "before", "weight")


def _print_tokens(explanation: DocExplanation, n: int) -> None:
    for token in explanation.tokens:
        label = f"{escape(token.label)} {token.probability:.4f}"
        msg.divider(f"{escape(token.text)}: {label}{runner_up(token)}")
        rows = map(contribution_row, strongest(token, n))
        _print_table(rows, "lrrr", "what", "label", "other", "for")


def _print_table(rows: Iterable[Sequence[str]], aligns: str, *header: str) -> None:
    """Print rows, if there are any. aligns: "l" or "r", left or right, for each column."""
    rows = list(rows)
    if rows:
        msg.table(rows, header=header, divider=True, aligns=tuple(aligns), max_col=WIDTH)
