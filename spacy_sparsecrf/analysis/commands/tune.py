"""`tune`: search hyperparameters, and write the config of the best."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from confection import Config
from spacy.util import load_model_from_config
from wasabi import msg

from ...cli.common import overridden, print_table
from ...errors import Errors, SparseCRFError
from ...features.defaults import is_set
from ...progress import progress, report
from .path import echo, show_step

if TYPE_CHECKING:
    from ..tuning import Encoding, Grid, Trial, TunableConfig

ValueT = TypeVar("ValueT")

OWN = "config"  # names the config's own templates
_SCHEMES = ("IOB2", "BILUO")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_BUDGET = re.compile(r"(\d+\.?\d*|\.\d+) *([smh])").fullmatch
_EXAMPLES = {"--templates": f"{OWN},@tags_large", "--scheme": ",".join(_SCHEMES)}


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
        typer.Option(help=f"Sets of templates: {OWN},@tags_large,{OWN}+@clusters(brown)"),
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
    except SparseCRFError as error:
        msg.fail(str(error), exits=1)


def _search(
    config: Config, given: dict[str, str | None], seconds: float, folds: int, seed: int
) -> Config:
    """Search, and print the trials. given: values to try. RETURNS: the best config."""
    from ..tuning import Search, TrialPipeline, TunableConfig

    tunable = TunableConfig(config, folds)
    names, grid = _grid(tunable, given)
    table = _Table(names, grid)

    def encode(encoding: "Encoding") -> TrialPipeline:
        named = (f"{key} {value}" for key, value in table.named(encoding).items())
        report(f"Encoding corpus: {', '.join(named) or 'of the config'}")
        own = tunable.of_trials(encoding, grid.l1s[-1], grid.l2s[0])
        return TrialPipeline(own, tunable.name, folds, seed)

    msg.divider("Searching hyperparameters")
    with progress("Training", "iterations") as shown:
        search = Search(encode, grid, seconds, partial(show_step, shown), table.add, msg.warn)
        search.run()
    table.print_front(search.trials, search.best)
    return tunable.tuned(search.best)


def _seconds(text: str) -> float:
    """Read a time. RAISES: SparseCRFError."""
    found = _BUDGET(text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not seconds > 0.0:
        raise SparseCRFError(Errors.SC714.format(value=text))
    return seconds


# The values to try


def _grid(
    tunable: "TunableConfig", given: dict[str, str | None]
) -> tuple[dict[tuple[str, ...] | None, str], "Grid"]:
    """Read the values to try, the config's own first.

    RETURNS: names of sets of templates, and the grid. RAISES: SparseCRFError for values that the
    component refuses.
    """
    from ..regularization_path import check_l1s
    from ..tuning import Grid

    own, filled = tunable.encoding, tunable.filled
    sets = _template_sets(own.templates, given["--templates"])
    schemes: Sequence[str | None] = [None] if own.scheme is None else _SCHEMES
    if given["--scheme"] is not None:
        if own.scheme is None:
            raise _refusal("--scheme", given["--scheme"], "the target has no scheme")
        schemes = given["--scheme"].split(",")
    l1s = _values("--l1", given["--l1"], float) or _around(filled["l1"])
    l2s = _values("--l2", given["--l2"], float) or _around(filled["l2"])
    min_freqs = _values("--min-freq", given["--min-freq"], int) or [1, 2, own.min_freq]
    l1s = check_l1s(l1s)
    grid = Grid(
        _first(own.templates, sets),
        _first(own.scheme, schemes),
        _first(own.min_freq, min_freqs),
        l1s,
        _first(filled["l2"], l2s),
        filled["l1"] if filled["l1"] in l1s else l1s[len(l1s) // 2],
        (given["--l1"] is None, given["--l2"] is None),
    )
    _check(tunable, grid)
    return sets, grid


def _check(tunable: "TunableConfig", grid: "Grid") -> None:
    """Create the component with each value. RAISES: SparseCRFError."""
    from ..tuning import Encoding

    first = Encoding(grid.templates[0], grid.schemes[0], grid.min_freqs[0])
    for key, values in zip(Encoding._fields, grid[:3], strict=True):
        for value in values:
            own = first._replace(**{key: value})
            load_model_from_config(tunable.with_values(own, grid.l1, grid.l2s[0]), auto_fill=True)
    for l2 in grid.l2s:
        load_model_from_config(tunable.with_values(first, grid.l1, l2), auto_fill=True)


def _template_sets(
    own: tuple[str, ...] | None, text: str | None
) -> dict[tuple[str, ...] | None, str]:
    """Read names of sets of templates, joined by "+"."""
    if own is None:
        if text is not None:
            raise _refusal("--templates", text, "the features have no templates")
        return {None: OWN}
    found: dict[tuple[str, ...] | None, str] = {}
    for name in (OWN if text is None else text).split(","):
        parts = [part.strip() for part in name.split("+")]
        for part in parts:
            if part != OWN and not is_set(part):
                raise _refusal("--templates", text, f"{part!r} is neither {OWN!r} nor a set")
        several = (own if part == OWN else (part,) for part in parts)
        found[tuple(each for part in several for each in part)] = name.strip()
    return found


def _values(option: str, text: str | None, convert: Callable[[str], ValueT]) -> list[ValueT] | None:
    """Read numbers separated by commas."""
    if text is None:
        return None
    try:
        return [convert(value) for value in text.split(",")]
    except ValueError:
        raise _refusal(option, text, "these are not numbers") from None


def _refusal(option: str, value: object, reason: str) -> SparseCRFError:
    example = _EXAMPLES.get(option, "1,2")
    message = Errors.SC715.format(option=option, value=value, reason=reason, example=example)
    return SparseCRFError(message)


def _around(value: float) -> list[float]:
    from ..tuning import rounded

    return [value, rounded(3 * value), rounded(value / 3)]


def _first(own: ValueT, values: Sequence[ValueT] | dict[ValueT, Any]) -> list[ValueT]:
    """The distinct values, with the config's own in front."""
    return sorted(dict.fromkeys(values), key=lambda value: value != own)


# The tables


class _Table:
    """The tables of trials. names: of sets of templates; grid: of which columns are shown."""

    def __init__(self, names: dict[tuple[str, ...] | None, str], grid: "Grid") -> None:
        self._names, self._n = names, 0
        self._varied = [len(values) > 1 for values in grid[:3]]

    def named(self, encoding: "Encoding") -> dict[str, str]:
        """Return the values of an encoding that are searched."""
        name = self._names[encoding.templates]
        values = name, encoding.scheme or "", str(encoding.min_freq)
        named = zip(encoding._fields, values, self._varied, strict=True)
        return {key: value for key, value, is_varied in named if is_varied}

    def cells(self, trial: "Trial") -> dict[str, str]:
        """Return a row, by the names of columns."""
        found = trial.measured
        return {
            **self.named(trial.encoding),
            "l1": f"{trial.l1:.4g}",
            "l2": f"{trial.l2:.4g}",
            "step": "path" if trial.step is None else str(trial.step),
            "score": f"{100 * found.score:.2f}",
            "weights": f"{found.n_active:,}",
            "kB": f"{found.size / 1000:,.1f}",
            "s": f"{found.seconds:.1f}",
        }

    def add(self, trial: "Trial") -> None:
        """Print a row of the log."""
        self._n += 1
        echo(self.cells(trial), with_header=self._n == 1)

    def print_front(self, trials: "Sequence[Trial]", best: "Trial") -> None:
        """Print the best trial, and those with the best score for their size or seconds."""
        from ..tuning import front

        msg.divider("Trade-off of score against size and seconds")
        small = front(trials, lambda trial: trial.measured.size)
        quick = front(trials, lambda trial: trial.measured.seconds)
        rows = []
        for trial in sorted({best, *small, *quick}, key=lambda each: -each.measured.score):
            marks = {"step": trial is best, "kB": trial in small, "s": trial in quick}
            cells = self.cells(trial).items()
            rows.append([f"{value}{' *' if marks.get(key) else ''}" for key, value in cells])
        header = self.cells(best)
        print_table(rows, "r" * len(header), *header)
        msg.text("* best score for this size, or for these seconds; at a step: the best config")
