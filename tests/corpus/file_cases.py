"""Helpers of tests of corpora in files."""

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
    """Split even a small corpus into many shards, chunks and files."""
    # A component has no argument for these limits.
    monkeypatch.setitem(TrainingProblem.__init__.__kwdefaults__, "limits", SMALL_PARTS)
    monkeypatch.setattr(arrays, "CHUNK", 13)
    monkeypatch.setattr(arrays, "_LEAST_FILE", 256)
    monkeypatch.setattr(arrays, "_LARGEST_FILE", 1 << 12)


@contextmanager
def full_disk(n_bytes: int) -> Iterator[None]:
    """Limit the size of files, which fails like a full disk.

    Only within the test, as test output may also be written to a file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


Trained = tuple[bytes, list[float]]


def train(examples: list[Example], cache_dir: Path | None, **config: object) -> Trained:
    """Return the trained component with its feature names, and the losses of some steps."""
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sparse_crf", config={"n_threads": 1, **config})
    pipe.initialize(lambda: examples, nlp=nlp, cache_dir=cache_dir)
    losses = run_steps(nlp, examples, 3)
    return pipe.to_bytes(), losses
