"""Memory of training on one and on ten copies of Brown, in memory and in files.

    python -m bench.out_of_core FILE TIMES CORPUS_DIR SENTENCES

trains in this process. Templates, labels and outer iterations are few, as they do not affect the
memory that grows with the corpus.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import spacy
import typer
from measure.data import QUICK_SENTENCES, find, read_tsv
from measure.processes import run
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from .ours import L1, L2
from .record import OURS, Options

FILE = "brown.train.tsv.gz"
RESIDENT, ANONYMOUS, SECONDS = "peak, resident", "peak, anonymous", "seconds"
MEMORY, FILES = f"{OURS}, in memory", f"{OURS}, in files"
_TIMES = (1, 10)
# Settings of a component for runs with few templates, labels and iterations.
SMALL = {
    "features": {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": ["b:", "u:lower[-1]", "u:lower[0]", "u:lower[1]", "u:suffix(3)[0]"],
    },
    "solver": {
        "@crf_solvers": "spacy_sparsecrf.OWLQN.v1",
        "inner_iterations": 3,
        "warm_start_epochs": 1,
        "average_warm_start": False,
    },
    "l1": L1,
    "l2": L2,
}
# First letters of tags that are used as labels; all other tags share one label.
_LETTERS, _OTHER = frozenset("ABCDHIJMNPRTVW"), "-"


def examples(path: Path, times: int, sentences: int, nlp: Language) -> Iterator[Example]:
    """Read the sentences of a file (0 = all) `times` times; labels are first letters of tags."""
    for _ in range(times):
        for i, rows in enumerate(read_tsv(path)):
            if sentences and i >= sentences:
                break
            words = [row[0] for row in rows]
            letters = [row[1][0] if row[1][0] in _LETTERS else _OTHER for row in rows]
            reference = Doc(nlp.vocab, words=words, tags=letters)
            yield Example(Doc(nlp.vocab, words=words), reference)


def measure(options: Options) -> None:
    """Measure all four runs, and compare the models; files are created in corpus/ and removed."""
    path, scratch = find(options.data, [FILE]), options.folder / "corpus"
    sentences = QUICK_SENTENCES if options.quick else options.sentences
    scratch.mkdir(parents=True, exist_ok=True)
    record = options.record("out_of_core", **{"outer iterations": 1, "threads": 1})
    for times in _TIMES:
        models, data = set(), f"brown x {times}"
        for tool in (FILES, MEMORY):
            with TemporaryDirectory(dir=scratch.resolve()) as place:
                given = str(times), place if tool == FILES else "", str(sentences)
                command = ["python", "-m", "bench.out_of_core", str(path), *given]
                cost = run(command)
            figures = json.loads(cost.output.splitlines()[-1])
            models.add(figures["model"])
            record.note(data, RESIDENT, tool, peak_mb=[cost.peak_mb], **figures)
            record.note(data, ANONYMOUS, tool, peak_mb=[cost.anonymous_mb])
            record.compare(data, SECONDS, {tool: [cost]})
        same = "the same bytes" if len(models) == 1 else "NOT the same"
        record.remark(f"{data}: both models are {same}.")


def main(
    corpus: Annotated[Path, typer.Argument(help="File of words and tags, a token a line")],
    times: Annotated[int, typer.Argument(help="How often to read it")],
    cache_dir: Annotated[str, typer.Argument(help="Directory of the corpus in files, or ''")],
    sentences: Annotated[int, typer.Argument(help="Sentences to read, 0 for all")],
) -> None:
    """Train for an outer iteration, and write figures to stdout as JSON."""
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sparse_crf", config={**SMALL, "n_threads": 1})
    pipe.initialize(
        lambda: examples(corpus, times, sentences, nlp), nlp=nlp, cache_dir=cache_dir or None
    )
    losses = pipe.update([])
    pipe.finish_update(None)
    model = hashlib.blake2b(pipe.to_bytes(exclude=["vocab"]), digest_size=8).hexdigest()
    sys.stdout.write(json.dumps({"objective": losses[pipe.name], "model": model}) + "\n")


if __name__ == "__main__":
    typer.run(main)
