"""`explain`: show the strongest weights of a model, or explain the labels of a text's tokens."""

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated

import typer

from ...crf.model.names import escape
from ...errors import refused_option
from ..analysis.explanation import (
    START,
    Contribution,
    DocExplanation,
    FeatureWeight,
    ModelExplanation,
)
from ..pages.rendering import N_SHOWN
from .common import Component, Force, Html, Model, check_free, load, reported, up_to
from .printing import msg, print_table, write_page


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
    html: Html = None,
    force: Force = False,
) -> None:
    """Explain a component's weights, or the labels of the tokens of a text.

    With --text: each token's label and the most probable other label, their probabilities, and the
    features and pairs of labels for and against the label, with their contribution to the
    difference of the two scores.
    """
    with reported():
        check_free(force, html)
        if text is not None and not text.strip():
            raise refused_option("text", text, "it has no words")
        nlp, pipe = load(model, component)
        shown: DocExplanation | ModelExplanation
        if text is not None:
            [doc] = up_to(nlp, pipe.name, [nlp.make_doc(text)])
            shown = pipe.explain_doc(doc, forced=True)
        else:
            shown = pipe.explain(n)
        if html is not None:
            write_page(html, shown, pipe.name, nlp=nlp, n=n, pipeline=model)
        elif isinstance(shown, DocExplanation):
            _print_tokens(shown, n)
        else:
            _print_model(shown, pipe.name, n)


def _print_model(explanation: ModelExplanation, name: str, n: int) -> None:
    msg.divider(f"{name}: {explanation.n_active} weights")
    strongest = strongest_pairs(explanation.transitions, n)
    pairs = ((before(p.previous), escape(p.label), signed(p.weight)) for p in strongest)
    print_table(pairs, ("before", "label", "weight"), "llr")
    for label in explanation.labels:
        msg.divider(f"{escape(label.label)}: {label.n_active} weights")
        rows = ((w.feature, before(w.previous), signed(w.weight)) for w in label.strongest)
        print_table(rows, ("feature", "before", "weight"), "llr")


def _print_tokens(explanation: DocExplanation, n: int) -> None:
    for token in filter(attrgetter("label"), explanation.tokens):  # no blanks
        labels = f"{escape(token.label)} {token.probability:.4f}"
        if token.runner_up is not None:
            labels += f", not {escape(token.runner_up)} {token.runner_up_probability:.4f}"
        msg.divider(f"{escape(token.text)}: {labels}")
        rows = map(contribution_row, token.strongest(n))
        print_table(rows, ("what", "label", "other", "for"), "lrrr")


def contribution_row(part: Contribution) -> tuple[str, str, str, str]:
    """Return the name of a contribution, its weights and their difference."""
    return part.name, signed(part.weight), signed(part.rival), signed(part.difference)


def strongest_pairs(transitions: Sequence[FeatureWeight], n: int) -> list[FeatureWeight]:
    """Return for each label the n strongest transitions to it with positive and negative weight.

    transitions: descending by weight. RETURNS: a selection in the same order.
    """
    strongest: set[FeatureWeight] = set()
    for sign, ordered in ((1.0, transitions), (-1.0, reversed(transitions))):
        counts: Counter[str] = Counter()
        for pair in ordered:
            if sign * pair.weight > 0.0 and counts[pair.label] < n:
                counts[pair.label] += 1
                strongest.add(pair)
    return [pair for pair in transitions if pair in strongest]


def before(label: str | None) -> str:
    """Return a label, or the name of the start label, for display; "" for none."""
    return "" if label is None else escape(label) or START


def signed(value: float) -> str:
    """Return a weight as text with its sign."""
    return f"{value:+.4f}"
