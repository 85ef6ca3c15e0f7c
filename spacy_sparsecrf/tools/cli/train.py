"""`train`: spaCy's trainer, with short messages of errors."""

import inspect
import logging
import re
import sys
from collections.abc import Iterator
from configparser import InterpolationError
from contextlib import nullcontext
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

from spacy.language import DEFAULT_CONFIG
from spacy.util import load_config, logger, registry
from thinc.api import Config, ConfigValidationError
from typer import Argument, Context, Option

from ...errors import Errors, SparseCRFError, nearest, unknown_setting
from .common import Code, overrides_of, reported
from .printing import msg

# spaCy's errors of a factory, registry, registered function and pipe, and the keys that name them.
_NOT_FOUND = re.compile(
    r"(?s)\[(E002|E892|E893|E956)\].*? '([^']*)'(?:.*?registry '(\w+)')?.*Available \w+: (.*)"
)
_KEYS = {"E002": "factory", "E892": "registry", "E956": "[nlp] pipeline"}
_SECTION = re.compile(r"^\[([\w-]+)", re.MULTILINE)


def train(
    ctx: Context,
    path: Annotated[Path, Argument(metavar="CONFIG", exists=True, allow_dash=True)],
    output: Annotated[Path | None, Option("--output", "-o", help="Directory to write")] = None,
    code: Code = None,
    verbose: Annotated[bool, Option("--verbose", "-V", help="Show details, tracebacks")] = False,
    gpu_id: Annotated[int, Option("--gpu-id", "-g", help="GPU of other components")] = -1,
) -> None:
    """Train a pipeline as `spacy train` does, but print errors without a traceback.

    Override settings of the config as in `spacy train`: --paths.train train.spacy.
    """
    # Imported here because spaCy's command line takes a second to import.
    from spacy.cli._util import import_code, setup_gpu
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train as run_loop

    from ...pipeline.example_reader import check_path
    from ...pipeline.spacy_loop import READER

    logger.setLevel(logging.DEBUG if verbose else logger.level)
    config = Config()
    with nullcontext() if verbose else reported():
        import_code(code)
        if gpu_id >= 0:
            setup_gpu(gpu_id)
        else:
            msg.info("Using CPU")  # not by setup_gpu, which recommends a GPU if there is one
        # Not spaCy's command, which prints errors of a config with all settings of a block.
        try:
            config = load_config(path, overrides=overrides_of(ctx), interpolate=False)
            _check_keys(config)
            msg.divider("Initializing pipeline")
            # Also of the development corpus, which training reads late.
            for corpus in config.interpolate().get("corpora", {}).values():
                is_read = isinstance(corpus, dict) and corpus.get("@readers") == READER
                if is_read and corpus.get("path"):
                    check_path(Path(corpus["path"]))
            nlp = init_nlp(config, use_gpu=gpu_id)
        except (ConfigValidationError, InterpolationError) as error:
            raise SparseCRFError(_explain(path, config, error)) from error
        except ValueError as error:
            raise SparseCRFError(_unknown_name(str(error)) or error) from error
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
        run_loop(nlp, output, use_gpu=gpu_id, stdout=sys.stdout, stderr=sys.stderr)


def _check_keys(config: Config) -> None:
    """Raise an error for a key that looks like another one: spaCy would ignore it."""
    for block in ("nlp", "training", "initialize"):
        keys = DEFAULT_CONFIG[block].keys()
        for key in config.get(block, {}).keys() - keys:
            if nearest(key, keys):
                raise unknown_setting(block, key, keys)


def _unknown_name(text: str) -> str:
    """Describe a name that spaCy does not find, by spaCy's message; "" if that is another one."""
    if not (match := _NOT_FOUND.match(text)):
        return ""
    code, name, registry, listed = match.groups()
    names = listed.split(", ") + [*entry_points(group="spacy_factories").names] * (code == "E002")
    key = f"@{registry}" if registry else _KEYS[code]
    values = {"key": key, "name": name, "nearest": nearest(name, names)}
    return Errors.SC663.format(**values, known=", ".join(names))


def _explain(path: Path, config: Config, error: Any) -> str:
    """Describe the first wrong setting: its block, value and valid values or the nearest key.

    error: ConfigValidationError or InterpolationError; the former has, for a block, the settings
    including defaults.
    """
    wrong: Any = getattr(error, "config", None)
    wrong = wrong if isinstance(wrong, dict) else {}
    kind = next((key for key in wrong if key.startswith("@")), "")
    *path_of_block, key = (kind and error.errors and error.errors[0].get("loc")) or [""]
    if key not in wrong:
        shown = str(error.from_error(error, show_config=False) if wrong else error).strip()
        # A section without its parent: the name of one of the two is wrong.
        for name in _SECTION.findall(path.read_text("utf8")) if "Section '" in shown else ():
            if name not in DEFAULT_CONFIG and (near := nearest(name, DEFAULT_CONFIG)):
                shown = f"There is no section [{name}]. {near}"
        return Errors.SC661.format(reason=shown.strip())
    # spaCy reports the factory of a component, not its name.
    same = (
        name
        for name, block in _blocks(config, "")
        if key in block and wrong[kind] in block.values()
    )
    block, value = next(same, ".".join(map(str, path_of_block))), wrong[key]
    parameters = dict(inspect.signature(registry.get(kind[1:], wrong[kind])).parameters)
    if key in parameters:
        expected = f"a value of type {inspect.formatannotation(parameters[key].annotation)}"
        return Errors.SC205.format(block=block, key=key, value=value, expected=expected)
    names = [name for name in parameters if name not in ("nlp", "name")]
    return str(unknown_setting(block, key, names))


def _blocks(config: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all blocks inside a block of a config, and their names."""
    yield name, config
    for key, value in config.items():
        if isinstance(value, dict):
            yield from _blocks(value, f"{name}.{key}" if name else key)
