"""The modules that commands of project.yml run: each takes the arguments that it is given."""

import importlib
import pkgutil
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner
from weasel.util.config import load_project_config

PROJECT = Path(__file__).resolve().parents[2] / "project"
PACKAGES = "bench", "study", "lavergne", "lattices", "reports"


def scripts() -> dict[str, list[str]]:
    """Arguments of the modules that commands run, by module; each is run by one."""
    found = {}
    for command in load_project_config(PROJECT)["commands"]:
        for words in map(shlex.split, command["script"]):
            if words[:2] == ["python", "-m"] and words[2].split(".")[0] in PACKAGES:
                found[words[2]] = words[3:]
    return found


def modules() -> list[str]:
    """All modules of the packages."""
    return [
        f"{package}.{found.name}"
        for package in PACKAGES
        for found in pkgutil.iter_modules([str(PROJECT / package)])
    ]


def app_of(module: str) -> typer.Typer:
    """What `typer.run` makes of a module's function `main`."""
    app = typer.Typer()
    app.command()(importlib.import_module(module).main)
    return app


@pytest.mark.parametrize(("module", "arguments"), scripts().items(), ids=scripts())
def test_commands_run_modules_that_take_their_arguments(module: str, arguments: list[str]) -> None:
    typer.main.get_command(app_of(module)).make_context(module, arguments)


def test_commands_run_modules_that_there_are() -> None:
    assert {"bench.data", "bench.gradient", "bench.report"} <= set(scripts()) <= set(modules())


@pytest.mark.parametrize("module", modules())
def test_modules_can_be_imported_and_tell_their_arguments(module: str) -> None:
    if hasattr(importlib.import_module(module), "main"):
        found = CliRunner().invoke(app_of(module), ["--help"])
        assert found.exit_code == 0 and "Usage" in found.output
