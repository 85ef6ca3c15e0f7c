"""The registered solvers that can train, without the names of removed ones."""

from typing import Any

from spacy_sparsecrf.registry import crf_solvers

SOLVERS_IN_USE: dict[str, Any] = {
    name: make for name, make in crf_solvers.get_all().items() if not make.removed
}
