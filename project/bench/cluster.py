"""Training with the workers of a Ray cluster on this machine: seconds, bytes sent, memory.

`workers` times an outer iteration of the same run, alternately with threads in one process, with
threads over a sharded corpus, and with workers; then it counts the bytes sent in an iteration with
workers. `driver` measures the memory of the driver process and of the workers in a run on ten
copies of Brown.
"""

import pickle
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
from measure.data import QUICK_SENTENCES, find, read_tsv
from measure.processes import Cost, alternate, timed
from measure.runs import THREADS, TOY, Engine, Run, ray_engine, write_set
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp

from .ours import L1, L2
from .record import OURS, Options, measurements

_DATA = "nettalk-3grm"
_N, _STEPS, _TIMES, _N_DEV = 2, 8, 10, 100
WHOLE, SHARDS, WORKERS = "2 threads", "2 threads, shards", "2 workers"
PEAK = "peak, resident"
_FILE = "brown.train.tsv.gz"
_HELD = re.compile(r"held (\d+) to (\d+) MB")
# Settings of a component for runs with few templates, labels and iterations.
_SMALL = {
    "features": {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": ["b:", "u:lower[-1]", "u:lower[0]", "u:lower[1]", "u:suffix(3)[0]"],
    },
    "solver": {
        "@crf_solvers": "spacy_sparsecrf.OWLQN.v1",
        "inner_iterations": 3,
    },
    "learning": {"warm_start": {"epochs": 1, "averaged": False, "evaluated": False}},
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


def component(run: Run, engine: Engine, whole: Path | None = None) -> Any:
    """Return a component after its first step; whole: directory of the whole corpus."""
    config = run.config(engine)
    config["components"]["crf"]["n_threads"] = _N
    if whole is not None:
        config["paths"]["train"] = str(whole)
        config["initialize"]["components"]["crf"].pop("shards")
    made = init_nlp(config).get_pipe("crf")
    made.update([], sgd=object())
    return made


class CountedTeam:
    """Counts the messages of a pool of workers.

    sizes: bytes sent to all workers, and returned, by method; least: bytes of the results of
    evaluations without overhead.
    """

    def __init__(self, team: Any) -> None:
        self._ask, self._share = team.ask, team.share
        self.sizes, self.least = Counter[str](), 0
        team.ask, team.share = self.ask, self.share

    def share(self, value: Any) -> Any:
        """Send a value to all workers."""
        self.sizes["sent once"] += len(pickle.dumps(value))
        return self._share(value)

    def ask(self, method: str, each: Sequence[Any], *, keep: bool = False) -> list[Any]:
        """Call a method of each worker."""
        found: list[Any] = self._ask(method, each, keep=keep)
        self.sizes[f"told: {method}"] += sum(len(pickle.dumps(one)) for one in found)
        if method in ("evaluate", "curvature", "gradient"):
            self.least += sum(8 * len(own) for told in found for _, own in told)
        return found


def measure_workers(options: Options) -> None:
    """Measure outer iterations alternately, and count bytes."""
    repeats = options.times(6)
    record = options.record("workers", "cluster", workers=_N, steps=repeats)
    with TemporaryDirectory() as name:
        corpus, whole = Path(name) / "corpus", Path(name) / "whole"
        write_set(corpus, _DATA, options.data, QUICK_SENTENCES if options.quick else 0)
        whole.mkdir()
        for path in corpus.glob("part-*.spacy"):
            (whole / path.name).symlink_to(path)
        run = Run(corpus, _DATA, _STEPS)
        pipes = {
            WHOLE: component(run, THREADS, whole),
            SHARDS: component(run, THREADS),
            WORKERS: component(run, ray_engine(None, _N)),
        }
        steps = {tool: partial(pipe.update, [], sgd=object()) for tool, pipe in pipes.items()}
        sides: dict[str, Callable[[], Cost]] = {
            k: partial(timed, step) for k, step in steps.items()
        }
        record.compare(_DATA, "outer iteration", alternate(repeats, sides), threads=_N)
        counted = CountedTeam(pipes[WORKERS].training_run().partition.pool)
        steps[WORKERS]()
        record.add("bytes", least=counted.least, **counted.sizes)
    first, *others = measurements(record.rows.values())
    for one in others:
        ratios = [own / other for own, other in zip(one["wall"], first["wall"], strict=True)]
        record.remark(f"{one['tool']}: {min(ratios):.2f} to {max(ratios):.2f} times {WHOLE}.")


def measure_driver(options: Options) -> None:
    """Measure the peak memory of a driver and of its workers."""
    path, nlp = find(options.data, [_FILE]), spacy.blank("en")
    record = options.record("driver", "cluster", workers=_N)
    sentences = QUICK_SENTENCES if options.quick else options.sentences
    docs = [example.reference for example in examples(path, 1, sentences, nlp)]
    with TemporaryDirectory() as name:
        corpus = Path(name) / "corpus"
        corpus.mkdir()
        DocBin(docs=docs).to_disk(corpus / "part-0.spacy")
        for i in range(1, _TIMES):
            shutil.copy(corpus / "part-0.spacy", corpus / f"part-{i}.spacy")
        DocBin(docs=docs[:_N_DEV]).to_disk(corpus / "dev.spacy")
        run = Run(corpus, TOY, 1, component=_SMALL)
        cost = run.start(Path(name) / "run", ray_engine(None, _N)).wait()
    held = max((int(most) for _, most in _HELD.findall(cost.output)), default=0)
    data, n_tokens = f"brown x {_TIMES}", _TIMES * sum(map(len, docs))
    own = {"worker MB": held, "tokens": n_tokens, "s": cost.wall}
    record.note(data, PEAK, OURS, peak_mb=[cost.peak_mb], **own)
    record.remark(f"{data}: {n_tokens:,} tokens, {held:,} MB in each worker, {cost.wall:.0f} s.")
