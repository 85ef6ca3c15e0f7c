"""Registries of the package, for references such as `@crf_solvers` in spaCy's configs.

Other packages register functions through the entry point groups `spacy_sparsecrf_crf_features`,
`spacy_sparsecrf_crf_targets`, `spacy_sparsecrf_crf_solvers` and `spacy_sparsecrf_crf_engines`.
"""

from collections.abc import Callable
from typing import Any, cast

import catalogue

from .errors import Errors, SparseCRFError, nearest


class PartRegistry(catalogue.Registry):  # type: ignore[misc]
    """A registry that also finds registered functions by short names, such as "SGD"."""

    def get(self, name: str) -> Callable[..., Any]:
        """Return the function of a name, or of its `full_name` if that is not registered.

        RAISES: SparseCRFError with the nearest name if neither is registered.
        """
        if name in self:
            return cast("Callable[..., Any]", super().get(name))
        if full := self.full_name(name):
            return self.get(full)
        names, key = sorted(self.get_all()), self.namespace[-1]
        values = {"key": f"@{key}", "name": name, "nearest": nearest(name, names)}
        raise SparseCRFError(Errors.SC663.format(**values, known=", ".join(names)))

    def find(self, name: str) -> dict[str, Any]:
        """Return where a function is defined. `spacy package` also tries names that do not exist.

        RAISES: catalogue.RegistryError if neither the name nor its `full_name` is registered.
        """
        if name not in self and not self.full_name(name):
            raise catalogue.RegistryError(name)
        return dict(super().find(name))

    def full_name(self, short: object) -> str:
        """Return the registered name for a short name, ignoring case; "" if there is none."""
        names = {full.split(".")[-2].lower(): full for full in self.get_all() if "." in full}
        return str(names.get(str(short).lower(), ""))


crf_features = PartRegistry(("spacy_sparsecrf", "crf_features"), entry_points=True)
crf_targets = PartRegistry(("spacy_sparsecrf", "crf_targets"), entry_points=True)
crf_solvers = PartRegistry(("spacy_sparsecrf", "crf_solvers"), entry_points=True)
crf_engines = PartRegistry(("spacy_sparsecrf", "crf_engines"), entry_points=True)


def attach_to(registry: Any) -> None:
    """Add the registries to spaCy's as attributes, which it needs to resolve `@crf_solvers` etc.

    registry: `spacy.util.registry`, passed in so that the numerics import without spaCy.
    """
    for table in (crf_features, crf_targets, crf_solvers, crf_engines):
        name = table.namespace[-1]
        if not hasattr(registry, name):
            setattr(registry, name, table)
