"""The project's registries, which spaCy's configs reach as `@crf_solvers` and the like.

Third parties add to them through the entry point groups `spacy_sparsecrf_crf_features`,
`spacy_sparsecrf_crf_targets`, `spacy_sparsecrf_crf_solvers` and `spacy_sparsecrf_crf_engines`.
`crf_add_ons` has the optional parts of the package, which the core imports by these names only; see
`pipeline.add_ons`.
"""

from typing import Any

import catalogue


class PartRegistry(catalogue.Registry):  # type: ignore[misc]
    """A registry that also finds the package's own parts by short names, such as "SGD"."""

    def get(self, name: str) -> Any:
        """Return the registered function, or else that of `spacy_sparsecrf.NAME.v1`.

        RAISES: catalogue.RegistryError where there is none.
        """
        try:
            return super().get(name)
        except catalogue.RegistryError:
            full = self.full_name(name)
            if not full:
                raise
        return super().get(full)

    def full_name(self, short: object) -> str:
        """Return the name of the part with a short name; "" where there is none."""
        names = {each.split(".")[-2].lower(): each for each in self.get_all() if "." in each}
        return str(names.get(str(short).lower(), ""))


crf_features = PartRegistry(("spacy_sparsecrf", "crf_features"), entry_points=True)
crf_targets = PartRegistry(("spacy_sparsecrf", "crf_targets"), entry_points=True)
crf_solvers = PartRegistry(("spacy_sparsecrf", "crf_solvers"), entry_points=True)
crf_engines = PartRegistry(("spacy_sparsecrf", "crf_engines"), entry_points=True)
crf_add_ons = catalogue.create("spacy_sparsecrf", "crf_add_ons", entry_points=True)


def attach_to(registry: Any) -> None:
    """Make the registries attributes of spaCy's: it resolves `@x` only where it has an `x`.

    registry: `spacy.util.registry`, passed in so that the numerics import without spaCy.
    """
    for table in (crf_features, crf_targets, crf_solvers, crf_engines):
        name = table.namespace[-1]
        if not hasattr(registry, name):
            setattr(registry, name, table)
