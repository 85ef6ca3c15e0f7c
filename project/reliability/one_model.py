"""Train the same models for several processors, threads and versions, and compare their weights.

    python -m reliability.one_model --cpus haswell,skylake-avx512,native --versions numba==0.67.*

prints a SHA-256 of the model and of the objectives in all digits for each, and "one hash" or the groups with equal ones. A processor
is imitated: numba compiles for it, and NumPy leaves out instructions that it does not have. All
processors must be ones whose instructions this machine has.
"""

import re
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import spacy
import typer
from measure import PROJECT
from measure.data import find
from measure.processes import run
from measure.tables import table
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.util import load_config, resolve_dot_names

from .numba_versions import install

CONFIGS = {"ud": "ud_tagger", "conll2002-es": "conll2002_es", "conll2000": "conll2000_chunks"}
NATIVE = "native"
_HASH = re.compile(r"^[0-9a-f]{64}$", re.MULTILINE)
# Names of processors, and of sets of instructions, without AVX-512.
_OLDER = {"haswell", "skylake", "znver1", "znver2", "znver3", "x86-64-v3"}


def train(name: str, path: Path, n_rows: int, n_threads: int) -> str:
    """Train with the config of a data set, and return the SHA-256 of weights and objectives."""
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


def variables_of(cpu: str, folder: Path) -> dict[str, str]:
    """Return the environment in which a processor is imitated."""
    found = {"NUMBA_CACHE_DIR": str(folder / f"kernels-{cpu}")}
    if cpu != NATIVE:
        # Without features of its own, numba adds those of this machine.
        found |= {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": "+fma"}
    if cpu in _OLDER:
        import numpy

        used = numpy.show_config(mode="dicts")["SIMD Extensions"]["found"]
        newer = [name for name in used if name.startswith(("AVX512", "X86_V4"))]
        found |= {"NPY_DISABLE_CPU_FEATURES": " ".join(newer), "OPENBLAS_CORETYPE": "Haswell"}
    return found


def write_corpora(n_sentences: int, folder: Path) -> None:
    """Write the first sentences of each data set to a file."""
    from scripts.convert import SETS, docs_of

    for name in CONFIGS:
        path = find("", [f"{SETS[name].stem}.train.tsv.gz"])
        docs = docs_of(name, path, n=n_sentences)
        DocBin(docs=docs, store_user_data=True).to_disk(folder / f"{name}.spacy")


def main(
    cpus: Annotated[str, typer.Option(help="Names that LLVM has, and `native`")] = NATIVE,
    threads: Annotated[str, typer.Option(help="Numbers of threads")] = "1,2",
    versions: Annotated[str, typer.Option(help="Requirements, of an environment each")] = "",
    sentences: Annotated[int, typer.Option(help="Of each data set")] = 3000,
    rows: Annotated[int, typer.Option(help="Outer iterations")] = 3,
) -> None:
    """Train for each processor, number of threads and version, and print a table."""
    lines, groups = [], defaultdict(list)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_corpora(sentences, folder)
        for i, version in enumerate(["", *filter(None, versions.split(","))]):
            python = install(version, folder / f"environment-{i}") if version else "python"
            for cpu in cpus.split(","):
                own = folder / f"version-{i}"
                environment = variables_of(cpu, own) | ({"PYTHONSAFEPATH": "1"} if version else {})
                for n_threads in threads.split(","):
                    command = [python, "-m", "reliability.one_model", scratch, str(rows), n_threads]
                    hashes = _HASH.findall(run(command, environment).output)
                    where = f"{version or 'this environment'}, {cpu}, {n_threads} threads"
                    lines.append([where, *(each[:16] for each in hashes)])
                    groups[tuple(hashes)].append(where)
                    typer.echo(" ".join(map(str, lines[-1])))
    typer.echo(table(["", *CONFIGS], lines))
    typer.echo("one hash" if len(groups) == 1 else "\n".join(map("; ".join, groups.values())))
    sys.exit(len(groups) > 1)


if __name__ == "__main__":
    if len(sys.argv) == 4 and Path(sys.argv[1]).is_dir():
        for name in CONFIGS:
            path = Path(sys.argv[1]) / f"{name}.spacy"
            sys.stdout.write(train(name, path, *map(int, sys.argv[2:])) + "\n")
    else:
        typer.run(main)
