"""Corpora in parts, and runs of `spacy train` that share them by an engine."""

import subprocess
import sys
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import bench.data
import spacy
from spacy.tokens import Doc, DocBin, Token
from spacy.util import load_config

from .kills import left, write_corpus

Process: TypeAlias = "subprocess.Popen[bytes]"
# What a config says of an engine; "threads": what is ours by default, and nothing is said.
Engine: TypeAlias = dict[str, Any]

CORPORA = "ud-en-ewt", "conll2000", "nettalk-3grm"
THREADS: Engine = {}
_N_PARTS, _N_DEV, _N_TOY = 7, 200, 1_200
# Where its parts end, of the whole: they differ in size.
_ENDS = [0.0, 0.02, 0.2, 0.3, 0.55, 0.6, 0.85, 1.0]
_LABEL = "label"
_TOY_TEMPLATES = ["b:", "*:lower[0]", "u:suffix(3)[0]", "u:lower[-1]", "u:lower[1]"]


def ray_engine(address: str, workers: int, **settings: Any) -> Engine:
    """An engine of workers of a cluster, each with a core."""
    own = {"num_workers": workers, "address": address, "max_restarts": 1_000}
    return {"@crf_engines": "spacy_sparsecrf.Ray.v1", **own, **settings}


def write_docs(folder: Path, name: str, directories: list[str], sentences: int) -> None:
    """Write a corpus as parts and a development part; the labels are an extension of tokens."""
    if not Token.has_extension(_LABEL):
        Token.set_extension(_LABEL, default=None)
    source, vocab = bench.data.sources()[name], spacy.blank("en").vocab
    rows = bench.data.sample(bench.data.read_rows(source, directories), sentences)
    docs = []
    for sentence, doc in zip(rows, bench.data.make_docs(source, rows, vocab), strict=True):
        for token, row in zip(doc, sentence, strict=True):
            token._.set(_LABEL, row[source.label])
        docs.append(doc)
    write_parts(folder, docs)


def write_parts(folder: Path, docs: list[Doc]) -> None:
    """Write Docs in parts, and the first of them as a development part."""
    ends = [round(end * len(docs)) for end in _ENDS]
    folder.mkdir(parents=True)
    for i, (first, last) in enumerate(pairwise(ends)):
        DocBin(docs=docs[first:last], store_user_data=True).to_disk(folder / f"part-{i}.spacy")
    DocBin(docs=docs[:_N_DEV], store_user_data=True).to_disk(folder / "dev.spacy")


def write_toy(folder: Path) -> None:
    """Write made-up tagged sentences, as parts."""
    folder.mkdir(parents=True)
    for i in range(_N_PARTS):
        write_corpus(folder / f"part-{i}.spacy", _N_TOY // _N_PARTS * (1 + i % 2), i)
    write_corpus(folder / "dev.spacy", _N_DEV, _N_PARTS)


def config_of(corpus: Path, name: str, steps: int, **initialize: Any) -> Any:
    """The config of a run on the parts in a folder, without an engine.

    name: of the corpus, "" for made-up sentences; steps: outer iterations; initialize: what else
    the component is initialized with.
    """
    config = load_config(Path(str(files("spacy_sparsecrf.configs") / "tagger.cfg")))
    parts = str(corpus / "part-*.spacy")
    config["paths"].update(train=str(corpus / "part-0.spacy"), dev=str(corpus / "dev.spacy"))
    pipe, training = config["components"]["sparse_crf"], config["training"]
    pipe.update(l1=bench.data.L1, l2=bench.data.L2, n_threads=2)
    pipe["features"]["templates"] = _TOY_TEMPLATES
    pipe["solver"]["inner_iterations"] = 2
    training.update(patience=0, max_steps=steps)
    if name:
        source = bench.data.sources()[name]
        pipe["features"]["templates"] = list(source.templates)
        pipe["solver"].pop("inner_iterations")
        pipe["target"]["attr"] = f"_.{_LABEL}"
        training["score_weights"] = {"tag_acc": None, f"{_LABEL}_acc": 1.0}
        for part in ("train", "dev"):
            own = {"gold_tokens": True, "annotations": [] if source.tag is None else ["tag"]}
            config["corpora"][part].update(own)
    config["initialize"]["components"]["sparse_crf"] = {"shards": [parts], **initialize}
    return config


def start(config: Any, folder: Path, engine: Engine) -> Process:
    """Start `spacy train` in a folder of its own, which has a log then."""
    folder.mkdir(parents=True, exist_ok=True)
    own = config.copy()
    if engine:
        own["components"]["sparse_crf"]["engine"] = engine
    own.to_disk(folder / "config.cfg")
    command = ["train", str(folder / "config.cfg"), "--output", str(folder / "output"), "--verbose"]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "spacy", *command], stdout=log, stderr=subprocess.STDOUT
        )


def ended(process: Process, folder: Path) -> dict[str, bytes]:
    """Wait for a run. RETURNS: its models, but for their configs, which name the engine.

    RAISES: RuntimeError where it has failed.
    """
    if process.wait():
        log = (folder / "log").read_text(errors="replace")
        raise RuntimeError(f"the run in {folder} failed:\n{log[-2000:]}")
    found = left(folder)
    return {name: data for name, data in found.items() if not name.endswith("config.cfg")}
