"""Sparse conditional random fields for spaCy: `nlp.add_pipe("sparse_crf")`.

Public names can be imported from here; each is loaded on first access.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .crf.model.model import CRFModel
    from .crf.solvers.solver import BatchSolver
    from .errors import SparseCRFError, SparseCRFWarning
    from .pipeline.component import SparseCRFPipe
    from .pipeline.targets.target import Target
    from .registry import crf_engines, crf_features, crf_solvers, crf_targets
    from .tools.analysis.explanation import DocExplanation, ModelExplanation

__version__ = "0.1.0"

__all__ = [
    "BatchSolver",
    "CRFModel",
    "DocExplanation",
    "ModelExplanation",
    "SparseCRFError",
    "SparseCRFPipe",
    "SparseCRFWarning",
    "Target",
    "crf_engines",
    "crf_features",
    "crf_solvers",
    "crf_targets",
]

_HOMES = {
    "BatchSolver": "crf.solvers.solver",
    "CRFModel": "crf.model.model",
    "DocExplanation": "tools.analysis.explanation",
    "ModelExplanation": "tools.analysis.explanation",
    "SparseCRFError": "errors",
    "SparseCRFPipe": "pipeline.component",
    "SparseCRFWarning": "errors",
    "Target": "pipeline.targets.target",
    "crf_engines": "registry",
    "crf_features": "registry",
    "crf_solvers": "registry",
    "crf_targets": "registry",
}

# Hidden from type checkers, which would otherwise accept any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a name on first access (PEP 562)."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
