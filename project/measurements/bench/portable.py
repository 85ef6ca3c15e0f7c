"""Portable models compared with their pipelines: answers of ten thousand texts, time and memory.

python -m bench portable --name MODEL --name MODEL ...
"""

import gzip
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import spacy
import typer
from measure.processes import Cost, alternate, run, timed

from spacy_sparsecrf import portable
from spacy_sparsecrf.interop.portable_folder import drawn_texts, portable_folder
from spacy_sparsecrf.pipeline.component import SparseCRFPipe

from .record import OURS, Options

N_TEXTS = 10_000
FRESH, WARM = "one text, in a fresh process", "a text of ten tokens"
_READER = "import sys; from crf import Model; print(len(Model('model.json')(sys.argv[1]).tokens))"
_SPACY = "import sys, spacy; print(len(spacy.load(sys.argv[2])(sys.argv[1])))"


def measure(options: Options) -> None:
    """Compare the pipelines in the folders `names`, each divided by the number of pipelines."""
    record = options.record("portable")
    for path in options.names:
        nlp = spacy.load(path)
        [pipe] = [x for _, x in nlp.pipeline if isinstance(x, SparseCRFPipe)]
        fields = portable_folder(nlp, pipe, [])["model.json"]
        model = portable.Model(fields)
        n = 100 if options.quick else N_TEXTS // len(options.names)
        files = portable_folder(nlp, pipe, [*drawn_texts(model.fields, n)])  # fails if one differs
        folder = Path(tempfile.mkdtemp())
        for name in ("crf.py", "model.json"):
            (folder / name).write_bytes(files[name])
        sizes = sum(x.stat().st_size for x in Path(path, pipe.name).iterdir())
        typer.echo(
            f"{path}: {n} texts, none differs; model.json {len(fields)} bytes, "
            f"gzip {len(gzip.compress(fields))}, component {sizes}"
        )
        text = " ".join(x.text for x in nlp(next(drawn_texts(model.fields, 1)) * 9)[:10])
        reader = f"import os; os.chdir({str(folder)!r}); sys.path.insert(0, '')"
        code = _READER.replace("; ", f"; {reader}; ", 1)
        sides = {
            "portable": partial(run, [sys.executable, "-I", "-c", code, text]),
            OURS: partial(run, [sys.executable, "-c", _SPACY, text, path]),
        }
        record.compare(path, FRESH, alternate(options.times(5), sides))
        sides = {"portable": partial(_label, model, text), OURS: partial(_label, nlp, text)}
        record.compare(path, f"300 times {WARM}", alternate(options.times(5), sides))
    for row in record.rows.values():
        typer.echo(f"{row['data']}, {row['what']}, {row['tool']}: {row['cpu']} s, {row['mb']} MB")


def _label(labeller: Callable[[str], object], text: str) -> Cost:
    return timed(lambda: [labeller(text) for _ in range(300)])
