"""`explain`: show the strongest weights of a model, or explain the labels of a text's tokens."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ...cli.common import Component, Model, load, print_table, reported, up_to, write_page
from ...errors import Errors, SparseCRFError
from ...model.names import escape
from ...pages.rendering import N_SHOWN
from ..explanation import DocExplanation, ModelExplanation
from .tables import before, contribution_row, signed, strongest_pairs


def explain(
    model: Model,
    text: Annotated[
        str | None, typer.Option(help="Explain the labels of this text instead", show_default=False)
    ] = None,
    component: Component = "",
    n: Annotated[
        int,
        typer.Option(
            "-n", min=1, help="Number of features, and of previous labels, for and against a label"
        ),
    ] = N_SHOWN,
    html: Annotated[
        Path | None, typer.Option(help="Write a page instead of text", show_default=False)
    ] = None,
) -> None:
    """Explain a component's weights, or the labels of the tokens of a text.

    With --text: each token's label and the most probable other label, their probabilities, and the
    features and pairs of labels for and against the label, with their contribution to the
    difference of the two scores.
    """
    with reported():
        if text is not None and not text.strip():
            raise SparseCRFError(Errors.SC646.format(text=text))
        nlp, pipe = load(model, component)
        shown: DocExplanation | ModelExplanation
        if text is not None:
            [doc] = up_to(nlp, pipe.name, [nlp.make_doc(text)])
            shown = pipe.explain_doc(doc, forced=True)
        else:
            shown = pipe.explain(n)
        if html is not None:
            write_page(html, shown, pipe.name, n)
            msg.good(f"Page is in {html}")
        elif isinstance(shown, DocExplanation):
            _print_tokens(shown, n)
        else:
            _print_model(shown, pipe.name, n)


def _print_model(explanation: ModelExplanation, name: str, n: int) -> None:
    msg.divider(f"{name}: {explanation.n_active} weights")
    shown = strongest_pairs(explanation.transitions, n)
    pairs = ((before(p.previous), escape(p.label), signed(p.weight)) for p in shown)
    print_table(pairs, "llr", "before", "label", "weight")
    n_more = len(explanation.transitions) - len(shown)
    if n_more:
        msg.text(f"{n_more} more pairs of labels: raise -n, or write a page by --html")
    for label in explanation.labels:
        msg.divider(f"{escape(label.label)}: {label.n_active} weights")
        rows = (
            (w.feature, "" if w.previous is None else before(w.previous), signed(w.weight))
            for w in label.strongest
        )
        print_table(rows, "llr", "feature", "before", "weight")


def _print_tokens(explanation: DocExplanation, n: int) -> None:
    for token in explanation.tokens:
        own = f"{escape(token.label)} {token.probability:.4f}"
        if token.runner_up is not None:
            own += f", not {escape(token.runner_up)} {token.runner_up_probability:.4f}"
        msg.divider(f"{escape(token.text)}: {own}")
        rows = map(contribution_row, token.strongest(n))
        print_table(rows, "lrrr", "what", "label", "other", "for")
