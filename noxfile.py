#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Tasks of CONTRIBUTING.md, each in a fresh environment: `nox`, `nox -s tests -- tests/kernels`."""

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests as README does."""
    session.install("-e", ".[test]")
    session.run("pytest", *(session.posargs or ["-n", "2"]))


@nox.session
def lint(session: nox.Session) -> None:
    """Run the linters of `.ci/run`."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("python", "docs/prose.py")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site."""
    session.install("-e", ".[docs]")
    session.run("mkdocs", "build", "--strict")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build sdist and wheel, with the time of the last commit; fail if they have placeholders."""
    session.install("build", "twine")
    epoch = session.run("git", "log", "-1", "--format=%ct", external=True, silent=True)
    session.run("python", "-m", "build", env={"SOURCE_DATE_EPOCH": str(epoch).strip()})
    session.run("twine", "check", "--strict", "dist/*")
    if ".example/" in Path("spacy_sparsecrf/errors.py").read_text(encoding="utf8"):
        session.error("Set DOCUMENTATION and REPOSITORY in errors.py before you publish dist/")


if __name__ == "__main__":
    nox.main()
