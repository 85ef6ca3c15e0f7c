"""Runs each registered solver for two steps, and tells for what types each kernel was compiled.

Run as a module, with a precision as its argument and an empty cache: counts are of a process, and
code from the disk hides what was compiled with it.
"""

import json
import sys
import warnings
from typing import Any

import spacy
from numba import types

from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.registry import crf_solvers

from ..solvers.in_use import SOLVERS_IN_USE
from ..toy import examples_of, make_sentences, run_steps
from .compiled_cases import Signatures, all_kernels

TEMPLATES = ["u:lower[0]", "u:suffix(2)[0]", "b:", "b:lower[0]"]


def settings_of(name: str, precision: str, model: str) -> dict[str, Any]:
    """Settings of a component with a penalty and a loss that the solver takes."""
    solver = crf_solvers.get(name)()
    return {
        "solver": {"@crf_solvers": name},
        "features": {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": TEMPLATES},
        "l1": 0.0 if "no l1" in solver.requires else 0.5,
        "l2": 0.0 if name == "spacy_sparsecrf.Perceptron.v1" else 0.01,
        "model": "maxent" if "single tokens" in solver.requires else model,
        # Weights are stored as wide as they are learnt: no kernel needs both.
        "precision": precision,
        "dtype": precision,
        "n_threads": 1,
    }


def train_and_predict(config: dict[str, Any]) -> None:
    """Two steps and one prediction."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", config=config)
    examples = examples_of(nlp, make_sentences(12, seed=1))
    nlp.initialize(lambda: examples)
    run_steps(nlp, examples, 2)
    nlp(examples[0].reference.text)


def run_all(precision: str) -> None:
    """Run each solver on a chain, or on what it minimises; and the other kinds of models."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SparseCRFWarning)
        for name in sorted(SOLVERS_IN_USE):
            train_and_predict(settings_of(name, precision, "chain"))
        for model in ("maxent", "memm"):
            train_and_predict(settings_of("spacy_sparsecrf.OWLQN.v1", precision, model))


def told(kind: Any) -> tuple[str, str]:
    """A type without the width of an array of floats, and that width."""
    if isinstance(kind, types.BaseNamedTuple):
        parts = [told(part) for part in kind.types]
        fields = [f"{name}: {part}" for name, (part, _) in zip(kind.fields, parts, strict=True)]
        return f"({', '.join(fields)})", " ".join(width for _, width in parts if width)
    if isinstance(kind, types.Array) and isinstance(kind.dtype, types.Float):
        return str(kind).replace(str(kind.dtype), "float"), str(kind.dtype)
    return str(kind), ""


def signatures() -> Signatures:
    """The arguments of each kernel, and their types in each call that was compiled, or loaded."""
    found = {}
    for name, kernel in all_kernels():
        code = kernel.py_func.__code__
        arguments = list(code.co_varnames[: code.co_argcount])
        calls = [[told(kind) for kind in signature] for signature in kernel.signatures]
        found[name] = arguments, calls
    return found


if __name__ == "__main__":
    run_all(sys.argv[1])
    sys.stdout.write(json.dumps(signatures()))
