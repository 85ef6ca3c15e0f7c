"""Running the experiments, each in a process of its own; those that are done are not run again."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from fnmatch import fnmatchcase
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import srsly
import typer
from bench.options import Quick
from bench.timing import run_process
from wasabi import msg

from .experiments import EXPERIMENTS, Experiment

# A trial has one of each kind.
QUICK = (
    "phonemes-3grm-owlqn",
    "phonemes-1grm-sgd",
    "phonemes-1grm-bcd",
    "phonemes-3grm-owlqn-unigrams",
    "phonemes-1grm-owlqn-l2=0.1",
    "phonemes-5grm-owlqn-by-labels",
    "joint-1grm-owlqn",
    "phonemes-5grm+-owlqn-fold0",
    "ewt-owlqn-unigrams",
)


def chosen(patterns: Sequence[str], quick: bool) -> list[Experiment]:
    """The experiments that patterns name, all for none; of a trial only those of `QUICK`."""
    patterns = patterns or (QUICK if quick else "*")
    return [one for one in EXPERIMENTS if any(fnmatchcase(one.name, p) for p in patterns)]


def is_done(path: Path, experiment: Experiment, quick: bool) -> bool:
    """Whether the figures of the very same experiment are there."""
    if not path.exists():
        return False
    stored: dict[str, Any] = srsly.read_json(path)
    same = srsly.json_dumps(asdict(experiment), sort_keys=True)
    # Settings that there were not yet had their defaults; those that are gone made experiments
    # with other names.
    known = {one.name for one in fields(Experiment)}
    settings = {name: value for name, value in stored["experiment"].items() if name in known}
    then = asdict(Experiment(**settings))
    return stored["quick"] == quick and same == srsly.json_dumps(then, sort_keys=True)


def run_child(one: Experiment, path: Path, directories: Sequence[str], quick: bool) -> None:
    """Run an experiment. RAISES: CalledProcessError with what it wrote."""
    command = [sys.executable, "-m", "lavergne.child", one.name, str(path), *directories]
    run_process([*command, "--quick" if quick else "--full"])


def compile_kernels(experiments: Iterable[Experiment], directories: Sequence[str]) -> None:
    """Run what differs in its kernels on a few words: what is not compiled yet is compiled here."""
    kinds = {
        (one.solver, one.l1 > 0.0, bool(one.schedule), one.observed_only, one.precision): one
        for one in experiments
    }
    with TemporaryDirectory() as directory:
        for one in kinds.values():
            run_child(one, Path(directory) / "unused.json", directories, quick=True)


def main(
    output: Annotated[Path, typer.Argument(help="Directory for the figures, as JSON")],
    directories: Annotated[list[str], typer.Argument(help="Directories of the data, in order")],
    only: Annotated[
        str, typer.Option(help="Names of experiments, * for any text; default: all")
    ] = "",
    quick: Quick = False,
) -> None:
    """Run the experiments that have not been run yet."""
    output.mkdir(parents=True, exist_ok=True)
    wanted = chosen(only.split(), quick)
    if not wanted:
        raise typer.BadParameter(f"No experiment is called {only}.")
    left = [one for one in wanted if not is_done(output / f"{one.name}.json", one, quick)]
    if not quick:
        compile_kernels(left, directories)
    failed = []
    for one in left:
        path = output / f"{one.name}.json"
        unfinished = path.with_suffix(".part")
        try:
            run_child(one, unfinished, directories, quick)
        except CalledProcessError as error:
            # One that needs more memory than there is must not keep others from running.
            failed.append(one.name)
            msg.fail(f"{one.name}:\n{error.output}")
            continue
        unfinished.replace(path)
        found = srsly.read_json(path)
        msg.text(f"{one.name}: {found['errors']['test']:.2f} %, {found['cpu']:.0f} s")
    msg.good(f"{len(wanted) - len(failed)} of {len(wanted)} experiments are in {output}")
    if failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
