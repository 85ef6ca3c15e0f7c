"""`tune`: search hyperparameters, and write the best config."""

import re
import time
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tqdm
import typer
from spacy.util import load_config, load_model_from_config
from wasabi import msg

from ...cli.common import overrides_of, reported, with_folder
from ...errors import Errors, SparseCRFError
from ...progress import Task, report

if TYPE_CHECKING:
    from ...solvers.base import StepReport
    from ..search import EncodedPipeline, Setting, Trial, TunableConfig

_SCHEMES = ("IOB2", "BILUO")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_BUDGET = re.compile(r"(\d+\.?\d*|\.\d+) *([smh])").fullmatch
_COMMA = re.compile(r",(?![^(]*\))")
# Options for settings that some blocks do not have.
_BLOCKS = ("--templates", "templates", "features"), ("--scheme", "scheme", "target")


class OutOfTimeError(Exception):
    """The budget is spent."""


def tune(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config, as for `spacy train`", exists=True)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Config to write")],
    budget: Annotated[str, typer.Option(help="Time to search: 90s, 10m, 1h")] = "10m",
    folds: Annotated[
        int | None, typer.Option(help="Score by cross-validation of the training data")
    ] = None,
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
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file")] = False,
    code: Annotated[
        Path | None, typer.Option("--code", "-c", help="Python file with registered functions")
    ] = None,
) -> None:
    """Search the hyperparameters of a sparse CRF, and write the config of the best.

    Each choice of the others follows a path of l1. Without values, l1 and l2 are the config's, a
    third and three times these; spans have both encodings; min_freq is 1 and 2. Other settings of
    the config are overridden as `spacy train` does: --paths.train train.spacy.
    """
    given = {"--l1": l1, "--l2": l2, "--scheme": scheme}
    given |= {"--templates": templates, "--min-freq": min_freq}
    # Imported here because spaCy's command line takes a second to import.
    from spacy.cli._util import import_code, show_validation_error

    with reported():
        seconds = _seconds(budget)
        if folds is not None and folds < 2:
            raise SparseCRFError(Errors.SC716.format(folds=folds))
        if not within >= 0.0:
            raise SparseCRFError(Errors.SC710.format(within=within))
        if output.exists() and not force:
            raise SparseCRFError(Errors.SC608.format(path=output))
        overrides = overrides_of(ctx)
        import_code(code)
        with show_validation_error(config, hint_fill=False):
            from ..search import TunableConfig, choose

            loaded = load_config(config, overrides=overrides, interpolate=False)
            tunable = TunableConfig(loaded, folds or 0, seed)
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
    end = time.monotonic() + seconds

    def encode(setting: "Setting") -> "list[EncodedPipeline]":
        shown = (f"{key} {value}" for key, value in setting._asdict().items() if value)
        report(f"Encoding corpus: {', '.join(shown)}")
        return tunable.encode(setting, l1s[-1])

    def show_step(step: "StepReport") -> None:
        task.update()
        # The budget does not limit the first trial.
        if trials and time.monotonic() > end:
            raise OutOfTimeError("The budget is spent: not all values are tried")

    def show_error(error: SparseCRFError) -> None:
        msg.warn(f"These settings are left out: {error}")

    msg.divider("Searching hyperparameters")
    try:
        with Task("Training", "iterations") as task:
            for trial in search(values, l1s, encode, show_step, show_error):
                trials.append(trial)
                _echo(_cells(trial, several), with_header=len(trials) == 1)
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
        raise SparseCRFError(Errors.SC714.format(value=text))
    return seconds


# The values to try


def _values_to_try(
    tunable: "TunableConfig", given: dict[str, str | None]
) -> tuple[dict[str, list[Any]], list[float]]:
    """Parse the values of the fields of a setting, the config's own first, and of l1, falling.

    RAISES: SparseCRFError if the component refuses a value.
    """
    own, filled = tunable.setting, tunable.filled
    for option, key, block in _BLOCKS:
        if given[option] is not None and key not in filled[block]:
            raise _refusal(
                option, given[option], f"[components.{tunable.name}.{block}] has no {key}"
            )
    l1s = _values("--l1", given, float, _around(filled["l1"]))
    if not all(isfinite(l1) and l1 > 0.0 for l1 in l1s):
        raise SparseCRFError(Errors.SC702.format(values=l1s))
    schemes: list[str | None] = [own.scheme] if own.scheme is None else [*_SCHEMES]
    values = {
        "templates": _values("--templates", given, str, [own.templates]),
        "scheme": _values("--scheme", given, str, schemes),
        "min_freq": _values("--min-freq", given, int, [1, 2, own.min_freq]),
        "l2": _values("--l2", given, float, _around(own.l2)),
    }
    values = {key: _first(getattr(own, key), found) for key, found in values.items()}
    # Creating a component checks its settings.
    first = own._replace(**{key: found[0] for key, found in values.items()})
    for key, found in values.items():
        for value in found:
            config = tunable.with_values(first._replace(**{key: value}), l1s[0])
            load_model_from_config(config, auto_fill=True)
    return values, sorted(set(l1s), reverse=True)


def _values(
    option: str, given: dict[str, str | None], convert: Callable[[str], Any], default: list[Any]
) -> list[Any]:
    """Split an option at commas outside of parentheses, and convert the values."""
    text = given[option]
    try:
        return default if text is None else [convert(each.strip()) for each in _COMMA.split(text)]
    except ValueError:
        raise _refusal(option, text, "it has no numbers") from None


def _refusal(option: str, value: object, reason: str) -> SparseCRFError:
    return SparseCRFError(Errors.SC715.format(option=option, value=value, reason=reason))


def _around(value: float) -> list[float]:
    return [value, *(float(f"{factor * value:.3g}") for factor in (3, 1 / 3))]


def _first(own: Any, values: list[Any]) -> list[Any]:
    """Return the distinct values, with the config's own first."""
    return sorted(dict.fromkeys(values), key=lambda value: value != own)


# The table


def _cells(trial: "Trial", several: Sequence[str]) -> dict[str, str]:
    """Return the cells of a row, by the names of columns. several: fields that change."""
    return {
        **{key: str(getattr(trial.setting, key)) for key in several},
        "l1": f"{trial.l1:.4g}",
        "score": f"{100 * trial.score:.2f}",
        "weights": f"{trial.n_active:,}",
        "kB": f"{trial.size / 1000:,.1f}",
        "s": f"{trial.seconds:.1f}",
    }


def _echo(cells: dict[str, str], *, with_header: bool) -> None:
    """Print a row of the table."""
    rows = [[*cells], [*cells.values()]] if with_header else [[*cells.values()]]
    with tqdm.tqdm.external_write_mode():
        for row in rows:
            typer.echo("  ".join(f"{cell:>10}" for cell in row))
