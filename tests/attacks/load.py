"""Load tests: threads, processes, many distinct words, and repeated Docs.

    cd project
    python -m reliability.attacks load --words 10000000 --docs 1000000

Labels must equal those of one thread; the growth of resident memory is bounded.
"""

import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from wasabi import msg

from .texts import WORDS, pipeline

_WORDS_IN_DOC = 500
# Maximum growth of resident memory in MB: word tables of three components, and cached sums.
MOST_WORDS_MB, MOST_REPLAY_MB = 1_000.0, 10.0
_BEGINNING = 0.1  # share of the replay, after which memory may not grow


def resident_mb() -> float:
    """Return resident memory of this process. RAISES: OSError if the system does not report it."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def docs_of(nlp: Language, n: int, first: int = 0) -> list[Doc]:
    """Return Docs in which all words are distinct."""
    words = [f"{WORDS[i % len(WORDS)]}{i:x}" for i in range(first, first + n)]
    cut = range(0, n, _WORDS_IN_DOC)
    return [Doc(nlp.vocab, words=words[i : i + _WORDS_IN_DOC]) for i in cut]


def labels_of(docs: Iterator[Doc] | list[Doc]) -> list[Any]:
    """Return the annotation of all components."""
    return [doc.to_array(["TAG", "ENT_TYPE", "ENT_IOB"]).tolist() for doc in docs]


def threads(nlp: Language, n_words: int, n_threads: int = 16) -> None:
    """Compare labels of one thread with labels of several threads that share the components."""

    def annotate(nlp: Language, doc: Doc) -> Doc:
        for _, pipe in nlp.pipeline:
            doc = pipe(doc)
        return doc

    with tempfile.TemporaryDirectory(prefix="sparsecrf-") as folder:
        nlp.to_disk(folder)
        alone, together = (spacy.load(folder) for _ in range(2))  # Their caches are empty.
    expected = labels_of([annotate(alone, doc) for doc in docs_of(alone, n_words)])
    with ThreadPoolExecutor(n_threads) as pool:
        found = list(pool.map(partial(annotate, together), docs_of(together, n_words)))
    assert labels_of(found) == expected, "threads change labels"


def stream(nlp: Language, n_words: int) -> float:
    """Label n distinct words. RETURNS: growth of resident memory in MB."""
    begin = most = resident_mb()
    chunk = 20 * _WORDS_IN_DOC
    for first in range(0, n_words, chunk):
        with nlp.memory_zone():
            for doc in nlp.pipe(docs_of(nlp, min(chunk, n_words - first), first)):
                assert doc[0].tag
        most = max(most, resident_mb())
    return most - begin


def replay(nlp: Language, n_docs: int) -> float:
    """Label the same few Docs repeatedly. RETURNS: MB grown after the beginning."""
    texts, begin = [" ".join(WORDS[: 1 + i % 9]) for i in range(1_000)], 0.0
    for done in range(0, n_docs, len(texts)):
        if not begin and done >= _BEGINNING * n_docs:
            begin = resident_mb()
        for doc in nlp.pipe(texts):
            assert doc[0].tag
    return resident_mb() - begin


def processes(nlp: Language, n_words: int, method: str) -> None:
    """Compare labels of two processes, started by a method of `multiprocessing`."""
    expected = labels_of(nlp.pipe(docs_of(nlp, n_words)))
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method(method, force=True)
    try:
        found = labels_of(nlp.pipe(docs_of(nlp, n_words), n_process=2, batch_size=4))
    finally:
        multiprocessing.set_start_method(before, force=True)
    assert found == expected, f"processes by {method} change labels"


def main(
    words: Annotated[int, typer.Option(help="Distinct words that are streamed")] = 1_000_000,
    docs: Annotated[int, typer.Option(help="Docs that are replayed")] = 100_000,
) -> None:
    """Put load on a pipeline of three components, and report the growth of memory."""
    with np.errstate(over="ignore"):
        nlp = pipeline()
        threads(nlp, 50_000)
        msg.good("16 threads label 50,000 distinct words as one does")
        for method in ("fork", "spawn"):
            processes(nlp, 20_000, method)
            msg.good(f"2 processes by {method} label 20,000 distinct words as one does")
        replayed, streamed = replay(nlp, docs), stream(nlp, words)
    msg.text(f"{docs} Docs replayed: {replayed:+.1f} MB after the first tenth")
    msg.text(f"{words} distinct words: at most {streamed:+.1f} MB")
    if streamed > MOST_WORDS_MB or replayed > MOST_REPLAY_MB:
        msg.fail("memory grows by more than is stated", exits=1)
