"""`config` and `example`: write one of the package's configs, or example data."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Annotated

import srsly
import typer

from ...atomic_write import write_files
from ...errors import DOCUMENTATION, Errors, SparseCRFError, nearest
from .common import Force, check_free, reported, with_folder
from .printing import LINE, msg
from .solver_configs import VARIANTS, with_solver

_INSIDE = Path(__file__).parents[1] / "configs"
# In a checkout, the configs are next to the package.
_FOLDER = _INSIDE if _INSIDE.is_dir() else _INSIDE.parents[2] / "configs"
_EXAMPLES = sorted(_INSIDE.with_name("examples").glob("*"))


def config(
    name: Annotated[str, typer.Argument(help="Name of a config (default: list all)")] = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write")] = None,
    solver: Annotated[
        str, typer.Option(help="Solver of a tagger, with penalties that suit it: SAG, SGDL1, ...")
    ] = "",
    lang: Annotated[str, typer.Option(help="Language code of the pipeline (default: en)")] = "",
    types: Annotated[
        list[str] | None,
        typer.Option(help="Types of spans that do not overlap, for a component: PER,ORG (repeat)"),
    ] = None,
    no_tags: Annotated[
        bool, typer.Option("--no-tags", help="Spans of texts without tags, as of annotation tools")
    ] = False,
    force: Force = False,
) -> None:
    """Write a config for `spacy train`: of a tagger, of entities, of spans, or of a solver."""
    with reported():
        if not name:
            if output or solver or lang or types or no_tags or force:
                raise typer.BadParameter("name a config, such as ner, before its options")
            for shipped, text in shipped_configs().items():
                line = f"{shipped:<27}{text.splitlines()[0].lstrip('# ')}"
                typer.echo(fill(line, LINE, subsequent_indent=" " * 27))
            return
        text = make_config(name, solver, lang)
        if (types or no_tags) and name != "spans":
            option = "--types" if types else "--no-tags"
            raise typer.BadParameter(f"{option} belongs to the config spans")
        if no_tags:
            text = re.sub(r'(#.*\n)*annotations = \["tag"\]', "annotations = []", text)
            text = text.replace('"@chunks"', '"@entities"')  # reads no tags
        if types:
            text = with_types(text, [listed.split(",") for listed in types])
        if output is None:
            typer.echo(text, nl=False)
            return
        check_free(force, output)
        with_folder(output).write_text(text, encoding="utf8")
        msg.good(f"Wrote config {name!r} to {output}")


def example(name: str, force: Force = False) -> None:
    """Write example data into this directory: addresses, tickets (JSONL), ingredients (columns)."""
    with reported():
        names = {path: path.stem.split("-")[0] for path in _EXAMPLES}
        if name not in names.values():
            raise _unknown("example", name, dict.fromkeys(names.values()))
        paths = [path for path in _EXAMPLES if names[path] == name]
        check_free(force, *(Path(path.name) for path in paths))
        contents = {path.name: path.read_bytes() for path in paths}
        write_files(Path.cwd(), contents, "the working directory")
        for file in contents:
            msg.good(f"Wrote example {name!r} to {file}")


def _unknown(kind: str, name: str, known: Iterable[str]) -> SparseCRFError:
    values = {"nearest": nearest(name, known), "known": ", ".join(known)}
    return SparseCRFError(Errors.SC607.format(kind=kind, name=name, **values))


def shipped_configs() -> dict[str, str]:
    """Return the texts of all configs by name; solver configs as `tagger --solver NAME`.

    Pages of docs/ are named by their address.
    """
    texts = {file.stem: file.read_text(encoding="utf8") for file in _FOLDER.glob("*.cfg")}
    page, address = r"\bdocs/([\w-]+)\.md\b", rf"{DOCUMENTATION}/\1/"
    configs = {name: re.sub(page, address, text) for name, text in texts.items()}
    variants = {
        f"{variant.base} --solver {solver}": with_solver(configs[variant.base], solver)
        for solver, variant in VARIANTS.items()
    }
    return dict(sorted(configs.items())) | variants


def make_config(name: str, solver: str = "", lang: str = "") -> str:
    """Return the text of a config.

    name: see `shipped_configs`; solver: one of `VARIANTS`, or "" for the config's own; case is
    ignored; lang: code of a language, or "" for "en".
    RAISES: SparseCRFError for an unknown name or solver, ImportError for an unknown language.
    """
    configs = shipped_configs()
    wanted = f"{name} --solver {solver}" if solver else name
    text = {key.lower(): config for key, config in configs.items()}.get(wanted.lower())
    if text is None:
        raise _unknown("config", wanted, configs)
    if not lang:
        return text
    from spacy.util import get_lang_class

    # Chinese, Japanese, Korean, Thai and Vietnamese have special tokenizers.
    tokenizer = get_lang_class(lang).Defaults.config.get("nlp", {}).get("tokenizer", {})
    if tokenizer:
        lines = "".join(f"{key} = {srsly.json_dumps(value)}\n" for key, value in tokenizer.items())
        text = text.replace('@tokenizers = "spacy.Tokenizer.v1"\n', lines, 1)
    return re.sub(r'^lang = "en"$', f'lang = "{lang}"', text, count=1, flags=re.MULTILINE)


def with_types(text: str, types: Sequence[Sequence[str]]) -> str:
    """Return the text of the config `spans` with a component for each set of types."""
    blocks = re.compile(
        r"(\[components\.chunks\]\n(?:.|\n)*?)(?=\[corpora\])"
        r"|(\[initialize\.components\.chunks\]\n(?:.+\n)+\n)"
    )
    names = [f"chunks_{number}" for number in range(1, len(types) + 1)]

    def repeated(block: re.Match[str]) -> str:
        return "".join(
            block[0]
            .replace("components.chunks", f"components.{name}")
            .replace("types = []", f"types = {srsly.json_dumps([*of_name])}")
            for name, of_name in zip(names, types, strict=True)
        )

    listed = ", ".join(f'"{name}"' for name in names)
    return blocks.sub(repeated, text).replace('"chunks"]', f"{listed}]")
