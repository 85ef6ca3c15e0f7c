"""A corpus in several files, and training on it with an engine."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language

from spacy_sparsecrf.crf.parallel import Args, WorkerPool
from spacy_sparsecrf.distributed.ray_engine import Ray
from spacy_sparsecrf.pipeline.component import SparseCRFPipe
from spacy_sparsecrf.pipeline.engines import Engine

from .toy import make_sentences, write_corpus

SENTENCES = make_sentences(110, seed=5)
# Some labels are missing.
for _, tags in SENTENCES[::4]:
    tags[2] = ""
# One file has no Doc.
CUTS = (0, 30, 30, 45, 90, 110)
# Each iteration evaluates all shards.
FEW: dict[str, Any] = {
    "sequences": "sents",
    "solver": {"inner_iterations": 4},
    "learning": {"warm_start": {"epochs": 2}},
}
SHIPPED: dict[str, Any] = {
    "sequences": "docs",
    "features": {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": ["@tags", "@word_labels"],
    },
}


@dataclass(frozen=True, kw_only=True)
class Here(Ray):
    """A Ray engine whose workers run in this process."""

    def pool(self, make: Callable[[], Any]) -> WorkerPool:
        return WorkerPool(self.num_workers, make)


class ForgetfulPool(WorkerPool):
    """A pool whose workers are lost and replaced before each call."""

    def __init__(self, n: int, make: Callable[[], Any]) -> None:
        super().__init__(n, make)
        self._make_pool = partial(WorkerPool, n, make)
        self._kept: list[tuple[str, Sequence[Args]]] = []

    def ask(self, method: str, each: Sequence[Args], *, keep: bool = False) -> list[Any]:
        pool = self._make_pool()
        for kept in self._kept:
            pool.ask(*kept)
        if keep:
            self._kept.append((method, each))
        return pool.ask(method, each)


class ReadOnlyPool(WorkerPool):
    """A pool whose workers return arrays that are not writable, as those of Ray's object store."""

    def ask(self, method: str, each: Sequence[Args], *, keep: bool = False) -> list[Any]:
        buffers: list[pickle.PickleBuffer] = []
        results = super().ask(method, each, keep=keep)
        pickled = pickle.dumps(results, protocol=5, buffer_callback=buffers.append)
        return pickle.loads(pickled, buffers=[bytes(b) for b in buffers])  # noqa: S301


@dataclass(frozen=True, kw_only=True)
class ReadOnly(Here):
    """An engine whose workers return arrays that are not writable."""

    def pool(self, make: Callable[[], Any]) -> WorkerPool:
        return ReadOnlyPool(self.num_workers, make)


@dataclass(frozen=True, kw_only=True)
class Forgetful(Here):
    """An engine whose workers are lost before each call."""

    def pool(self, make: Callable[[], Any]) -> WorkerPool:
        return ForgetfulPool(self.num_workers, make)


def write_parts(folder: Path) -> Path:
    for i, (first, last) in enumerate(pairwise(CUTS)):
        write_corpus(str(folder / f"part-{i}.spacy"), spacy.blank("xx"), SENTENCES[first:last])
    return folder


def begun(
    folder: Path, engine: Engine | None, initialize: dict[str, Any] | None = None, **config: Any
) -> tuple[Language, SparseCRFPipe]:
    """Return a pipeline initialized with the parts in a directory; engine: None for threads."""
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe("sparse_crf", config={"n_threads": 1, **FEW, **config})
    if engine is not None:
        pipe.engine = engine
    own = {"shards": [str(folder / "part-*.spacy")], **(initialize or {})}
    nlp.config["initialize"]["components"] = {"sparse_crf": own}
    nlp.initialize(lambda: [])
    return nlp, pipe


def steps(pipe: SparseCRFPipe, n: int = 3) -> list[float]:
    return [pipe.update([], sgd=object())["sparse_crf"] for _ in range(n)]


def learnt(pipe: SparseCRFPipe) -> bytes:
    return pipe.to_bytes(exclude=["vocab"])
