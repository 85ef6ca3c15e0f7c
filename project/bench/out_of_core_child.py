"""Training on a corpus several times over, in memory or in files, in a process of its own."""

import hashlib
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import spacy
import typer
from columns import read_tsv
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

_STATUS = Path("/proc/self/status")
_SECONDS = 0.02
TEMPLATES = ["b:", "u:lower[-1]", "u:lower[0]", "u:lower[1]", "u:suffix(3)[0]"]
# First letters of tags that are labels of their own; the others are one.
_LETTERS = frozenset("ABCDHIJMNPRTVW")
_OTHER = "-"
PENALTY = {"l1": 0.5, "l2": 1e-5}
SOLVER = {"inner_iterations": 3, "warm_start_epochs": 1, "average_warm_start": False}


class Watch(threading.Thread):
    """Notes the highest memory of this process, sampled: resident, and what is not of files."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self.resident_mb = self.anonymous_mb = 0.0

    def run(self) -> None:
        """Sample until it is told to stop."""
        while not self._ended.wait(_SECONDS):
            self._sample()

    def stop(self) -> None:
        """Sample for the last time."""
        self._ended.set()
        self.join()
        self._sample()

    def _sample(self) -> None:
        fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        resident, of_files = (int(fields[key].split()[0]) / 1024 for key in ("VmRSS", "RssFile"))
        self.resident_mb = max(self.resident_mb, resident)
        self.anonymous_mb = max(self.anonymous_mb, resident - of_files)


def examples(path: Path, times: int, sentences: int, nlp: Language) -> Iterator[Example]:
    """Read the sentences of a file so many times; labels are first letters of tags."""
    for _ in range(times):
        for i, rows in enumerate(read_tsv(path)):
            if sentences and i >= sentences:
                break
            words = [row[0] for row in rows]
            letters = [row[1][0] if row[1][0] in _LETTERS else _OTHER for row in rows]
            reference = Doc(nlp.vocab, words=words, tags=letters)
            yield Example(Doc(nlp.vocab, words=words), reference)


def main(
    corpus: Annotated[Path, typer.Argument(help="File of words and tags, a token a line")],
    times: Annotated[int, typer.Argument(help="How often to read it")],
    steps: Annotated[int, typer.Argument(help="Outer iterations")],
    cache_dir: Annotated[str, typer.Option(help="Directory of the corpus in files")] = "",
    sentences: Annotated[int, typer.Option(help="Sentences to read, 0 for all")] = 0,
    threads: Annotated[int, typer.Option(help="Threads")] = 1,
) -> None:
    """Train, and write figures to stdout as JSON."""
    nlp = spacy.blank("en")
    solver = {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1", **SOLVER}
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": TEMPLATES}
    config = {"features": features, "solver": solver, "n_threads": threads, **PENALTY}
    pipe = nlp.add_pipe("sparse_crf", config=config)
    watch = Watch()
    watch.start()
    pipe.initialize(
        lambda: examples(corpus, times, sentences, nlp), nlp=nlp, cache_dir=cache_dir or None
    )
    read_mb = watch.anonymous_mb
    for _ in range(steps):
        losses = pipe.update([])
        pipe.finish_update(None)
    model = pipe.to_bytes(exclude=["vocab"])
    watch.stop()
    figures = {
        "resident MB": watch.resident_mb,
        "anonymous MB": watch.anonymous_mb,
        "anonymous MB, until training begins": read_mb,
        "objective": losses[pipe.name],
        "model": hashlib.blake2b(model, digest_size=8).hexdigest(),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    typer.run(main)
