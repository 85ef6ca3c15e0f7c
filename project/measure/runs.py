"""Runs of `spacy train` whose models are compared byte by byte, and their corpora."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import spacy
from bench.ours import L1, L2
from spacy.tokens import DocBin, Token
from spacy.util import load_config

from . import CONFIGS
from .data import sources
from .processes import Child

# An engine's config section; {}: threads, the default.
Engine = Mapping[str, Any]
THREADS: Engine = {}
SETS = "ud-en-ewt", "conll2000", "nettalk-3grm"
TEMPLATES = ["b:", "*:lower[0]", "u:suffix(3)[0]", "u:lower[-1]", "u:lower[1]"]
TOY = "toy"
_N_DEV = 200
# End of each part of a corpus, as a share of the whole; the parts differ in size.
ENDS = [0.0, 0.02, 0.2, 0.3, 0.55, 0.6, 0.85, 1.0]
_LABEL = "label"


def ray_engine(address: str | None, workers: int) -> Engine:
    """Return an engine with workers of a Ray cluster, one core each."""
    own = {"num_workers": workers, "address": address, "max_restarts": 1_000}
    return {"@crf_engines": "spacy_sparsecrf.Ray.v1", **own}


def tagger_config(
    train: Path,
    dev: Path,
    component: Mapping[str, Any],
    training: Mapping[str, Any],
    initialize: Mapping[str, Any],
) -> Any:
    """Return the shipped tagger config with changed settings and few templates.

    The sentencizer is removed, because it saves its marks in a different order each time.
    """
    config = load_config(CONFIGS / "tagger.cfg")
    config["paths"].update(train=str(train), dev=str(dev))
    pipe = config["components"]["crf"]
    config["nlp"]["pipeline"], config["components"] = ["crf"], {"crf": pipe}
    training = {"annotating_components": [], **training}
    pipe["features"]["templates"] = TEMPLATES
    pipe.update(component)
    config["training"] = {**config["training"], "patience": 0, **training}
    config["initialize"]["components"]["crf"] = dict(initialize)
    return config


@dataclass(frozen=True)
class Run:
    """A training run on a corpus in parts.

    corpus: directory of parts; name: of a data set, or `TOY`; steps: outer iterations; component,
    initialize: further settings of the component, and of its initialization.
    """

    corpus: Path
    name: str
    steps: int
    component: Mapping[str, Any] = field(default_factory=dict)
    initialize: Mapping[str, Any] = field(default_factory=dict)

    def config(self, engine: Engine) -> Any:
        """Return the config with an engine."""
        solver = {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1", "inner_iterations": 2}
        component = {"l1": L1, "l2": L2, "n_threads": 2, "solver": solver, **self.component}
        initialize = {"shards": [str(self.corpus / "part-*.spacy")], **self.initialize}
        paths = self.corpus / "part-1.spacy", self.corpus / "dev.spacy"
        config = tagger_config(*paths, component, {"max_steps": self.steps}, initialize)
        pipe = config["components"]["crf"]
        if engine:
            pipe["engine"] = dict(engine)
        if self.name != TOY:
            source = sources()[self.name]
            pipe["features"]["templates"] = list(source.templates)
            pipe["solver"].pop("inner_iterations")
            pipe["target"]["attr"] = f"_.{_LABEL}"
            config["training"]["score_weights"] = {"tag_acc": None, f"{_LABEL}_acc": 1.0}
            own = {"gold_tokens": True, "annotations": [] if source.tag is None else ["tag"]}
            for part in ("train", "dev"):
                config["corpora"][part].update(own)
        return config

    def start(self, folder: Path, engine: Engine, **options: Any) -> Child:
        """Start `spacy train` in a directory, and write its log there."""
        return start(folder, self.config(engine), **options)

    def finish(self, folder: Path, engine: Engine) -> dict[str, bytes]:
        """Run to the end. RETURNS: the models."""
        self.start(folder, engine).wait()
        return models_of(folder)


def start(folder: Path, config: Any, **options: Any) -> Child:
    """Start `spacy train` with a config."""
    folder.mkdir(parents=True, exist_ok=True)
    config.to_disk(folder / "config.cfg")
    command = ["python", "-m", "spacy", "train", str(folder / "config.cfg"), "--verbose"]
    output = ["--output", str(folder / "output")]
    return Child([*command, *output], log=folder / "log", **options)


def models_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a run's models, without configs, which name the engine."""
    paths = [path for path in (folder / "output").rglob("*") if path.is_file()]
    found = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    return {name: data for name, data in found.items() if not name.endswith("config.cfg")}


def write_set(folder: Path, name: str, data: str, sentences: int) -> None:
    """Write a data set as parts and a development part, with labels in an extension attribute."""
    if not Token.has_extension(_LABEL):
        Token.set_extension(_LABEL, default=None)
    source, vocab = sources()[name], spacy.blank("en").vocab
    rows = source.rows("train", data, sentences)
    docs = list(source.docs(rows, vocab))
    for sentence, doc in zip(rows, docs, strict=True):
        for token, row in zip(doc, sentence, strict=True):
            token._.set(_LABEL, row[source.label])
    ends = [round(end * len(docs)) for end in ENDS]
    folder.mkdir(parents=True)
    parts = {f"part-{i}": docs[a:b] for i, (a, b) in enumerate(pairwise(ends))}
    for part, own in (parts | {"dev": docs[:_N_DEV]}).items():
        DocBin(docs=own, store_user_data=True).to_disk(folder / f"{part}.spacy")
