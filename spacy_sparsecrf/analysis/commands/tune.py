"""`tune`: search hyperparameters, and write the best config."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from confection import Config
from spacy.util import load_model_from_config
from wasabi import msg

from ...cli.common import overridden, print_table
from ...errors import Errors, SparseCRFError
from ...progress import progress, report
from .path import echo, show_step

if TYPE_CHECKING:
    from ..tuning import Grid, Trial, TunableConfig

_SCHEMES = ("IOB2", "BILUO")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_BUDGET = re.compile(r"(\d+\.?\d*|\.\d+) *([smh])").fullmatch
_COMMA = re.compile(r",(?![^(]*\))")
# Options for settings that some blocks do not have.
_BLOCKS = ("--templates", "templates", "features"), ("--scheme", "scheme", "target")


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
    seed: Annotated[int, typer.Option(min=0, help="Of the folds")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file")] = False,
    code: Annotated[
        Path | None, typer.Option("--code", "-c", help="Python file with registered functions")
    ] = None,
) -> None:
    """Search the hyperparameters of a sparse CRF, and write the config of the best.

    Without values, l1 and l2 are the config's, a third and three times these; spans have both
    encodings; min_freq is 1 and 2. Other settings of the config are overridden as `spacy train`
    does: --paths.train train.spacy --paths.dev dev.spacy.
    """
    given = {"--l1": l1, "--l2": l2, "--scheme": scheme}
    given |= {"--templates": templates, "--min-freq": min_freq}
    try:
        seconds = _seconds(budget)
        if folds is not None and folds < 2:
            raise SparseCRFError(Errors.SC716.format(folds=folds))
        if output.exists() and not force:
            raise SparseCRFError(Errors.SC608.format(path=output))
        with overridden(ctx, config, code) as loaded:
            found = _search(loaded, given, seconds, folds or 0, seed)
        output.parent.mkdir(parents=True, exist_ok=True)
        found.to_disk(output)
        msg.good("Saved the config with the best score", output)
    except (OSError, ValueError) as error:
        msg.fail(str(error), exits=1)


def _search(
    config: Config, given: dict[str, str | None], seconds: float, folds: int, seed: int
) -> Config:
    """Search, and print the trials. given: values to try. RETURNS: the best config."""
    from ..tuning import Encoding, HyperparameterSearch, Trial, TrialPipeline, TunableConfig

    tunable = TunableConfig(config, folds, seed)
    grid = _grid(tunable, given)
    shown = [key for key, values in zip(Encoding._fields, grid[:3], strict=True) if len(values) > 1]

    def encode(encoding: Encoding) -> TrialPipeline:
        named = (f"{key} {value}" for key, value in encoding._asdict().items() if value)
        report(f"Encoding corpus: {', '.join(named)}")
        configs = tunable.of_trials(encoding, grid.l1s[-1], grid.l2s[0])
        return TrialPipeline(configs, tunable.name)

    def add(trial: Trial) -> None:
        echo(_cells(trial, shown), with_header=not search.trials[1:])

    msg.divider("Searching hyperparameters")
    with progress("Training", "iterations") as task:
        search = HyperparameterSearch(
            encode, grid, seconds, partial(show_step, task), add, msg.warn
        )
        search.run()
    _print_front(search.trials, search.best, shown)
    return tunable.tuned(search.best)


def _seconds(text: str) -> float:
    """Parse a duration such as 90s, 10m or 1h. RAISES: SparseCRFError."""
    found = _BUDGET(text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not seconds > 0.0:
        raise SparseCRFError(Errors.SC714.format(value=text))
    return seconds


# The values to try


def _grid(tunable: "TunableConfig", given: dict[str, str | None]) -> "Grid":
    """Parse the values to try, with the config's own first.

    RAISES: SparseCRFError if the component refuses a value.
    """
    from ..regularization_path import check_l1s
    from ..tuning import Grid

    own, filled = tunable.encoding, tunable.filled
    for option, key, block in _BLOCKS:
        if given[option] is not None and key not in filled[block]:
            raise _refusal(
                option, given[option], f"[components.{tunable.name}.{block}] has no {key}"
            )
    schemes: list[str | None] = [own.scheme] if own.scheme is None else [*_SCHEMES]
    l1s = check_l1s(_values("--l1", given, float, _around(filled["l1"])))
    grid = Grid(
        _first(own.templates, _values("--templates", given, str, [own.templates])),
        _first(own.scheme, _values("--scheme", given, str, schemes)),
        _first(own.min_freq, _values("--min-freq", given, int, [1, 2, own.min_freq])),
        l1s,
        _first(filled["l2"], _values("--l2", given, float, _around(filled["l2"]))),
        filled["l1"] if filled["l1"] in l1s else l1s[len(l1s) // 2],
        (given["--l1"] is None, given["--l2"] is None),
    )
    # Creating a component checks its settings.
    changed = [(grid.first._replace(**change), grid.l2s[0]) for change in grid.changes]
    for encoding, l2 in changed + [(grid.first, l2) for l2 in grid.l2s]:
        load_model_from_config(tunable.with_values(encoding, grid.l1, l2), auto_fill=True)
    return grid


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
    from ..tuning import rounded

    return [value, rounded(3 * value), rounded(value / 3)]


def _first(own: Any, values: list[Any]) -> list[Any]:
    """Return the distinct values, with the config's own first."""
    return sorted(dict.fromkeys(values), key=lambda value: value != own)


# The tables


def _cells(trial: "Trial", shown: Sequence[str]) -> dict[str, str]:
    """Return the cells of a row, by the names of columns. shown: fields of the encoding."""
    found = trial.measured
    return {
        **{key: str(getattr(trial.encoding, key)) for key in shown},
        "l1": f"{trial.l1:.4g}",
        "l2": f"{trial.l2:.4g}",
        "step": "path" if trial.step is None else str(trial.step),
        "score": f"{100 * found.score:.2f}",
        "weights": f"{found.n_active:,}",
        "kB": f"{found.size / 1000:,.1f}",
        "s": f"{found.seconds:.1f}",
    }


def _print_front(trials: "Sequence[Trial]", best: "Trial", shown: Sequence[str]) -> None:
    """Print the best trial, and the trials with the best score for their size or seconds."""
    from ..tuning import front

    small = front(trials, lambda trial: trial.measured.size)
    quick = front(trials, lambda trial: trial.measured.seconds)
    rows = []
    for trial in sorted({best, *small, *quick}, key=lambda each: each.rank, reverse=True):
        marks = {"step": trial is best, "kB": trial in small, "s": trial in quick}
        cells = _cells(trial, shown).items()
        rows.append([f"{value}{' *' if marks.get(key) else ''}" for key, value in cells])
    header = _cells(best, shown)
    msg.divider("Trade-off of score against size and seconds")
    print_table(rows, "r" * len(header), *header)
    msg.text("* after kB, s: the best score for these; after a step: the best config")
