"""What a target is: the annotation that a component learns and writes."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example


@runtime_checkable
class Target(Protocol):
    """Reads gold labels from Examples and writes predicted labels to Docs."""

    def check_label(self, label: str) -> None:
        """Raise `SparseCRFError` for a label that cannot be written."""

    def gold(self, example: Example) -> list[str | tuple[str, ...] | None]:
        """Read the gold label of each predicted token.

        RETURNS: a tuple where it may be any of several; None or "" where it is missing.
        """
        ...

    def write(
        self,
        docs: Sequence[Doc],
        label_ids: Sequence[NDArray[np.int32]],
        labels: Sequence[str],
        *,
        overwrite: bool,
    ) -> None:
        """Write predicted labels.

        docs: the D Docs to change.
        label_ids: D arrays [tokens of the Doc] int32, positions in `labels`.
        labels: [Y] names of the labels.
        overwrite: whether annotation that is already set is replaced.
        """
