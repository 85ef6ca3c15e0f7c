"""A component's plain settings, checked."""

import math
from dataclasses import dataclass
from typing import Any

from ..errors import Errors, SparseCRFError


@dataclass(frozen=True)
class Settings:
    """Settings of a component that are not blocks; see `SparseCRF`."""

    model: str
    clusters: int
    l1: float
    l2: float
    sequences: str
    dtype: str
    precision: str
    n_threads: int
    overwrite: bool
    threshold: float = 0.0

    @property
    def problem(self) -> dict[str, Any]:
        """What is minimised, and in which numbers: arguments of `Training` and of `Stream`."""
        names = "l1", "l2", "dtype", "precision", "clusters"
        return {"kind": self.model, **{name: getattr(self, name) for name in names}}

    def check(self, name: str) -> None:
        """Check every setting.

        name: of the component.
        RAISES: SparseCRFError that names the config key of a setting out of range.
        """
        from ..model import KINDS, check_clusters

        if self.model not in KINDS:
            known = ", ".join(f'"{kind}"' for kind in KINDS)
            _refuse(name, "model", self.model, f"one of {known}")
        if self.clusters < 0:
            _refuse(name, "clusters", self.clusters, "0 (none) or a number of clusters of labels")
        check_clusters(self.model, self.clusters)
        for key in ("l1", "l2"):
            value = getattr(self, key)
            if not (math.isfinite(value) and value >= 0):
                _refuse(name, key, value, "a finite number that is not negative")
        if self.sequences not in ("sents", "docs"):
            _refuse(name, "sequences", self.sequences, '"sents" or "docs"')
        for key in ("dtype", "precision"):
            if getattr(self, key) not in ("float32", "float64"):
                _refuse(name, key, getattr(self, key), '"float32" or "float64"')
        if not 0.0 <= self.threshold <= 1.0:
            _refuse(name, "threshold", self.threshold, "a probability, from 0 to 1")
        if self.n_threads < 0:
            _refuse(name, "n_threads", self.n_threads, "0 (all cores) or a number of threads")


def _refuse(name: str, key: str, value: object, expected: str) -> None:
    message = Errors.SC205.format(name=name, key=key, value=value, expected=expected)
    raise SparseCRFError(message)
