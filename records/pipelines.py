"""Labels and probabilities of 200 Docs by trained pipelines, optima of the oracle, and traces."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc, Token
from spacy.training import Example

from . import adapter, whole

_STACK: dict[str, Any] = {
    "learning": {"stack": {"folds": 2}},
    "features": {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": ["@chunks", "u:first[-1]", "u:first[1]"],
    },
}
# name: run of `whole` with the data, factory, settings besides the defaults, tags on predictions.
PIPELINES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "tagger": ("ewt", "sparse_crf", {}),
    "memm": ("ewt", "sparse_crf", {"model": "memm"}),
    "ner": ("es-3000", "sparse_crf_ner", {}),
    "outside": ("es-3000", "sparse_crf_ner", {"decoding": {"outside_weight": 1.0}}),
    "posterior": ("ewt", "sparse_crf", {"decoding": {"method": "posterior", "temperature": 1.5}}),
    "constrained": ("es-3000", "sparse_crf_ner", {"learning": {"constrained": True}}),
    "observed": ("conll2000", "sparse_crf_spans", {"learning": {"observed_only": True}}),
    "spans": ("conll2000", "sparse_crf_spans", {}),
    "stack": ("conll2000", "sparse_crf_spans", _STACK),
}
N, STEPS = 200, 6


def _docs(name: str, split: str, n: int, vocab: Any) -> list[Doc]:
    from spacy.tokens import DocBin

    path = Path(os.environ["RECORD_SCRATCH"]) / name
    if not (path / f"{split}.spacy").exists():
        whole.convert(name, path)
    return [*DocBin().from_disk(path / f"{split}.spacy").get_docs(vocab)][:n]


def _bare(gold: Doc) -> Doc:
    """Return a Doc with the words and, for spans, the tags of another."""
    tags = [token.tag_ for token in gold] if "sc" in gold.spans else None
    return Doc(gold.vocab, words=[token.text for token in gold], tags=tags)


def _labels(doc: Doc) -> list[Any]:
    spans = [(s.start, s.end, s.label_) for s in [*doc.ents, *doc.spans.get("sc", [])]]
    return [[token.tag_ for token in doc], spans]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _pipeline(name: str) -> dict[str, Any]:
    data, factory, settings = PIPELINES[name]
    nlp = spacy.blank("es" if data == "es-3000" else "en")
    pipe = nlp.add_pipe(factory, config=adapter.fitted({"n_threads": 1, **settings}))
    examples = [Example(_bare(gold), gold) for gold in _docs(data, "train", 1000, nlp.vocab)]
    nlp.initialize(lambda: examples)
    path = [repr(float(nlp.update(examples)[factory])) for _ in range(STEPS)]
    nlp.from_bytes(nlp.to_bytes())
    docs = [_bare(gold) for gold in _docs(data, "dev", N, nlp.vocab)]
    marginals = [p.tolist() for p in pipe.marginals(docs)]
    best = [repr(pipe.nbest(doc, 3)) for doc in docs[:20]]
    sure = [
        {**{f: str(getattr(u, f, "")) for f in ("entropy", "margin")}}
        for u in pipe.uncertainty(docs[:50])
    ]
    labels = [_labels(doc) for doc in nlp.pipe(docs)]
    return {
        **{"path": path, "n_active": pipe.model.n_active, "labels": _digest(labels)},
        **{"first_labels": json.dumps(labels[:2]), "marginals": _digest(marginals)},
        **{"best": _digest(best), "uncertainty": _digest(sure)},
        "weights": _digest(adapter.weights_of(pipe)),
        "mass": repr(sum(max(p) for doc in marginals for p in doc)),
    }


def _oracle(case: str) -> dict[str, Any]:
    """Train on the corpus of the oracle to its optimum."""
    folder = Path(os.environ["SPARSECRF_DATA"]).parent / "oracle"
    oracle = json.loads((folder / "oracle.json").read_text())
    penalty, text = oracle["cases"][case], gzip.open(folder / oracle["data"], "rt").read()
    if not Token.has_extension("chunk"):
        Token.set_extension("chunk", default=None)
    nlp = spacy.blank("xx")
    config: dict[str, Any] = {
        "features": {
            "@crf_features": "spacy_sparsecrf.CRFPPTemplates.v1",
            "text": "\n".join(oracle["template"]),
            "columns": ["orth", "tag"],
        },
        "target": {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", "attr": "_.chunk"},
        "solver": {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1", "tolerance": 1e-4, "window": 0.0},
        **{"l1": penalty["rho1"], "l2": penalty["rho2"], "dtype": "float64", "n_threads": 1},
    }
    pipe = nlp.add_pipe("sparse_crf", config=adapter.fitted(config))
    examples = []
    for block in text.strip("\n").split("\n\n"):
        words, tags, chunks = zip(*(line.split("\t") for line in block.split("\n")), strict=True)
        docs = [Doc(nlp.vocab, words=[*words], tags=[*tags]) for _ in range(2)]
        for token, chunk in zip(docs[1], chunks, strict=True):
            token._.chunk = chunk
        examples.append(Example(*docs))
    nlp.initialize(lambda: examples)
    for steps in range(1, 200):
        found = adapter.report_of(pipe, nlp.update(examples)[pipe.name])
        if found["converged"]:
            break
    pipe.to_bytes()
    relative = float(found["objective"]) / penalty["objective"] - 1.0
    return {**found, "n_active": pipe.model.n_active, "steps": steps, "above": f"{relative:.1e}"}


def _trace() -> dict[str, Any]:
    """Return what `trace.py` prints; RECORD_TRACE is its path."""
    _docs("ewt", "train", 1, spacy.blank("en").vocab)
    train = Path(os.environ["RECORD_SCRATCH"]) / "ewt/train.spacy"
    command = [sys.executable, os.environ["RECORD_TRACE"], str(train)]
    done = subprocess.run(command, capture_output=True, text=True)
    return {"noisy": done.stdout.strip() or done.stderr[-300:]}


def rows(scratch: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the named rows, or all."""
    warnings.simplefilter("ignore")
    os.environ["RECORD_SCRATCH"] = str(scratch)
    makers = {f"pipeline {name}": lambda name=name: _pipeline(name) for name in PIPELINES}
    makers |= {f"oracle {c}": lambda c=c: _oracle(c) for c in ("l2", "l2s", "l1", "en", "l1x")}
    if "RECORD_TRACE" in os.environ:
        makers["trace"] = _trace
    for name, make in makers.items():
        if names and not any(part in name for part in names):
            continue
        try:
            yield {"row": name, **make()}
        except Exception as error:
            yield {"row": name, "error": adapter.code_of(error), "text": str(error)[:200]}
