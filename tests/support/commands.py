"""Run our commands, and spaCy's, in this process."""

from typing import Any

import typer
from spacy.cli import app as spacy_app
from typer.testing import CliRunner

from spacy_sparsecrf.__main__ import app as own_app


def run(*arguments: object, code: int = 0, app: typer.Typer = own_app) -> Any:
    """Run `python -m spacy_sparsecrf ...`, which must exit with a code and no other exception."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def run_spacy(*arguments: object, code: int = 0) -> str:
    """Run `python -m spacy ...`; return its output."""
    output: str = run(*arguments, code=code, app=spacy_app).output
    return output
