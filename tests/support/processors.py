"""Models of all solvers, trained for a CPU: `python -m tests.support.processors`."""

import json
import sys
import warnings
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import spacy

from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.tools.cli.warmup import all_kinds

from .toy import examples_of, make_sentences, train

NATIVE = "native"
# LLVM's names of CPUs without AVX-512.
OLDER = {"haswell", "skylake", "znver1", "znver2", "znver3", "x86-64-v3"}


def imitating(cpu: str, cache: Path) -> dict[str, str]:
    """Return the environment in which numba compiles for a CPU, and NumPy omits its extensions.

    cpu: a CPU whose instructions this machine supports, or `NATIVE`.
    """
    found = {"NUMBA_CACHE_DIR": str(cache / cpu)}
    if cpu != NATIVE:
        # Without a list of features, numba adds those of this machine.
        found |= {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": "+fma"}
    if cpu in OLDER:
        used: Any = np.show_config(mode="dicts")
        newer = [n for n in used["SIMD Extensions"]["found"] if n.startswith(("AVX512", "X86_V4"))]
        found |= {"NPY_DISABLE_CPU_FEATURES": " ".join(newer), "OPENBLAS_CORETYPE": "Haswell"}
    return found


def digest_of(config: dict[str, Any]) -> str:
    """Train a component in double precision; return the SHA-256 of model and objectives."""
    nlp = spacy.blank("xx")
    pipe: Any = nlp.add_pipe("sparse_crf", config={**config, "learning": {"dtype": "float64"}})
    losses = train(nlp, examples_of(nlp, make_sentences(12, seed=1)), 3)
    pipe.to_bytes()  # completes the model
    return sha256(pipe.model.to_bytes() + repr(losses).encode()).hexdigest()


if __name__ == "__main__":
    warnings.simplefilter("ignore", SparseCRFWarning)
    found = {f"{c['solver']['@crf_solvers']} {c['model']}": digest_of(c) for c in all_kinds()}
    sys.stdout.write(json.dumps(found))
