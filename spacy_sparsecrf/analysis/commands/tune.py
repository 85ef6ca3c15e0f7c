"""`tune`: search hyperparameters, and write the best config."""

import re
import time
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tqdm
import typer
from spacy.util import load_config, load_model_from_config

from ...cli.common import Code, Force, check_free, overrides_of, reported, with_folder
from ...cli.printing import msg
from ...errors import SparseCRFError, refused_option
from ...progress import Task, report

if TYPE_CHECKING:
    from ...solvers.base import StepReport
    from ..search import EncodedPipeline, Setting, Trial, TunableConfig

_UNITS = {"s": 1, "m": 60, "h": 3600}
_BUDGET = re.compile(r"(\d+(?:\.\d*)?|\.\d+) *([smh])").fullmatch
_COMMA = re.compile(r",(?![^(]*\))")
_NUMBERS: dict[str, Callable[[str], Any]] = {"min_freq": int, "l1": float, "l2": float}


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
    scheme: Annotated[str | None, typer.Option(help="Encodings of spans: IOB2,BILUO")] = None,
    templates: Annotated[
        str | None,
        typer.Option(help="Sets of templates: config,@tags_large,config+@clusters(brown)"),
    ] = None,
    min_freq: Annotated[str | None, typer.Option(help="Values of min_freq: 1,2")] = None,
    within: Annotated[
        float, typer.Option(help="Choose the smallest model at most so many points below the best")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the folds")] = 0,
    force: Force = False,
    code: Code = None,
) -> None:
    """Search the hyperparameters of a sparse CRF, and write the config of the best.

    Each choice of the others follows a path of l1. Without values, l1 and l2 are the config's, a
    third and three times these; spans have both encodings; min_freq is 1 and 2. Other settings of
    the config are overridden as `spacy train` does: --paths.train train.spacy.
    """
    # A change is made to the best setting so far, in this order.
    given = {"templates": templates, "scheme": scheme, "min_freq": min_freq, "l2": l2, "l1": l1}
    # Imported here because spaCy's command line takes a second to import.
    from spacy.cli._util import import_code, show_validation_error

    with reported():
        seconds = _seconds(budget)
        if folds == 1:
            raise refused_option("folds", folds, "at least 2 are needed")
        if not within >= 0.0:
            raise refused_option("within", within, "it is not a number of points >= 0")
        check_free(output, force)
        overrides = overrides_of(ctx)
        import_code(code)
        with show_validation_error(config, hint_fill=False):
            from ..search import TunableConfig, choose

            loaded = load_config(config, overrides=overrides, interpolate=False)
            tunable = TunableConfig(loaded, folds, seed)
            best = choose(_search(tunable, given, seconds), within / 100)
        tunable.with_values(best.setting, best.l1).to_disk(with_folder(output))
        rule = f" within {within:g} points" if within else ""
        msg.good(f"Saved the config of the best score{rule}: {100 * best.score:.2f}", output)


def _search(
    tunable: "TunableConfig", given: dict[str, str | None], seconds: float
) -> "list[Trial]":
    """Search until all values are tried, the budget is spent, or the user interrupts.

    given: values to try. RETURNS: the trials, which are also printed.
    """
    from ..search import search

    values, l1s = _values_to_try(tunable, given)
    several = [key for key, found in values.items() if len(found) > 1]
    trials: list[Trial] = []
    n = len(l1s) * (1 + sum(len(found) - 1 for found in values.values()))
    start = time.monotonic()

    def encode(setting: "Setting") -> "list[EncodedPipeline]":
        report("Encoding corpus")
        return tunable.encode(setting, l1s[-1])

    def show_step(step: "StepReport") -> None:
        used = time.monotonic() - start
        task.set_postfix_str(f"trial {len(trials) + 1} of {n}, {used:.0f} of {seconds:g} s")
        task.update()
        # The budget does not limit the first trial.
        if trials and used > seconds:
            raise OutOfTimeError("The budget is spent: not all values are tried")

    def show_error(error: SparseCRFError) -> None:
        msg.warn(f"These settings are left out: {error}")

    msg.divider(f"Searching hyperparameters: {n} trials, at most {seconds:g} s")
    try:
        with Task("Training", "iterations") as task:
            for trial in search(values, l1s, encode, show_step, show_error):
                trials.append(trial)
                _echo(trials, n, time.monotonic() - start, several)
    except (OutOfTimeError, KeyboardInterrupt) as error:
        if not trials:
            raise
        msg.warn(str(error) or "Interrupted: not all values are tried")
    return trials


def _seconds(text: str) -> float:
    """Parse a duration such as 90s, 10m or 1h. RAISES: SparseCRFError."""
    found = _BUDGET(text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not seconds > 0.0:
        raise refused_option("budget", text, "it is not a time such as 90s, 10m or 1.5h")
    return seconds


# The values to try


def _values_to_try(
    tunable: "TunableConfig", given: dict[str, str | None]
) -> tuple[dict[str, list[Any]], list[float]]:
    """Parse the values of the fields of a setting, the config's own first, and of l1, falling.

    RAISES: SparseCRFError if the component refuses a value.
    """
    own, filled = tunable.setting, tunable.filled
    for key, block in ("templates", "features"), ("scheme", "target"):
        if given[key] is not None and key not in filled[block]:
            reason = f"[components.{tunable.name}.{block}] has no {key}"
            raise refused_option(key, given[key], reason)
    defaults: dict[str, list[Any]] = {
        "templates": [own.templates],
        "scheme": [own.scheme] if own.scheme is None else ["IOB2", "BILUO"],
        "min_freq": [1, 2, own.min_freq],
        "l2": _around(own.l2),
        "l1": _around(filled["l1"]),
    }
    values = {key: _values(key, text, defaults[key]) for key, text in given.items()}
    l1s = values.pop("l1")
    if not all(isfinite(l1) and l1 > 0.0 for l1 in l1s):
        raise refused_option("l1", l1s, "give finite numbers above 0: --l1 2,1,0.5")
    # The config's own value comes first.
    for key, found in values.items():
        values[key] = sorted(dict.fromkeys(found), key=getattr(own, key).__ne__)
    # Creating a component checks its settings.
    first = own._replace(**{key: found[0] for key, found in values.items()})
    for key, found in values.items():
        for value in found:
            config = tunable.with_values(first._replace(**{key: value}), l1s[0])
            load_model_from_config(config, auto_fill=True)
    return values, sorted(set(l1s), reverse=True)


def _values(key: str, text: str | None, default: list[Any]) -> list[Any]:
    """Split an option at commas outside of parentheses, and convert the values."""
    try:
        if text is None:
            return default
        return [_NUMBERS.get(key, str)(each.strip()) for each in _COMMA.split(text)]
    except ValueError:
        raise refused_option(key, text, "it has no numbers, separated by commas") from None


def _around(value: float) -> list[float]:
    return [value, *(float(f"{factor * value:.3g}") for factor in (3, 1 / 3))]


# The table


def _echo(trials: "list[Trial]", n: int, used: float, several: list[str]) -> None:
    """Print the last trial as a row of the table, and its setting before the first row of it.

    n: number of all trials; used: seconds of the budget; several: fields that change.
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
        if several and (is_first or trial.setting != trials[-2].setting):
            msg.text(", ".join(f"{key} {getattr(trial.setting, key)}" for key in several))
        for row in (cells.keys(), cells.values()) if is_first else (cells.values(),):
            typer.echo("  ".join(f"{cell:>9}" for cell in row))
