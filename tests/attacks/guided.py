"""Coverage-guided inputs, with the inputs and checks of `fuzz`.

    pip install atheris
    cd project
    python -m reliability.attacks guided --target columns --seconds 3600

Atheris measures branch coverage of this package except compiled functions, and keeps inputs that
reach a new branch. Inputs are mutated as in `fuzz`, or byte by byte.
"""

import hashlib
import json
import logging
import os
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

_ROOT = Path(__file__).parents[2]
_COMPILED = re.compile(r"^@(kernel|inlined)\b", re.MULTILINE)
# CPU seconds of a process: atheris leaks memory for each mutated input.
_SLICE = 300.0
_COUNTS = re.compile(r"#\d+\t(\w+) +cov: (\d+) ft: (\d+) corp: (\d+)")


def _compiled() -> list[str]:
    """Return the modules with compiled functions, which cannot be instrumented."""
    found = []
    for path in (_ROOT / "spacy_sparsecrf").rglob("*.py"):
        if "kernels" in path.parts or _COMPILED.search(path.read_text(encoding="utf8")):
            name = ".".join(path.relative_to(_ROOT).with_suffix("").parts)
            found.append(name.removesuffix(".__init__"))
    return found


def _child(target: str, folder: Path, seconds: float, blind: bool) -> None:
    """Try inputs until the processor seconds are used up; does not return."""
    import atheris

    with atheris.instrument_imports(include=["spacy_sparsecrf"], exclude=_compiled()):
        from .fuzz import SECONDS, attempt, is_harm
        from .inputs import Inputs, kept

        warnings.simplefilter("ignore")
        logging.disable()
        inputs, found = Inputs(target), Counter[str]()
        corpus = folder / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        if not blind:
            for data in inputs.first() + kept(target):
                (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)

        for data in inputs.first():  # Imports modules, and compiles kernels.
            attempt(inputs.kind, *inputs.of(data))
        end = time.process_time() + seconds

        def try_one(data: bytes) -> None:
            began = time.process_time()
            if began > end:
                (folder / "found.json").write_text(json.dumps(found))
                os._exit(0)
            result = attempt(inputs.kind, *inputs.of(data))
            if time.process_time() - began > SECONDS:
                result = "crashed: it takes too long"
            if is_harm(result) and found[result] == 0:
                name = hashlib.sha1(result[:60].encode(errors="replace")).hexdigest()
                (folder / f"harm-{name}").write_bytes(data)
                sys.stderr.write(f"{result}\n")
            found[result] += 1

        def change(data: bytes, most: int, seed: int) -> bytes:
            if blind:
                return inputs.drawn(seed)[:most]
            return inputs.changed(data, seed, lambda body: atheris.Mutate(body, most - 1))[:most]

        options = ["-max_len=20000", "-len_control=0", "-timeout=120", "-rss_limit_mb=4096"]
        options += ["-report_slow_units=120", f"-artifact_prefix={folder}/harm-"]
        atheris.Setup([target, *options, str(corpus)], try_one, custom_mutator=change)
        atheris.Fuzz()


def main(
    target: Annotated[str, typer.Option(help="What is tried")],
    seconds: Annotated[float, typer.Option(help="Of a processor")] = 3600.0,
    blind: Annotated[bool, typer.Option("--blind", help="Change sound inputs only")] = False,
    keeps: Annotated[bool, typer.Option("--keep", help="Put inputs into the tests")] = False,
    output: Annotated[Path, typer.Option(help="Folder of inputs and findings")] = Path(
        "metrics/reliability/guided"
    ),
) -> None:
    """Try inputs, and report their number and the number of branches that they reached."""
    from .fuzz import CHECKED

    folder = (output / f"{target}{'-blind' * blind}").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    command, n, left, code = [sys.executable, "-m", __name__, target, str(folder)], 0, seconds, 0
    while left > 0.0 and not code:
        own = [*command, str(min(left, _SLICE)), str(int(blind))]
        with (folder / "log").open("w+") as log:
            code = subprocess.run(own, cwd=_ROOT, stderr=log, env=os.environ | CHECKED).returncode
            log.seek(0)
            counts = _COUNTS.findall(log.read())
        n += sum(json.loads((folder / "found.json").read_text()).values()) if code == 0 else 0
        left -= _SLICE
    branches, _, kept = counts[-1][1:] if counts else (0, 0, 0)
    msg.text(f"{target}: {n:,} inputs, {kept} kept, {branches} branches, in {seconds:.0f} s")
    if keeps:
        from .inputs import keep

        keep(target, [path.read_bytes() for path in (folder / "corpus").iterdir()])
    if code or any(folder.glob("harm-*")):
        msg.fail(f"inputs did harm, see {folder}", exits=1)


if __name__ == "__main__":
    name, folder, seconds, blind = sys.argv[1:]
    _child(name, Path(folder), float(seconds), blind == "1")
