"""Threads that share a component get the same results as a single thread."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language

from ..conftest import Corpus
from ..toy import docs_of, examples_of

N_THREADS = 8


def digest(found: Any) -> Any:
    """Return a comparable form of a result: arrays as bytes, other objects as strings."""
    if isinstance(found, list | tuple):
        return [digest(part) for part in found]
    return found.tobytes() if isinstance(found, np.ndarray) else str(found)


def run(nlp: Language, corpus: Corpus, seed: int, barrier: threading.Barrier | None) -> list[Any]:
    """Run each job once, in a random order, and return the results by name."""
    pipe: Any = nlp.get_pipe("sparse_crf")
    rng = random.Random(seed)
    docs = docs_of(nlp, rng.sample(corpus.dev, 6))
    examples = examples_of(nlp, rng.sample(corpus.dev, 4))
    jobs = {
        "predict": lambda: pipe.predict(docs),
        "label": lambda: [token.tag_ for doc in docs for token in pipe(doc.copy())],
        "marginals": lambda: pipe.marginals(docs),
        "nbest": lambda: pipe.nbest(docs[0], 3),
        "explain": lambda: [pipe.explain(3), pipe.explain_doc(docs[1])],
        "to_bytes": lambda: pipe.to_bytes(exclude=["vocab"]),
        "score": lambda: nlp.evaluate(examples)["tag_acc"],
    }
    names = rng.sample(sorted(jobs), len(jobs))
    if barrier:
        barrier.wait(60.0)
    found = {name: digest(jobs[name]()) for name in names}
    return sorted(found.items())


@pytest.mark.parametrize("n_rounds", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_threads_find_what_one_finds(trained_dir: Path, corpus: Corpus, n_rounds: int) -> None:
    expected = [run(spacy.load(trained_dir), corpus, seed, None) for seed in range(N_THREADS)]
    nlp, barrier = spacy.load(trained_dir), threading.Barrier(N_THREADS)  # its caches are empty
    with ThreadPoolExecutor(N_THREADS) as pool:
        for _ in range(n_rounds):
            found = pool.map(partial(run, nlp, corpus, barrier=barrier), range(N_THREADS))
            assert list(found) == expected
