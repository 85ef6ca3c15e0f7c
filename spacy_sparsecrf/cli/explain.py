"""`explain`: what a model has learnt, and why tokens have their labels."""

from pathlib import Path
from typing import Annotated

import typer
from spacy.language import Language
from spacy.tokens import Doc
from wasabi import msg

from ..explanation import DocExplanation, LabelExplanation, ModelExplanation
from ..names import escape
from .common import Component, Model, load, reported
from .html import render
from .model_html import render_model
from .shown import boundary, contribution_row, runner_up, signed, strongest, weight_row

WIDTH = 60  # of a column; longer names stick out


def explain(
    model: Model,
    text: Annotated[str, typer.Option(help="Explain the labels of this text instead")] = "",
    component: Component = "",
    n: Annotated[
        int, typer.Option("-n", min=1, help="Number of tests for, and against, a label")
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
            page = render(tokens, n, title=f"{pipe.name}: {text[:60]}")
        else:
            learnt = pipe.explain(n)
            if html is None:
                _print_model(learnt, pipe.name)
                return
            page = render_model(learnt, title=pipe.name)
        html.write_text(page, encoding="utf8")
        msg.good(f"Page is in {html}")


def _doc_before(nlp: Language, name: str, text: str) -> Doc:
    """The Doc of a text as a component gets it."""
    names = nlp.pipe_names
    return nlp(text, disable=names[names.index(name) :])


def _print_model(explanation: ModelExplanation, name: str) -> None:
    msg.divider(f"{name}: {explanation.n_active} weights")
    if explanation.transitions:
        rows = [
            (boundary(t.previous), escape(t.label), signed(t.weight))
            for t in explanation.transitions
        ]
        msg.table(rows, header=("before", "label", "weight"), divider=True, aligns=("l", "l", "r"))
    for label in explanation.labels:
        _print_label(label)


def _print_label(label: LabelExplanation) -> None:
    msg.divider(f"{escape(label.label)}: {label.n_active} weights")
    rows = [weight_row(weight) for weight in (*label.supporting, *reversed(label.opposing))]
    if rows:
        header = ("test", "before", "weight")
        msg.table(rows, header=header, divider=True, aligns=("l", "l", "r"), max_col=WIDTH)


def _print_tokens(explanation: DocExplanation, n: int) -> None:
    for token in explanation.tokens:
        label = f"{escape(token.label)} {token.probability:.4f}"
        msg.divider(f"{escape(token.text)}: {label}{runner_up(token)}")
        rows = [contribution_row(c) for c in strongest(token, n)]
        if rows:
            header = ("what", "label", "other", "for")
            msg.table(rows, header=header, divider=True, aligns=("l", "r", "r", "r"), max_col=WIDTH)
