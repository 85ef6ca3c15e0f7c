"""Toy runs of every solver on every kind of model and kind of data, through the component."""

import hashlib
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Token
from spacy.training import Example

from . import adapter

KINDS = ("chain", "maxent", "memm")
DATA = ("l1", "l2", "start", "partial", "values", "prior")
TEMPLATES = ["u:lower[-1]", "u:lower[0]", "u:suffix(2)[0]", "b:", "b:suffix(1)[0]"]
FIRST, MOST = 5, 80


def sentences(n: int = 16, seed: int = 0) -> list[tuple[list[str], list[str], list[float]]]:
    """Draw words, tags and numbers."""
    rng, drawn = random.Random(seed), []
    for _ in range(n):
        tags = [rng.choice(["NN", "VB", "JJ", "DT"]) for _ in range(rng.randint(1, 7))]
        words = [rng.choice("abcde") + rng.choice("xyz") + tag[0].lower() for tag in tags]
        words = [w if rng.random() < 0.7 else w[:2] + "n" for w in words]
        drawn.append((words, tags, [round(rng.gauss(0.0, 1.0), 3) for _ in tags]))
    return drawn


def examples(nlp: Language, data: str, seed: int = 0) -> list[Example]:
    """Return Examples; with "partial", a third of the tokens has no tag."""
    rng, made = random.Random(1), []
    for words, tags, numbers in sentences(seed=seed):
        if data == "partial":
            tags = ["" if rng.random() < 0.33 else tag for tag in tags]
        docs = Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, tags=tags)
        for doc in docs:
            for token, number in zip(doc, numbers, strict=True):
                token._.number = number
        made.append(Example(*docs))
    return made


def pipeline(solver: str, kind: str, data: str, l1: float, l2: float, prior: Path) -> Any:
    """Return a pipeline and its component."""
    if not Token.has_extension("number"):
        Token.set_extension("number", default=None)
    nlp = spacy.blank("xx")
    templates = TEMPLATES[:3] if kind == "maxent" else TEMPLATES
    if data == "values":
        templates = [*templates, "u:value(_.number)[0]"]
    settings = {"inner_iterations": 5, "seed": 1, "tolerance": 1e-7, "window": 0.0}
    known = adapter.settings_of(solver)
    settings = {key: value for key, value in settings.items() if key in known}
    config: dict[str, Any] = {
        "solver": {"@crf_solvers": f"spacy_sparsecrf.{solver}.v1", **settings},
        "features": {
            "@crf_features": "spacy_sparsecrf.Templates.v1",
            "templates": templates,
            "start_label": data == "start",
        },
        **{"model": kind, "l1": l1, "l2": l2, "dtype": "float64", "n_threads": 1},
    }
    if data == "prior":
        config["learning"] = {"prior": str(prior)}
    return nlp, nlp.add_pipe("sparse_crf", config=adapter.seeded(adapter.fitted(config), 1))


def make_prior(path: Path, kind: str) -> Path:
    """Train the model of the prior on other sentences; return its folder."""
    path = path / f"prior-{kind}"
    nlp, _ = pipeline("OWLQN", kind, "l1", 0.3, 0.5, path)
    nlp.initialize(lambda: examples(nlp, "l1", seed=5))
    for _ in range(10):
        nlp.update(examples(nlp, "l1", seed=5))
    nlp.to_disk(path)
    return path


def state(pipe: Any, loss: float) -> dict[str, Any]:
    """Return the last report, the number of weights and a digest of them by names."""
    lines = adapter.weights_of(pipe)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    return {**adapter.report_of(pipe, loss), "n_active": pipe.model.n_active, "weights": digest}


def run(nlp: Language, pipe: Any, given: list[Example]) -> dict[str, Any]:
    """Train; return the first objectives, the state after them, and the state at the end."""
    nlp.initialize(lambda: given)
    path, first, steps, loss = [], {}, 0, 0.0
    while steps < MOST:
        loss = nlp.update(given)[pipe.name]
        path.append(repr(float(loss)))
        steps += 1
        found = adapter.report_of(pipe, loss)
        if steps == FIRST or (found["converged"] and steps < FIRST and not first):
            first = state(pipe, loss)
        if found["converged"] and steps >= FIRST:
            break
    return {"path": path[: FIRST + 1], "first": first, "end": state(pipe, loss), "steps": steps}


def row(solver: str, kind: str, data: str, prior: Path) -> dict[str, Any]:
    """Return the row of a combination; without l1 or l2 where the solver asks for it."""
    l1, l2 = {"l1": (0.3, 0.0), "l2": (0.0, 0.5)}.get(data, (0.3, 0.5))
    name = f"solver {solver} {kind} {data}"
    while True:
        try:
            nlp, pipe = pipeline(solver, kind, data, l1, l2, prior)
            return {"row": name, "l1": l1, "l2": l2, **run(nlp, pipe, examples(nlp, data))}
        except Exception as error:
            code = adapter.code_of(error)
            if data not in ("l1", "l2") and (l1, l2) != (0.0, 0.0) and code in ("SC308", "SC336"):
                l1, l2 = (0.0, l2) if l1 else (0.0, 0.0)
                continue
            return {"row": name, "l1": l1, "l2": l2, "error": code}


def rows(scratch: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield rows of the named solvers, or of all."""
    warnings.simplefilter("ignore")
    known = adapter.registered_solvers()
    priors = {kind: make_prior(scratch, kind) for kind in KINDS}
    for solver in names or adapter.SOLVERS:
        for kind in KINDS:
            for data in DATA:
                if solver in known:
                    yield row(solver, kind, data, priors[kind])
                else:
                    yield {"row": f"solver {solver} {kind} {data}", "error": "cut"}
