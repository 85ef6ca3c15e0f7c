"""`python -m spacy_sparsecrf COMMAND`."""

import inspect
import os
import re

import typer

from .tools.cli.calibrate import calibrate
from .tools.cli.config import config, example
from .tools.cli.convert import convert
from .tools.cli.debug import debug
from .tools.cli.distil import distil
from .tools.cli.error_report import errors
from .tools.cli.explain import explain
from .tools.cli.export import export_model
from .tools.cli.import_model import import_model
from .tools.cli.label import label
from .tools.cli.printing import without_escapes
from .tools.cli.train import train
from .tools.cli.tune import tune
from .tools.cli.warmup import warmup
from .tools.cli.weights import dump, patch

app = typer.Typer(name="spacy_sparsecrf", no_args_is_help=True, add_completion=False)
GROUPS = {
    "Prepare": (example, convert, distil, config, debug),
    "Train": (train, tune),
    "Understand": (explain, errors, calibrate, dump, patch),
    "Deploy": (warmup, label, import_model, export_model),
}
# Other options are settings of the config.
with_settings = {"allow_extra_args": True, "ignore_unknown_options": True}
for panel, commands in GROUPS.items():
    for command in commands:
        # Typer keeps line breaks inside of paragraphs.
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(command) or "")
        name = command.__name__.removesuffix("_model")
        options = with_settings if command in (debug, train, tune) else {}
        app.command(name, help=text, rich_help_panel=panel, context_settings=options)(command)
if os.environ.get("NO_COLOR"):
    os.environ["TERM"] = "dumb"  # Rich writes no escape codes there, not even for bold text


@app.callback()
def main(ctx: typer.Context) -> None:
    """Prepare data, train, understand and deploy sparse CRFs for spaCy."""
    without_escapes(ctx)


if __name__ == "__main__":
    app(prog_name="python -m spacy_sparsecrf")
