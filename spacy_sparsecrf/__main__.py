"""`python -m spacy_sparsecrf COMMAND`."""

import typer

from .analysis.commands.calibrate import calibrate
from .analysis.commands.error_report import errors
from .analysis.commands.explain import explain
from .analysis.commands.tune import tune
from .analysis.commands.weights import dump, patch
from .cli.config import config, example
from .cli.debug import debug
from .cli.train import train
from .cli.warmup import warmup
from .interop.commands.convert import convert
from .interop.commands.export import export_model
from .interop.commands.import_model import import_model
from .interop.commands.label import label

app = typer.Typer(
    name="spacy_sparsecrf",
    no_args_is_help=True,
    add_completion=False,
)
for command in (calibrate, config, convert, example, explain, errors, dump, label, patch, warmup):
    app.command()(command)
app.command("import")(import_model)
app.command("export")(export_model)
# Other options are settings of the config.
with_settings = {"allow_extra_args": True, "ignore_unknown_options": True}
app.command(context_settings=with_settings)(debug)
app.command(context_settings=with_settings)(train)
app.command(context_settings=with_settings)(tune)


@app.callback()
def main() -> None:
    """Sparse CRFs for spaCy."""


if __name__ == "__main__":
    app(prog_name="python -m spacy_sparsecrf")
