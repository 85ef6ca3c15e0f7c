"""`calibrate`: how far probabilities can be relied on, and thresholds for a wanted precision."""

from pathlib import Path
from typing import Annotated

import typer
from spacy.training import Example
from wasabi import msg

from ...cli.common import Component, Data, Model, load, print_table, read, reported, up_to
from ...errors import Errors, SparseCRFError
from ...model.names import escape
from ...pages.rendering import render
from ...pipeline.settings import as_section
from .. import calibration
from ..calibration import Calibration, Reliability


def calibrate(
    model: Model,
    data: Data,
    component: Component = "",
    precision: Annotated[float, typer.Option(help="Requested precision of each label")] = 0.9,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Directory to save to (default: MODEL)")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page too", show_default=False)] = None,
) -> None:
    """Calibrate a component's probabilities on gold annotation.

    Finds a temperature, if one helps, and for entities and spans the threshold of each label for
    the requested precision. Saves both with the pipeline. Do not use training data.
    """
    with reported():
        directory = Path(model) if output is None else output
        if output is None and not directory.is_dir():
            raise SparseCRFError(Errors.SC643.format(model=model))
        nlp, pipe = load(model, component)
        examples = read(nlp, data, "dev_corpus")
        docs = up_to(nlp, pipe.name, (example.predicted for example in examples))
        given = (Example(doc, each.reference) for doc, each in zip(docs, examples, strict=True))
        found = calibration.calibrate(pipe, given, precision)
        own = found.decoding(pipe.settings.decoding)
        thresholds = as_section(own.thresholds)
        block = nlp.get_pipe_config(pipe.name)["decoding"]
        block.update(temperature=own.temperature, thresholds=thresholds)
        nlp.to_disk(directory)
        if html is not None:
            html.write_text(render(found, f"{pipe.name} on {data.name}"), encoding="utf8")
        _print(found)
        msg.good(f"Pipeline is in {directory}")


def _print(found: Calibration) -> None:
    _print_reliability("Reliability as it is", found.before)
    if found.temperature != 1.0:
        _print_reliability(f"Reliability with temperature {found.temperature:.3f}", found.after)
    rows = (
        (
            escape(each.label),
            str(each.n),
            f"{100 * each.right:.2f}",
            f"{each.value:.4f}",
            str(each.n_kept),
            f"{100 * each.right_kept:.2f}" if each.n_kept else "none",
        )
        for each in found.thresholds
    )
    print_table(rows, "lrrrrr", "label", "predicted", "P", "threshold", "left", "P")


def _print_reliability(title: str, found: Reliability) -> None:
    msg.divider(f"{title}: expected calibration error {found.error:.4f}")
    rows = (
        (f"{b.low:.1f}", str(b.n), f"{b.probability:.3f}", f"{b.right:.3f}") for b in found.bins
    )
    print_table(rows, "lrrr", "from", "predicted", "probability", "right")
