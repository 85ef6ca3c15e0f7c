"""`warmup`: compile all kernels in advance, for container images and CI."""

import logging
import time
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import logger
from typer import Option

from ...crf.compilation import watch_compilation
from ...errors import SparseCRFWarning
from ...pipeline.features.defaults import DEFAULT_TEMPLATES
from ...pipeline.features.featurizer import Featurizer
from ...pipeline.targets.entities import Entities
from ...progress import Task
from ...registry import crf_solvers
from .printing import msg

_HELPER = "spacy_sparsecrf.tools.compile_ahead warmup"
_OWLQN = "spacy_sparsecrf.OWLQN.v1"
# Includes a bigram template, which needs additional kernels.
_TEMPLATES = [*DEFAULT_TEMPLATES, "b:lower[0]"]
_WORDS, _TAGS = ["a", "b", "c"], ["X", "Y", "X"]


def warmup(
    prediction: Annotated[
        bool, Option("--prediction", help="Compile only the kernels of prediction")
    ] = False,
    verbose: Annotated[bool, Option("--verbose", "-V", help="Name each kernel")] = False,
) -> None:
    """Compile the kernels of training (all solvers and models) and of prediction.

    Compiled kernels are cached in the user's cache directory (~/.cache/spacy-sparsecrf on Linux),
    or in the directory that the environment variable NUMBA_CACHE_DIR names.
    """
    logger.setLevel(logging.DEBUG if verbose else logger.level)
    start = time.perf_counter()
    with Task("Warming up"), warnings.catch_warnings():
        warnings.simplefilter("ignore", SparseCRFWarning)
        compiled = watch_compilation(helper="" if prediction else _HELPER)
        compiled.with_notice = False
        if prediction:
            _predict()
        else:
            for config in all_kinds():
                train_and_predict(config)
            train_entities()
    seconds = time.perf_counter() - start
    msg.good(f"Kernels are compiled: {compiled.n_compiled} now, in {seconds:.1f} s")


def all_kinds() -> Iterator[dict[str, Any]]:
    """Yield settings of a component for each solver, for other types of model, and without l1."""
    makers = crf_solvers.get_all()
    for name in sorted(makers, key=lambda name: (name != _OWLQN, name)):
        # Skips solvers of other packages.
        if name.startswith("spacy_sparsecrf."):
            yield _settings_of(name, "chain")
    for model in "maxent", "memm":
        yield _settings_of(_OWLQN, model)
    yield {**_settings_of(_OWLQN, "chain"), "l1": 0.0}


def _settings_of(name: str, model: str) -> dict[str, Any]:
    """Return settings of a component, with a penalty and a loss that the solver supports."""
    requires = crf_solvers.get(name)().requires
    return {
        "solver": {"@crf_solvers": name},
        "features": {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": _TEMPLATES},
        "l1": 0.0 if "no l1" in requires else 0.5,
        "l2": 0.0 if "no l2" in requires else 0.01,
        "model": "maxent" if "single tokens" in requires else model,
        "n_threads": 1,
    }


def train_and_predict(config: dict[str, Any]) -> None:
    """Train for two steps on a corpus just large enough to call every kernel, and predict."""
    nlp = spacy.blank("en")
    pipe: Any = nlp.add_pipe("sparse_crf", config=config)
    docs = [Doc(nlp.vocab, words=_WORDS[i:] + _WORDS[:i]) for i in range(3)]
    examples = [Example.from_dict(doc, {"tags": _TAGS}) for doc in docs]
    nlp.initialize(lambda: examples)
    for _ in range(2):
        nlp.update(examples)
    # Also decodes a loaded model, which uses the same kernels.
    nlp.from_bytes(nlp.to_bytes())
    _call_all(pipe, nlp("a b c"))


def train_entities() -> None:
    """Train an entity recogniser on three Docs, and predict."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf_ner")
    examples = []
    for words in ["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]:
        gold = Doc(nlp.vocab, words=words)
        gold.ents = [Span(gold, 0, 1, "X")]
        examples.append(Example(Doc(nlp.vocab, words=words), gold))
    nlp.initialize(lambda: examples)
    for _ in range(2):
        nlp.update(examples)
    nlp.from_bytes(nlp.to_bytes())
    nlp("a b c")


def _predict() -> None:
    """Label a Doc with a component that has labels but no weights."""
    nlp = spacy.blank("en")
    pipe: Any = nlp.add_pipe("sparse_crf")
    for tag in _TAGS:
        pipe.add_label(tag)
    _call_all(pipe, nlp("a b c"))


def _call_all(pipe: Any, doc: Doc) -> None:
    """Call all prediction methods of a component on a Doc, and those of targets of spans."""
    target, labels, ids = Entities(), ["U-X", "O"], [np.zeros(len(doc), np.int32)]
    target.spans(ids, labels)
    target.write([doc], ids, labels, overwrite=True)
    # Of taggers of sequences without Docs.
    from ...crf.kernels.layout import Csr
    from ...crf.kernels.values import score_numbered

    one, none = np.ones(1, np.int64), np.zeros(0, np.int64)
    blocks = Csr(np.zeros(3, np.int64), np.zeros(0, np.int32))
    score_numbered(
        sizes=one,
        numbers=one,
        places=none,
        values=np.zeros(0, np.float32),
        blocks=blocks,
        weights=np.zeros(0),
        scores=np.zeros((1, 8)),
    )
    Featurizer(["u:doc_run[0]"])([Doc(doc.vocab, words=["A", ".", "B", "A"])])
    pipe.marginals([doc])
    pipe.nbest(doc, 2)
    pipe.log_probability(doc, _TAGS)
    pipe.span_probabilities(doc, [(0, ["X"])])
