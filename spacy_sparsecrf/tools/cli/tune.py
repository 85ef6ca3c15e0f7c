"""`tune`: search the penalty, and write the best config."""

import re
import time
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tqdm
import typer
from spacy.util import load_config, load_model_from_config

from ...errors import SparseCRFError, refused_option
from ...progress import Task, report
from .common import Code, Force, check_free, overrides_of, reported, with_folder
from .printing import msg

if TYPE_CHECKING:
    from ...crf.solvers.solver import StepReport
    from ..analysis.search import Trial, TunableConfig

_UNITS = {"s": 1, "m": 60, "h": 3600}
_BUDGET = re.compile(r"(\d+(?:\.\d*)?|\.\d+) *([smh])").fullmatch


class OutOfTimeError(Exception):
    """The budget is spent."""


def tune(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config, as for `spacy train`", exists=True)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Config to write")],
    budget: Annotated[str, typer.Option(help="Time to search: 90s, 10m, 1h")] = "10m",
    folds: Annotated[
        int, typer.Option(min=0, help="Score by cross-validation of the training data (default: 0)")
    ] = 0,
    l1: Annotated[str | None, typer.Option(help="Values of l1: 1,0.3,0.1")] = None,
    l2: Annotated[str | None, typer.Option(help="Values of l2: 0.3,1")] = None,
    within: Annotated[
        float, typer.Option(help="Choose the smallest model at most so many points below the best")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the folds")] = 0,
    force: Force = False,
    code: Code = None,
) -> None:
    """Search the penalty of a sparse CRF, and write the config of the best.

    Each l2 follows a path of l1. Without values, l1 and l2 are the config's, a third and three
    times these. Other settings of the config are overridden as `spacy train` does:
    --paths.train train.spacy.
    """
    # Imported here because spaCy's command line takes a second to import.
    from spacy.cli._util import import_code, show_validation_error

    with reported():
        seconds = _seconds(budget)
        if folds == 1:
            raise refused_option("folds", folds, "at least 2 are needed")
        if not within >= 0.0:
            raise refused_option("within", within, "it is not a number of points >= 0")
        check_free(force, output)
        overrides = overrides_of(ctx)
        import_code(code)
        with show_validation_error(config, hint_fill=False):
            from ..analysis.search import TunableConfig, choose

            loaded = load_config(config, overrides=overrides, interpolate=False)
            tunable = TunableConfig(loaded, folds, seed)
            l1s, l2s = _path(tunable, l1), _l2s(tunable, l2)
            for value in l2s:
                # Creating a component checks its settings.
                load_model_from_config(tunable.with_penalty(l1s[0], value), auto_fill=True)
            best = choose(_search(tunable, l1s, l2s, seconds), within / 100)
        tunable.with_penalty(best.l1, best.l2).to_disk(with_folder(output))
        rule = f" within {within:g} points" if within else ""
        msg.good(f"Saved the config of the best score{rule}: {100 * best.score:.2f}", output)


def _search(
    tunable: "TunableConfig", l1s: list[float], l2s: list[float], seconds: float
) -> "list[Trial]":
    """Search until all values are tried, the budget is spent, or the user interrupts.

    RETURNS: the trials, which are also printed.
    """
    from ..analysis.search import search

    trials: list[Trial] = []
    n = len(l1s) * len(l2s)
    start = time.monotonic()

    def show_step(step: "StepReport") -> None:
        used = time.monotonic() - start
        task.set_postfix_str(f"trial {len(trials) + 1} of {n}, {used:.0f} of {seconds:g} s")
        task.update()
        # The budget does not limit the first trial.
        if trials and used > seconds:
            raise OutOfTimeError("The budget is spent: not all values are tried")

    def show_error(error: SparseCRFError) -> None:
        msg.warn(f"This value of l2 is left out: {error}")

    msg.divider(f"Searching penalties: {n} trials, at most {seconds:g} s")
    try:
        with Task("Training", "iterations") as task:
            report("Encoding corpus")
            pipelines = tunable.encode(l1s[-1], l2s[0])
            for trial in search(l1s, l2s, pipelines, on_step=show_step, on_error=show_error):
                trials.append(trial)
                _echo(trials, n, time.monotonic() - start, shows_l2=len(l2s) > 1)
    except (OutOfTimeError, KeyboardInterrupt) as error:
        if not trials:
            raise
        msg.warn(str(error) or "Interrupted: not all values are tried")
    return trials


def _seconds(text: str) -> float:
    """Parse a duration such as 90s, 10m or 1h. RAISES: SparseCRFError."""
    duration = _BUDGET(text.strip())
    seconds = float(duration[1]) * _UNITS[duration[2]] if duration else 0.0
    if not seconds > 0.0:
        raise refused_option("budget", text, "it is not a time such as 90s, 10m or 1.5h")
    return seconds


# The values to try


def _path(tunable: "TunableConfig", text: str | None) -> list[float]:
    """Return the values of l1, falling. RAISES: SparseCRFError unless they are above 0."""
    l1s = _values("l1", text, tunable.filled["l1"])
    if not all(isfinite(l1) and l1 > 0.0 for l1 in l1s):
        raise refused_option("l1", l1s, "give finite numbers above 0: --l1 2,1,0.5")
    return sorted(set(l1s), reverse=True)


def _l2s(tunable: "TunableConfig", text: str | None) -> list[float]:
    """Return the values of l2, the config's own first."""
    of_config = tunable.filled["l2"]
    return sorted(dict.fromkeys(_values("l2", text, of_config)), key=of_config.__ne__)


def _values(key: str, text: str | None, of_config: float) -> list[float]:
    """Return the numbers of an option; without, those around the config's own."""
    if text is None:
        return [of_config, *(float(f"{factor * of_config:.3g}") for factor in (3, 1 / 3))]
    try:
        return [float(number.strip()) for number in text.split(",")]
    except ValueError:
        raise refused_option(key, text, "it has no numbers, separated by commas") from None


# The table


def _echo(trials: "list[Trial]", n: int, used: float, *, shows_l2: bool) -> None:
    """Print the last trial as a row of the table.

    n: number of all trials; used: seconds of the budget; shows_l2: whether to print l2 above its
    first row.
    """
    trial, is_first = trials[-1], len(trials) == 1
    cells = {
        "trial": f"{len(trials)}/{n}",
        "used": f"{used:.0f} s",
        "l1": f"{trial.l1:.4g}",
        "score": f"{100 * trial.score:.2f}",
        "weights": f"{trial.n_active:,}",
        "kB": f"{trial.size / 1000:,.1f}",
        "s": f"{trial.seconds:.1f}",
    }
    with tqdm.tqdm.external_write_mode():
        if shows_l2 and (is_first or trial.l2 != trials[-2].l2):
            msg.text(f"l2 {trial.l2}")
        for row in (cells.keys(), cells.values()) if is_first else (cells.values(),):
            typer.echo("  ".join(f"{cell:>9}" for cell in row))
