"""`calibrate`: report the reliability of probabilities, and find a temperature and thresholds."""

from pathlib import Path
from typing import Annotated

import typer
from spacy.language import Language

from ...crf.model.names import escape
from ...errors import Warnings, warn
from ...pipeline.settings import DecodingSettings, as_section
from ...pipeline.spacy_loop import block_of
from ..analysis import calibration
from ..analysis.calibration import Calibration, Reliability
from ..pages.rendering import percent
from .common import (
    Component,
    Data,
    Force,
    Html,
    Model,
    annotated_gold,
    check_free,
    load,
    reported,
    with_folder,
)
from .printing import msg, print_table, write_page


def calibrate(
    model: Model,
    data: Data,
    component: Component = "",
    precision: Annotated[
        float | None, typer.Option(help="Set thresholds that reach this precision of each label")
    ] = None,
    best_f: Annotated[
        float | None, typer.Option(help="Set thresholds with the best F_beta, for this beta")
    ] = None,
    outside: Annotated[
        float | None,
        typer.Option(
            help="Set the weight of the outside label with the best F_beta, for this beta"
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the calibrated pipeline here")
    ] = None,
    html: Html = None,
    force: Force = False,
) -> None:
    """Compare a component's probabilities with gold annotation; calibrate them on request.

    Reports the expected calibration error, a temperature if one helps, and precision, recall and F1
    of each label of entities and spans. --outside first finds a weight of the outside label;
    --precision or --best-f then finds a threshold for each label. Nothing is saved without
    --output, which may be MODEL with --force. Do not use training data.
    """
    with reported():
        check_free(force, output, html)
        nlp, pipe = load(model, component)
        training = block_of(nlp, "train_corpus").get("path")
        if training is not None and Path(training).resolve() == data.resolve():
            warn(Warnings.SCW640.format(data=data, model=model))
        report = calibration.calibrate(
            pipe,
            annotated_gold(nlp, pipe.name, data),
            precision=precision,
            beta=best_f,
            outside_beta=outside,
        )
        if html is not None:
            title = f"{pipe.name} on {data.name}"
            write_page(html, report, title, nlp=nlp, pipeline=model, data=data)
        _print(report)
        if output is None:
            msg.info("Nothing was saved. --output DIR saves the calibrated pipeline.")
        else:
            _save(nlp, pipe.name, report.decoding(pipe.settings.decoding), output)


def _save(nlp: Language, name: str, decoding: DecodingSettings, directory: Path) -> None:
    """Save a pipeline with calibrated decoding settings, and print how to restore the old ones."""
    block = nlp.get_pipe_config(name)["decoding"]
    changes = {
        "temperature": decoding.temperature,
        "outside_weight": decoding.outside_weight,
        "thresholds": as_section(decoding.thresholds),
    }
    saved = {key: block[key] for key in changes}
    block.update(changes)
    nlp.to_disk(with_folder(directory))
    msg.good(f"Pipeline is in {directory}")
    undo = ", ".join(f"{key} = {value}" for key, value in saved.items())
    msg.text(f"To undo: [components.{name}.decoding] {undo} in {directory / 'config.cfg'}")


def _print(report: Calibration) -> None:
    _print_reliability("Reliability", report.before)
    if report.temperature != 1.0:
        _print_reliability(f"Reliability with temperature {report.temperature:.3f}", report.after)
    if report.outside_weight:
        msg.text(f"Weight of the outside label: {report.outside_weight:g}")
    all_spans, likely_spans = [], []
    for row in (report.overall, *report.thresholds) if report.thresholds else ():
        label, value = escape(row.label) or "all", f"{row.value:.4f}" if row.label else ""
        all_spans.append([label, str(row.n_gold), str(row.n), *map(percent, row.before)])
        likely_spans.append([label, value, str(row.n_kept), *map(percent, row.after)])
    print_table(all_spans, ("label", "gold", "predicted", "P", "R", "F"), "lrrrrr")
    if report.has_thresholds:
        print_table(likely_spans, ("label", "threshold", "kept", "P", "R", "F"), "lrrrrr")


def _print_reliability(title: str, reliability: Reliability) -> None:
    msg.divider(f"{title}: expected calibration error {reliability.error:.4f}")
    bins = (reliability.overall, *reliability.bins)
    rows = ((b.interval, str(b.n), f"{b.probability:.3f}", f"{b.right:.3f}") for b in bins)
    header = ("probability", "predictions", "mean probability", "share correct")
    print_table(rows, header, "lrrr")
