"""`python -m spacy_sparsecrf COMMAND`."""

import typer

from .cli.path import path
from .cli.warmup import warmup

app = typer.Typer(
    name="spacy_sparsecrf",
    help="Sparse CRFs for spaCy.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(warmup)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(path)


@app.callback()
def main() -> None:
    """Sparse CRFs for spaCy."""


if __name__ == "__main__":
    app(prog_name="python -m spacy_sparsecrf")
