"""What tests of corpora in files share."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import spacy
from spacy.training import Example

import spacy_sparsecrf.corpus.arrays as arrays
from spacy_sparsecrf.loss.workspace import Limits
from spacy_sparsecrf.training.training import TrainingProblem

from ..toy import run_steps

SMALL_PARTS = Limits(shard_bytes=1 << 11, held_pairs=1 << 8, held_sums=1 << 8, merged=32)


def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks, runs and files also of a small corpus."""
    # A component has no argument for them.
    monkeypatch.setitem(TrainingProblem.__init__.__kwdefaults__, "limits", SMALL_PARTS)
    monkeypatch.setattr(arrays, "CHUNK", 13)
    monkeypatch.setattr(arrays, "_LEAST_FILE", 256)
    monkeypatch.setattr(arrays, "_LARGEST_FILE", 1 << 12)


@contextmanager
def full_disk(n_bytes: int) -> Iterator[None]:
    """Files may not grow beyond so many bytes, which fails as a full disk does.

    Only within the test: what it says may go to a file, too.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


Trained = tuple[bytes, list[float]]


def train(examples: list[Example], cache_dir: Path | None, **config: object) -> Trained:
    """The component with the names of its tests, and the losses of some steps."""
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sparse_crf", config={"n_threads": 1, **config})
    pipe.initialize(lambda: examples, nlp=nlp, cache_dir=cache_dir)
    losses = run_steps(nlp, examples, 3)
    return pipe.to_bytes(), losses
