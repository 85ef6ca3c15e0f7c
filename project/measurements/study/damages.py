"""Random damages of model files: each is refused with a code, or the file gives labels.

A damage flips a bit, cuts the end, zeroes, inserts or repeats bytes, or sets four of them, which
may be a number, to an extreme value. Files of CRFsuite say how long they are: for half of the
damages this is corrected. Each file is tried in processes of its own, of 4 GB, with and without
numba, since the roads to labels differ.
"""

import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

FLIP, CUT, ZERO, INSERT, REPEAT, NUMBER = range(6)
_EXTREMES = 0, 1, 2, 0xFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF
_MOST_BYTES, _MOST_MEMORY, _MOST_SECONDS = 40, 4 << 30, 20
_TEXTS: Any = [
    [{"word": "12"}, {"word": "Oak", "capital": True}, {"word": "Lane", "end": 0.5}],
    [{"word": "Oak"}, {"word": "new"}],
    [],
]
_LABELS = [["NUMBER", "NAME", "TYPE"], ["NAME", "TYPE"], []]
_PATTERNS = "u:%x[0,0]\nu:w%x[-1,0]\nb:%x[0,0]\nb"


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Return a file with one random damage."""
    kind, at, n = draw.randrange(6), draw.randrange(len(data)), draw.randint(1, _MOST_BYTES)
    head, tail = data[:at], data[at:]
    if kind == FLIP:
        changed = head + bytes([tail[0] ^ 1 << draw.randrange(8)]) + tail[1:]
    elif kind == CUT:
        changed = head
    elif kind == ZERO:
        changed = head + bytes(len(tail[:n])) + tail[n:]
    elif kind == INSERT:
        changed = head + draw.randbytes(n) + tail
    elif kind == REPEAT:
        changed = head + tail[:n] + tail
    else:
        changed = head + struct.pack("<I", draw.choice(_EXTREMES)) + tail[4:]
    if changed[:4] == b"lCRF" and len(changed) > 8 and draw.random() < 0.5:
        return changed[:4] + struct.pack("<I", len(changed)) + changed[8:]
    return changed


# Sound files


def crfsuite(path: Path, module: str = "spacy_sparsecrf.pycrfsuite", **fields: Any) -> None:
    """Write a file of CRFsuite. module: the trainer's."""
    trainer = __import__(module, fromlist=["Trainer"]).Trainer(verbose=False)
    for _ in range(3):
        for tokens, labels in zip(_TEXTS[:2], _LABELS[:2], strict=True):
            trainer.append(tokens, labels)
    trainer.set_params({"c1": 0.01, "max_iterations": 20, **fields})
    trainer.train(str(path))


def own(path: Path) -> None:
    """Write a file of our own format, which pairs of labels with features need."""
    from spacy_sparsecrf.sklearn import CRF

    CRF(c1=0.01, bigrams=["word"], model_filename=str(path)).fit(_TEXTS[:2], _LABELS[:2])


def with_patterns(path: Path, program: str) -> None:
    """Write a file of Wapiti or CRF++."""
    from spacy_sparsecrf.interop.crfsuite_file import ExternalWeights
    from spacy_sparsecrf.interop.exporters import EXPORTERS
    from spacy_sparsecrf.interop.external_models import TrainedModel

    rows = [(0, -1, 0, 1.5), (1, -1, 1, 0.25), (2, -1, 2, -0.5), (3, 1, 2, 2.0), (4, 0, 1, 1.0)]
    model = TrainedModel(
        program=program,
        kind="chain",
        labels=["NUMBER", "NAME", "TYPE"],
        patterns=_PATTERNS if program == "Wapiti" else _PATTERNS.upper().replace("%X", "%x"),
        features=["u:12", "u:Oak", "u:wOak", "b:Lane", "b"],
        weights=ExternalWeights.of(rows),
        n_columns=1,
    )
    path.write_bytes(EXPORTERS[program].write(model))


# Uses


def tag(path: Path) -> None:
    """Label texts by a tagger, and ask for everything else."""
    from spacy_sparsecrf.pycrfsuite import Tagger

    tagger = Tagger().open(path)
    for text in _TEXTS:
        labels = tagger.tag(text)
        assert len(labels) == len(text) and {*labels} <= {*tagger.labels()}
        tagger.probability(labels)
        for i, label in enumerate(labels):
            tagger.marginal(label, i)
    tagger.info()


def convert(path: Path) -> None:
    """Import a file to a component, and label a Doc."""
    from spacy.tokens import Doc

    from spacy_sparsecrf.interop.importing import import_model, set_weights

    imported = import_model(path, ["orth"], {}, "float32")
    nlp = _blank()
    config = {"features": imported.features, "model": imported.model.kind}
    pipe: Any = nlp.create_pipe("sparse_crf", config=config)
    set_weights(pipe, imported.model, imported.names, str(path))
    assert all(token.tag_ in pipe.labels for token in pipe(Doc(nlp.vocab, ["12", "Oak", "Lane"])))


@cache
def _blank() -> Any:
    import spacy

    return spacy.blank("xx")


FILES: dict[str, tuple[Callable[[Path], None], Callable[[Path], None]]] = {
    "crfsuite": (crfsuite, tag),
    "python-crfsuite": (lambda path: crfsuite(path, "pycrfsuite"), tag),
    "own": (own, tag),
    "wapiti": (lambda path: with_patterns(path, "Wapiti"), convert),
    "crfpp": (lambda path: with_patterns(path, "CRF++"), convert),
}
"""Functions that write a sound file, and that use a file, by name."""

ROADS = [(name, "numba") for name in FILES] + [("crfsuite", ""), ("python-crfsuite", "")]
"""Files, and the modules that a process has imported before it reads them."""


def _too_long(*_: object) -> None:
    raise TimeoutError


def attack(name: str, source: Path, modules: str, n: int, seed: int) -> None:
    """Damage a file n times, use it, and print how often it was refused or gave labels.

    modules: imported before. RAISES: whatever is no coded error.
    """
    from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

    for module in modules.split():
        __import__(module)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    signal.signal(signal.SIGALRM, _too_long)
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", SparseCRFWarning)
    data, path, use = source.read_bytes(), source.with_name("damaged"), FILES[name][1]
    use(source)
    ends = Counter[str]()
    for trial in range(n):
        path.write_bytes(damaged(data, random.Random(f"{seed} {trial}")))
        signal.alarm(_MOST_SECONDS)
        try:
            use(path)
            ends["labels"] += 1
        except SparseCRFError as error:
            code = str(error)[1:6]
            assert code != "SC801" and (code != "SC631" or str(path) in str(error)), error
            ends[code] += 1
        signal.alarm(0)
    assert not modules or "numba" in sys.modules
    typer.echo(", ".join(f"{count} {end}" for end, count in ends.most_common()))


def tried(name: str, modules: str, n: int, seed: int = 0) -> "subprocess.CompletedProcess[str]":
    """Write a sound file, and attack it in a process that has imported modules before."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / name
        FILES[name][0](source)
        call = f"attack({name!r}, Path({str(source)!r}), {modules!r}, {n}, {seed})"
        script = f"from pathlib import Path; from study.damages import attack; {call}"
        command = [sys.executable, "-c", script]
        project = Path(__file__).parents[1]
        return subprocess.run(command, cwd=project, text=True, capture_output=True, check=False)


def main(
    n: Annotated[int, typer.Option(help="Damages of each file")] = 5000,
    seed: int = 0,
    only: Annotated[list[str] | None, typer.Option("--only", help="Files; all")] = None,
) -> None:
    """Damage files, and print what became of them; exit 1 if anything else than a code came."""
    failed = False
    for name, modules in ROADS:
        if only and name not in only:
            continue
        ended = tried(name, modules, n, seed)
        how = f", with {modules}" if modules else ""
        typer.echo(f"{name}{how}: {ended.stdout.strip()}")
        if ended.returncode:
            failed = True
            typer.echo(f"ended with {ended.returncode}: {ended.stderr[-2000:]}")
    raise typer.Exit(failed)


if __name__ == "__main__":
    typer.run(main)
