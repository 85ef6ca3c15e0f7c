"""Every pair of settings: it trains, or the table of incompatible facts refuses it.

The settings are the fields of the blocks of a component and the registered solvers. A sample value
is derived from a field's default, or listed in SAMPLES. Settings of decoding are paired with a
component that has been trained without them.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_sparsecrf import compatible
from spacy_sparsecrf.crf.solvers.rprop import RPROP
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.component import SparseCRFPipe
from spacy_sparsecrf.pipeline.engines import Threads
from spacy_sparsecrf.pipeline.factories import FACTORIES
from spacy_sparsecrf.pipeline.settings import (
    ComponentSettings,
    DecodingSettings,
    LearningSettings,
    SettingsBlock,
    Setup,
)
from spacy_sparsecrf.registry import crf_engines, crf_features, crf_solvers, crf_targets

from .support.span_cases import add_spans, chunks_of
from .support.toy import make_sentences

Fragment = dict[str, Any]

NAME = "crf"
TEMPLATES = ["b:", "u:", "u:lower[0]", "u:suffix(3)[0]"]
FEATURES = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": TEMPLATES}
BASE: Fragment = {"factory": "sparse_crf_spans", "features": FEATURES, "n_threads": 1}
BASE |= {"l1": 0.1, "l2": 0.1}
SENTENCES = make_sentences(8, seed=1)


def biluo(tags: list[str]) -> list[str]:
    """Return the labels of the chunks of a sentence, which taggers learn too."""
    labels = ["O"] * len(tags)
    for start, end, name in chunks_of(tags):
        inside = [f"I-{name}"] * (end - start - 2)
        many = [f"B-{name}", *inside, f"L-{name}"]
        labels[start:end] = many if end - start > 1 else [f"U-{name}"]
    return labels


# The pairs of labels in the data.
GOLD = sorted({pair for _, tags in SENTENCES for pair in pairwise(["", *biluo(tags), ""])})


@crf_engines("test.Divided.v1")
@dataclass(frozen=True)
class Divided(Threads):
    """An engine that divides the files of the training corpus, as `Ray` does without shards."""

    divides: ClassVar[bool] = True


def with_templates(*templates: str) -> Fragment:
    return {"features": {"templates": list(templates)}}


# Values of settings that their defaults do not tell, with what each needs.
SAMPLES: dict[str, list[Fragment]] = {
    "model": [{"model": kind} for kind in ("maxent", "memm", "chain")],
    "l1": [{"l1": 0.0}, {"l1": 0.2}],
    "l2": [{"l2": 0.0}, {"l2": 0.2}],
    "sequences": [{"sequences": "sents"}],
    "learning.label_weights": [{"learning": {"label_weights": {"U-VP": 2.0}}}],
    "learning.doc_weight": [{"learning": {"doc_weight": "weight"}}],
    "learning.prior": [{"learning": {"prior": "prior"}}],
    "learning.stack": [
        {"learning": {"stack": {"folds": 2, "steps": 1}}} | with_templates("u:first[0]"),
        {"learning": {"stack": {"folds": 2, "steps": 1}}},
        with_templates("u:doc_entity[0]"),
    ],
    "learning.warm_start": [{"learning": {"warm_start": {"epochs": 2}}}],
    "learning.polish": [{"learning": {"polish": {"iterations": 2}}}],
    "learning.clusters": [
        {"learning": {"clusters": 2}, "model": "maxent"},
        {"learning": {"clusters": 2}},
    ],
    "learning.precision": [{"learning": {"precision": "float32"}}],
    "decoding.method": [{"decoding": {"method": "posterior"}}],
    "decoding.forbidden": [{"decoding": {"forbidden": [["U-VP", "U-VP"]]}}],
    "decoding.allowed": [{"decoding": {"allowed": [*map(list, GOLD)]}}],
    "decoding.outside_weight": [{"decoding": {"outside_weight": -1.0}}],
    "decoding.thresholds": [{"decoding": {"thresholds": {"NP": 0.5}}}],
    "decoding.once": [{"decoding": {"once": ["NP"]}}],
}
# Settings with little effect on the samples, which are tried together.
TOGETHER = {"n_threads", "learning.store_feature_names", "learning.dtype"}
TOGETHER |= {"learning.negative_rate", "learning.negative_seed"}
# Other parts of a component, and of its data and use.
PATTERNS = {"@crf_features": "spacy_sparsecrf.CRFPPTemplates.v1", "columns": ["orth"]}
TARGET = {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1"}
PARTS: dict[str, Fragment] = {
    "tokens": {"factory": "sparse_crf"},
    "several labels": {"factory": "sparse_crf", "target": {**TARGET, "alternatives": "|"}},
    "outside": {"factory": "sparse_crf", "target": {**TARGET, "outside": "O"}},
    "values": with_templates("u:vector[0]"),
    "word labels": with_templates("@word_labels"),
    "patterns": {"features": {**PATTERNS, "text": "U00:%x[0,0]\nB"}},
    "shards": {"shards": True},
    "divided": {"engine": {"@crf_engines": "test.Divided.v1"}, "divided": True},
    "annotated": {"annotated": True},
    "no corpus": {"corpus": False},
}
# Settings with which a solver trains, by its requirements.
NEEDS: dict[str, Fragment] = {
    "no l1": {"l1": 0.0},
    "no l2": {"l2": 0.0},
    "single tokens": {"model": "maxent"},
}


def changed(value: Any) -> Any:
    """Return another valid value of a setting."""
    if isinstance(value, bool):
        return not value
    if value == "float32":
        return "float64"
    return value + 1 if isinstance(value, int) else value + 0.25


def settings() -> Iterator[tuple[str, Fragment]]:
    """Yield all settings of components, with values that are not the defaults."""
    base = {"n_threads": 1, "overwrite": False, "threshold": 0.0}
    blocks: list[tuple[str, type[SettingsBlock]]] = [("", ComponentSettings)]
    blocks += [("decoding", DecodingSettings), ("learning", LearningSettings)]
    for block, kind in blocks:
        for name, field in kind.model_fields.items():
            key = f"{block}.{name}" if block else name
            if key in ("decoding", "learning"):
                continue
            for i, sample in enumerate(SAMPLES.get(key, ())):
                yield f"{key} {i}", sample
            if key not in SAMPLES:
                value = changed(field.default if block else base[name])
                yield key, {block: {name: value}} if block else {name: value}


def solvers() -> Iterator[tuple[str, Fragment]]:
    """Yield all solvers of the package, with what each needs."""
    for name in sorted(crf_solvers.get_all()):
        if name.startswith("spacy_sparsecrf."):
            needs = [NEEDS[need] for need in crf_solvers.get(name)().requires if need in NEEDS]
            yield name, merged({"solver": {"@crf_solvers": name}}, *needs)


def merged(*fragments: Mapping[str, Any]) -> Fragment:
    """Combine fragments; a later one replaces earlier values and parts, and adds templates."""
    whole: Fragment = {}
    for fragment in fragments:
        for key, value in fragment.items():
            known = whole.get(key)
            if key == "templates" and known:
                whole[key] = list(dict.fromkeys([*known, *value]))
            else:
                of_block = isinstance(known, dict) and isinstance(value, dict)
                names_part = of_block and any(name.startswith("@") for name in value)
                whole[key] = merged(known, value) if of_block and not names_part else value
    return whole


SOLVERS = dict(solvers())
OWN = dict(settings())
FRAGMENTS = {key: value for key, value in OWN.items() if key not in TOGETHER}
FRAGMENTS |= {"together": merged(*(OWN[key] for key in TOGETHER)), **PARTS, **SOLVERS}
# The kind of model and penalties of all other pairs are tried with solvers only.
ALONE = {"model 2", "l1 1", "l2 1"}
PAIRS = [
    (one, two)
    for one, two in combinations(FRAGMENTS, 2)
    if one not in SOLVERS and (two in SOLVERS or not ALONE & {one, two})
]
# Kernels of solvers are compiled in single precision for these pairs alone.
SINGLE = [(one, two) for one, two in PAIRS if one == "learning.precision 0" and two in SOLVERS]


@cache
def function(registry: Any, name: str) -> Any:
    return registry.get(name)


def made(registry: Any, section: Fragment) -> Any:
    """Make a part of a component from its section of a config."""
    arguments = dict(section)
    name = arguments.pop(next(key for key in section if key.startswith("@")))
    return function(registry, name)(**arguments)


class Bench:
    """Data and pipelines for all pairs, and what they led to.

    refused: the facts of the rows that refused pairs; trained: saved components, by the name of
    a fragment.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.refused: set[tuple[str, str]] = set()
        self.trained: dict[str, bytes | None] = {}
        self.nlp = spacy.blank("xx")
        self.nlp.vocab.reset_vectors(width=2)
        rng = np.random.default_rng(0)
        for word in sorted({word for words, _ in SENTENCES for word in words}):
            self.nlp.vocab.set_vector(word, rng.normal(size=2).astype(np.float32))
        self.annotated = spacy.blank("xx", vocab=self.nlp.vocab)
        self.annotated.add_pipe("sentencizer")
        self.annotated.config["training"]["annotating_components"] = ["sentencizer"]
        self.examples = [
            Example(self.doc(words), add_spans(self.doc(words, biluo(tags)), chunks_of(tags), "sc"))
            for words, tags in SENTENCES
        ]
        words, tags = SENTENCES[-1]
        several = [f"{label}|O" for label in biluo(tags)]
        self.several = [*self.examples, Example(self.doc(words), self.doc(words, several))]
        docs = [example.reference for example in self.examples]
        DocBin(docs=docs).to_disk(path / "part.spacy")
        for name in ("settings", "tokens", "patterns"):
            config = merged(BASE, PARTS.get(name, {}))
            pipe = self.pipe(config)
            self.initialize(pipe, config)
            self.train(pipe, config)
            pipe.to_disk(path / name, exclude=["vocab"])

    def doc(self, words: list[str], tags: list[str] | None = None) -> Doc:
        return Doc(self.nlp.vocab, words=words, tags=tags)

    def pipe(self, config: Fragment) -> SparseCRFPipe:
        """Make a component, as its factory does."""
        given = merged(FACTORIES[config["factory"]].default_config, config)
        own = {key: value for key, value in given.items() if key in ComponentSettings.model_fields}
        if own["learning"]["prior"]:
            kind = "tokens" if config["factory"] == "sparse_crf" else "settings"
            kind = "patterns" if "text" in given["features"] else kind
            own["learning"]["prior"] = str(self.path / kind)
        features, target = made(crf_features, given["features"]), made(crf_targets, given["target"])
        solver, engine = made(crf_solvers, given["solver"]), made(crf_engines, given["engine"])
        solver = replace(solver, inner_iterations=min(4, solver.inner_iterations))
        if config["factory"] == "sparse_crf":  # thresholds are of labels, not of types
            by_label = {f"U-{name}": p for name, p in own["decoding"].get("thresholds", {}).items()}
            own["decoding"] = {**own["decoding"], "thresholds": by_label}
        settings = ComponentSettings.validated(NAME, own)
        return SparseCRFPipe(
            self.nlp.vocab, Setup(NAME, features, target, solver, settings, engine)
        )

    def initialize(self, pipe: SparseCRFPipe, config: Fragment) -> None:
        """Initialize a component with the corpus of a pair."""
        nlp = self.nlp if config.get("shards") else None
        nlp = self.annotated if config.get("annotated") else nlp
        if config.get("divided"):
            nlp = nlp or self.nlp
            nlp.config["corpora"]["train"]["path"] = str(self.path / "part.spacy")
        shards = [str(self.path / "part.spacy")] if config.get("shards") else []
        examples = self.several if "alternatives" in config.get("target", {}) else self.examples
        examples = [] if shards or config.get("divided") else examples
        if config.get("corpus") is False:
            examples = [Example.from_dict(self.doc(["x", "y", "z"]), {})]
        pipe.initialize(lambda: examples, nlp=nlp, shards=shards)

    def train(self, pipe: SparseCRFPipe, config: Fragment) -> None:
        """Train a component, and check that the objective falls."""
        losses = []
        for _ in range(2):
            losses.append(pipe.update(self.examples)[NAME])
            pipe.finish_update(None)
        assert all(map(math.isfinite, losses))
        falls = losses[-1] <= losses[0] * (1.0 + 1e-6)
        # RPROP may overshoot with its first widths.
        falls |= isinstance(pipe.solver, RPROP)
        assert falls or not pipe.solver.exact, f"the objective rises: {losses}"

    def train_or_refuse(self, config: Fragment, saves: bool = True) -> bytes | None:
        """Train a component, and save it; None if the table refuses it, which leaves it as it was.

        saves: if not, it is not saved: what is saved does not depend on the solver.
        """
        found: list[tuple[str, str]] = []
        check, pipe = compatible.check, None

        def watched(facts: compatible.Facts, *args: Any, **named: Any) -> None:
            found.extend(row for row in compatible.REFUSED if {*row} <= {*facts})
            check(facts, *args, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compatible, "check", watched)
            try:
                pipe = self.pipe(config)
                for act in (self.initialize, self.train):
                    act(pipe, config)
            except SparseCRFError as error:
                assert found and str(error)[:7] == compatible.REFUSED[found[0]][:7], error
                self.refused.update(found)
                if pipe is not None:
                    before = self.pipe(config)
                    if act == self.train:
                        self.initialize(before, config)
                    saved = [each.to_bytes(exclude=["vocab"]) for each in (pipe, before)]
                    assert saved[0] == saved[1], "it changed"
                return None
        assert not found
        return self.saved(pipe) if saves else None

    def saved(self, pipe: SparseCRFPipe) -> bytes:
        """Save a component; the saved one predicts and saves the same."""
        saved, loaded = pipe.to_bytes(exclude=["vocab"]), SparseCRFPipe(self.nlp.vocab, pipe.setup)
        loaded.from_bytes(saved)
        assert loaded.to_bytes(exclude=["vocab"]) == saved, "the saved component saves others"
        assert self.predicted(loaded) == self.predicted(pipe), "the saved component predicts others"
        return saved

    def predicted(self, pipe: SparseCRFPipe) -> list[Any]:
        docs = pipe.pipe([self.doc(words) for words, _ in SENTENCES[:2]])
        return [
            ([t.tag_ for t in doc], [(s.start, s.end, s.label_) for s in doc.spans.get("sc", ())])
            for doc in docs
        ]

    def decode(self, name: str, config: Fragment) -> None:
        """Predict by a component trained without settings of decoding, unless they are refused.

        name: of the fragment that it is trained with; config: with the settings of decoding.
        """
        if name not in self.trained:
            self.trained[name] = self.train_or_refuse(merged(BASE, FRAGMENTS.get(name, {})))
        trained = self.trained[name]
        try:
            pipe = self.pipe(config)
        except SparseCRFError as error:
            rows = [row for row, text in compatible.REFUSED.items() if text[:7] == str(error)[:7]]
            assert rows, error
            self.refused.update(rows)
            return
        if trained is not None:
            self.saved(pipe.from_bytes(trained))


def of_decoding(name: str) -> bool:
    return name.split(".")[0].split()[0] in ("decoding", "overwrite", "threshold")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("single", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_all_pairs_train_or_are_refused_by_a_row(single, tmp_path):
    if not Doc.has_extension("weight"):
        Doc.set_extension("weight", default=1.0)
    bench, failures = Bench(tmp_path), []
    for one, two in SINGLE if single else sorted({*PAIRS} - {*SINGLE}):
        config = merged(BASE, FRAGMENTS[one], FRAGMENTS[two])
        if two in SOLVERS:
            config = merged(BASE, FRAGMENTS[two], FRAGMENTS[one])
        try:
            if of_decoding(one):
                bench.decode("" if of_decoding(two) else two, config)
            elif of_decoding(two):
                bench.decode(one, config)
            else:
                bench.train_or_refuse(config, saves=two not in SOLVERS)
        except Exception as error:
            failures.append(f"{one} + {two}: {error!r}")
    unused = [" + ".join(row) for row in compatible.REFUSED if row not in bench.refused]
    assert not failures, "\n".join(failures)
    assert single or not unused, f"rows that refuse no pair: {unused}"
