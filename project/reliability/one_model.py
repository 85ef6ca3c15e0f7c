"""Train the same models with several CPUs, threads and versions, and compare their weights.

    python -m reliability.one_model -e python3.12 -e numba==0.60.* -e "python3.10 numpy==1.26.*"

prints a SHA-256 of the model and of the exact objectives for each case, and "one hash" or the
groups of equal hashes. One factor varies at a time: CPU and threads in this environment, and
environments. To emulate a CPU, numba compiles for it, and NumPy disables instructions that it
lacks. This machine must support all of its instructions.
"""

import platform
import re
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numba
import numpy as np
import typer
from measure import PROJECT
from measure.data import find
from measure.processes import run
from measure.tables import table
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.util import load_config, resolve_dot_names

from .numba_versions import install

sys.path.append(str(PROJECT.parent))

CONFIGS = {"ud": "ud_tagger", "conll2002-es": "conll2002_es", "conll2000": "conll2000_chunks"}
_HASH = re.compile(r"^[0-9a-f]{64}$", re.MULTILINE)
_VERSIONS = re.compile(r"^versions (.*)$", re.MULTILINE)


def train(name: str, path: Path, n_rows: int, n_threads: int) -> str:
    """Train with the config of a data set; return the SHA-256 of weights and objectives."""
    config = load_config(
        PROJECT / "configs" / f"{CONFIGS[name]}.cfg",
        overrides={"paths.train": str(path), "paths.dev": str(path)},
    )
    component = config["nlp"]["pipeline"][-1]
    config["components"][component]["n_threads"] = n_threads
    nlp = init_nlp(config)
    (corpus,) = resolve_dot_names(config.interpolate(), ["corpora.train"])
    examples = list(corpus(nlp))
    losses = [nlp.update(examples)[component] for _ in range(n_rows)]
    pipe: Any = nlp.get_pipe(component)
    pipe.to_bytes()  # completes the model
    return sha256(pipe.model.to_bytes() + repr(losses).encode()).hexdigest()


def write_corpora(n_sentences: int, folder: Path) -> None:
    """Write the first sentences of each data set to a file."""
    from scripts.convert import SETS, docs_of

    for name in CONFIGS:
        path = find("", [f"{SETS[name].stem}.train.tsv.gz"])
        docs = docs_of(name, path, n=n_sentences)
        DocBin(docs=docs, store_user_data=True).to_disk(folder / f"{name}.spacy")


def main(
    cpus: Annotated[str, typer.Option(help="Names that LLVM has, or `native`")] = "native",
    threads: Annotated[str, typer.Option(help="Numbers of threads")] = "1,2",
    environments: Annotated[
        list[str] | None, typer.Option("-e", help="Each: a Python, versions for pip")
    ] = None,
    sentences: Annotated[int, typer.Option(help="Of each data set")] = 3000,
    rows: Annotated[int, typer.Option(help="Outer iterations")] = 3,
) -> None:
    """Train for each processor, number of threads and environment, and print a table."""
    from tests.kernels.processors import NATIVE, imitating

    cases = [("", cpu, n) for cpu in cpus.split(",") for n in threads.split(",")]
    cases += [(wanted, NATIVE, "1") for wanted in environments or ()]
    lines, groups = [], defaultdict(list)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_corpora(sentences, folder)
        for i, (wanted, cpu, n_threads) in enumerate(cases):
            python = install(wanted, folder / f"environment-{i}") if wanted else "python"
            # Import the package of an environment, not of the working directory.
            own = {"PYTHONSAFEPATH": "1"} if wanted else {}
            own |= imitating(cpu, folder / f"kernels-{wanted and i}")
            command = [python, "-m", "reliability.one_model", scratch, str(rows), n_threads]
            output = run(command, own).output
            where, hashes = [*_VERSIONS.findall(output), cpu, n_threads], _HASH.findall(output)
            lines.append([*where, *(each[:16] for each in hashes)])
            groups[tuple(hashes)].append(", ".join(where))
            typer.echo(" ".join(lines[-1]))
    typer.echo(table(["Python, numba, NumPy", "processor", "threads", *CONFIGS], lines))
    typer.echo("one hash" if len(groups) == 1 else "\n".join(map("; ".join, groups.values())))
    sys.exit(len(groups) > 1)


if __name__ == "__main__":
    if len(sys.argv) == 4 and Path(sys.argv[1]).is_dir():
        names = (platform.python_version(), numba.__version__, np.__version__)
        sys.stdout.write(f"versions {', '.join(names)}\n")
        for name in CONFIGS:
            path = Path(sys.argv[1]) / f"{name}.spacy"
            sys.stdout.write(train(name, path, *map(int, sys.argv[2:])) + "\n")
    else:
        typer.run(main)
