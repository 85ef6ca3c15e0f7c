"""Run the code blocks of pages in order: commands, Python, files and configs."""

import contextlib
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from spacy.schemas import ConfigSchemaTraining
from spacy.util import load_config, load_model_from_config, registry
from thinc.api import Config

from ..conftest import CONFIGS
from .commands import run, run_spacy

FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$|^    \$ ([^\n]*)$", flags=re.M | re.S)
# Commands that tests do not run: they install packages, or need a server or a separate machine.
ELSEWHERE = ("pip", "docker", "mkdocs", "pytest", "python3", "export", "source")
# Programs whose commands are run where they are installed.
PROGRAMS = ("node", "java", "ruby")
# Packages without which Python blocks that import them are not run.
OPTIONAL = {"eli5", "fastapi", "presidio_analyzer", "spacy_llm"}
# Output that differs between runs, and colour codes.
SPEED = re.compile(r"^SPEED.*$|^real.*$|\bin [\d.]+ seconds", flags=re.M)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
WIDEST = 80
CONFIG_OF = {"ner": "ner", "chunks": "spans", "fields": "strings"}


class Block(NamedTuple):
    """A block of a page: its language, its file name or "", and its text."""

    language: str
    title: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page that have a language, and indented single commands."""
    found = []
    for language, info, text, command in FENCE.findall(page.read_text(encoding="utf-8")):
        [title] = re.findall(r'title="([^"]+)"', info) or [""]
        if command:
            found.append(Block("bash", "", command))
        elif language:
            found.append(Block(language, title, text))
    return found


def too_wide(page: Path) -> list[str]:
    """Return lines of commands and outputs that a terminal of 80 columns would break."""
    blocks = [block for block in blocks_of(page) if block.language in ("bash", "console", "text")]
    lines = [line for block in blocks for line in block.text.splitlines()]
    return [line for line in lines if len(line) > WIDEST]


def run_page(page: Path, names: dict[str, Any]) -> list[str]:
    """Run the blocks of a page in the current directory. RETURNS: the commands that were run.

    names: initial Python names. A `text` block is the expected output of the block before. A block
    with a title is a file, which exists from there on.
    """
    commands: list[str] = []
    printed: str | None = ""  # None: the block was not run
    lacks = False  # a block was not run, whose names others may use
    for block in blocks_of(page):
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            try:
                printed = run_python(block.text, page.name, names)
            except NameError:
                if not lacks:
                    raise
                printed = None
            lacks |= printed is None
        elif block.language in ("bash", "console"):
            for line, shown in commands_of(block):
                program = shlex.split(line)[0]
                if program in ELSEWHERE or (program in PROGRAMS and not shutil.which(program)):
                    continue
                commands.append(line)
                output = run_command(line)
                assert block.language == "bash" or alike(shown, output), f"{line}\n{output}"
        elif block.language == "text" and printed is not None:
            assert alike(block.text, printed), f"{block.text}\n{printed}"
        elif block.language == "ini":
            check_config(block.text)
    return commands


def run_python(text: str, name: str, names: dict[str, Any]) -> str | None:
    """Run Python code. RETURNS: its output, or None if it needs an optional package."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(compile(text, name, "exec"), names)
        except ModuleNotFoundError as error:
            if error.name not in OPTIONAL:
                raise
            return None
    return printed.getvalue()


def commands_of(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a block, each with the output that is shown."""
    text = block.text.replace("\\\n", " ")
    if block.language == "bash":
        return [(line, "") for line in text.splitlines() if line and not line.startswith("#")]
    return re.findall(r"^\$ ([^\n]*)\n((?:(?!\$ )[^\n]*\n)*)", text, flags=re.M)


def run_command(line: str) -> str:
    """Run a command of ours, of spaCy, `head` or a program. RETURNS: output, unless redirected."""
    line, _, target = line.partition(" > ")
    line, _, source = line.partition(" < ")
    words = shlex.split(line, comments=True)
    if words[0] in PROGRAMS:
        with Path(source).open(encoding="utf-8") as given:
            return subprocess.run(
                words, stdin=given, check=True, capture_output=True, encoding="utf-8"
            ).stdout
    if words[0] == "head":
        lines = Path(words[2]).read_text(encoding="utf-8").splitlines(keepends=True)
        return "".join(lines[: -int(words[1])])
    if words[0] == "mkdir":
        return Path(words[1]).mkdir() or ""
    if words[0] == "cd":
        sys.path.insert(0, str(Path(words[1]).absolute()))  # as Python has its directory
        return os.chdir(words[1]) or ""
    if words[:2] == ["python", "-c"]:
        return run_python(words[2].strip(), "-c", {}) or ""
    assert words[:2] == ["python", "-m"], line
    # A terminal shows warnings, a file does not have them.
    shown = "stdout" if target else "output"
    own = {"spacy_sparsecrf": lambda *rest: getattr(run(*rest), shown), "spacy": run_spacy}
    if words[3] == "train" and not target:
        return _trained(words, lambda: COLOUR.sub("", own[words[2]](*words[3:])))
    output = COLOUR.sub("", own[words[2]](*words[3:]))
    if target:
        Path(target).write_text(output, encoding="utf-8")
        return ""
    return output


@cache
def _trainings() -> tuple[tempfile.TemporaryDirectory[str], dict[str, str]]:
    """Return a directory for trained pipelines, and outputs of trainings by their digests."""
    return tempfile.TemporaryDirectory(), {}


def _trained(words: list[str], train: Callable[[], str]) -> str:
    """Train, or copy what the same command wrote from equal files. RETURNS: the output."""
    folder, outputs = _trainings()
    config, line = Path(words[4]).read_text(encoding="utf-8"), " ".join(words[2:])
    target = words[words.index("--output") + 1] if "--output" in words else ""
    digest = hashlib.sha256(line.replace(f"--output {target}", "").encode())
    for path in sorted(Path().rglob("*")):
        top = path.parts[0]
        if path.is_file() and top != target and (top in line or top in config):
            digest.update(f"{path}\n".encode() + path.read_bytes())
    kept = Path(folder.name, digest.hexdigest())
    if kept.name not in outputs:
        output = train()
        if not target:
            return output
        shutil.copytree(target, kept)
        outputs[kept.name] = output.replace(target, "\0")
    elif target:
        shutil.copytree(kept, target, dirs_exist_ok=True)
    return outputs[kept.name].replace("\0", target)


def alike(shown: str, output: str) -> bool:
    """Return whether texts agree up to blanks and last digits of numbers; `...` skips lines.

    Numbers agree to two units of the last digit shown, and whole numbers below 100 are equal.
    """
    pattern, found = (SPEED.sub("", COLOUR.sub("", text)) for text in (shown, output))
    parts = [_words(part) for part in re.split(r"^\.\.\.$", pattern, flags=re.M)]
    words, place = _words(found), 0
    for i, part in enumerate(parts):
        places = range(place, len(words) - len(part) + 1) if i else [0]
        here = [at for at in places if all(map(_same, part, words[at:]))]
        if not here:
            return False
        # The last part must match the end.
        place = (here[-1] if i == len(parts) - 1 else here[0]) + len(part)
    return place == len(words)


def _words(text: str) -> list[str]:
    return [word for word in text.split() if set(word) != {"-"} and set(word) != {"="}]


def _same(shown: str, found: str) -> bool:
    if NUMBER.split(shown) != NUMBER.split(found):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(found), strict=True)
    return all(abs(float(a) - float(b)) <= _unit(a) for a, b in pairs)


def _unit(shown: str) -> float:
    """Return by how much a number may differ from a number as it is shown."""
    mantissa, _, exponent = shown.partition("e")
    decimals = len(mantissa.partition(".")[2])
    if not decimals and abs(float(shown)) < 100:
        return 0.0
    # A hair is added for the rounding of decimals, and for numbers with all their digits.
    return 2.0 * 10.0 ** (int(exponent or 0) - decimals) * (1 + 1e-9) + 1e-9 * abs(float(shown))


def check_config(text: str) -> None:
    """Check that a config fragment fits a shipped config, and is valid there."""
    if not text.lstrip().startswith("["):
        header = '[components.crf.features]\n@crf_features = "spacy_sparsecrf.Templates.v1"'
        text = f"{header}\n{text}"
    headers = re.findall(r"^\[([\w.]+)\]$", text, flags=re.M)
    paths = [header.split(".") for header in headers]
    around = {".".join(path[:n]) for path in paths for n in range(1, len(path))}
    missing = "".join(f"[{header}]\n" for header in sorted(around - set(headers)))
    fragment = Config().from_str(missing + text, interpolate=False)
    components = {**fragment.get("components", {})}
    name = next((CONFIG_OF[name] for name in components if name in CONFIG_OF), "tagger")
    overrides = {"paths.train": "train.spacy", "paths.dev": "dev.spacy"}
    base = load_config(CONFIGS / f"{name}.cfg", overrides=overrides)
    nlp = load_model_from_config(base.merge(fragment), auto_fill=True)
    config = nlp.config.interpolate()
    registry.resolve(config["training"], schema=ConfigSchemaTraining)
    registry.resolve({"corpora": config["corpora"]})
