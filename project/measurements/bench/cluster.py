"""Training with the workers of a Ray cluster on this machine: seconds and memory.

`workers` times an outer iteration of the same run, alternately with threads in one process, with
threads over a sharded corpus, and with workers. `driver` measures the memory of the driver process
and of the workers in a run on ten copies of Brown.
"""

import re
import shutil
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
from measure import CONFIGS
from measure.data import QUICK_SENTENCES, sources
from measure.processes import Cost, alternate, run, timed
from spacy.tokens import DocBin, Token
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from .ours import L1, L2
from .record import OURS, Options, measurements

_DATA, _LARGE = "nettalk-3grm", "brown"
_N, _STEPS, _TIMES, _N_DEV = 2, 8, 10, 200
WHOLE, SHARDS, WORKERS = "2 threads", "2 threads, shards", "2 workers"
# End of each part of a corpus, as a share of the whole; the parts differ in size.
_ENDS = [0.0, 0.02, 0.2, 0.3, 0.55, 0.6, 0.85, 1.0]
_LABEL = "label"
_HELD = re.compile(r"held (\d+) to (\d+) MB")
RAY = {"@crf_engines": "spacy_sparsecrf.Ray.v1", "num_workers": _N, "max_restarts": 1_000}


def write_parts(folder: Path, name: str, data: str, sentences: int, times: int = 1) -> int:
    """Write a training set as parts, `times` times over, with labels in an extension attribute.

    Labels of the large set are the first letters of its tags. RETURNS: number of tokens.
    """
    if not Token.has_extension(_LABEL):
        Token.set_extension(_LABEL, default=None)
    source, vocab = sources()[name], spacy.blank("en").vocab
    rows = source.rows("train", data, sentences)
    docs = list(source.docs(rows, vocab))
    for sentence, doc in zip(rows, docs, strict=True):
        for token, row in zip(doc, sentence, strict=True):
            token._.set(_LABEL, row[source.label][: 1 if name == _LARGE else None])
    ends = [round(end * len(docs)) for end in _ENDS]
    parts = {f"part-0-{i}": docs[a:b] for i, (a, b) in enumerate(pairwise(ends))}
    folder.mkdir(parents=True)
    for part, own in (parts | {"dev": docs[:_N_DEV]}).items():
        DocBin(docs=own, store_user_data=True).to_disk(folder / f"{part}.spacy")
    for i in range(1, times):
        for path in folder.glob("part-0-*.spacy"):
            shutil.copy(path, folder / path.name.replace("part-0", f"part-{i}"))
    return times * sum(map(len, docs))


def config_of(corpus: Path, name: str, steps: int, engine: dict[str, Any], shards: bool) -> Any:
    """Return the shipped tagger config for a set of `write_parts`."""
    source, config = sources()[name], load_config(CONFIGS / "tagger.cfg")
    config["paths"].update(train=str(corpus), dev=str(corpus / "dev.spacy"))
    pipe = config["components"]["crf"]
    pipe.update(l1=L1, l2=L2, sequences="sents", n_threads=_N)
    pipe.update({"engine": dict(engine)} if engine else {})
    pipe["features"]["templates"], pipe["target"]["attr"] = [*source.templates], f"_.{_LABEL}"
    config["nlp"]["pipeline"], config["components"] = ["crf"], {"crf": pipe}
    scored = {"tag_acc": None, f"{_LABEL}_acc": 1.0}
    training = {"annotating_components": [], "patience": 0, "max_steps": steps}
    config["training"] = {**config["training"], **training, "score_weights": scored}
    given = {"shards": [str(corpus / "part-*.spacy")]} if shards else {}
    config["initialize"]["components"]["crf"] = given
    for part in ("train", "dev"):
        config["corpora"][part].update(gold_tokens=True, annotations=[])
    return config


def step_of(config: Any) -> Callable[[], Any]:
    """Return a function that does an outer iteration; the first one is done."""
    pipe: Any = init_nlp(config).get_pipe("crf")
    step = partial(pipe.update, [], sgd=object())
    step()
    return step


def measure_workers(options: Options) -> None:
    """Measure outer iterations alternately."""
    repeats = options.times(6)
    record = options.record("workers", "cluster", workers=_N, steps=repeats)
    with TemporaryDirectory() as name:
        corpus = Path(name) / "corpus"
        write_parts(corpus, _DATA, options.data, QUICK_SENTENCES if options.quick else 0)
        given = {WHOLE: ({}, False), SHARDS: ({}, True), WORKERS: (RAY, True)}
        sides: dict[str, Callable[[], Cost]] = {
            tool: partial(timed, step_of(config_of(corpus, _DATA, _STEPS, *own)))
            for tool, own in given.items()
        }
        record.compare(_DATA, "outer iteration", alternate(repeats, sides))
    first, *others = measurements(record.rows.values())
    for one in others:
        ratios = [own / other for own, other in zip(one["wall"], first["wall"], strict=True)]
        record.remark(f"{one['tool']}: {min(ratios):.2f} to {max(ratios):.2f} times {WHOLE}.")


def measure_driver(options: Options) -> None:
    """Measure the peak memory of a driver and of its workers."""
    record = options.record("driver", "cluster", workers=_N)
    with TemporaryDirectory() as name:
        corpus, path = Path(name) / "corpus", Path(name) / "config.cfg"
        few = QUICK_SENTENCES if options.quick else 0
        n_tokens = write_parts(corpus, _LARGE, options.data, few, _TIMES)
        config_of(corpus, _LARGE, 1, RAY, True).to_disk(path)
        command = ["python", "-m", "spacy", "train", str(path), "--verbose"]
        cost = run([*command, "--output", str(Path(name) / "output")])
    held = max((int(most) for _, most in _HELD.findall(cost.output)), default=0)
    data, own = f"{_LARGE} x {_TIMES}", {"peak_mb": cost.peak_mb, "worker_mb": held}
    record.compare(data, "peak, resident", {OURS: [cost]}, tokens=n_tokens, **own)
    record.remark(f"{data}: {n_tokens:,} tokens, {held:,} MB in each worker, {cost.wall:.0f} s.")
