"""One label a token, kept in an attribute of the token."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDS  # type: ignore[import-not-found]
from spacy.parts_of_speech import (  # type: ignore[import-not-found]
    IDS as PARTS_OF_SPEECH,
)
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import Errors, SparseCRFError
from ..registry import crf_targets

WRITABLE = ("tag", "pos")


@crf_targets("spacy_sparsecrf.TokenAttribute.v1")
class TokenAttribute:
    """Learns and writes `token.tag` or `token.pos`.

    attr: "tag" or "pos".
    alternatives: what stands between the labels of a gold attribute that may be any of several:
        with "|" the tag "NN|VB" is either; "" where attributes are labels as they are.
    RAISES: SparseCRFError for any other attribute.
    """

    def __init__(self, attr: str = "tag", alternatives: str = "") -> None:
        if attr not in WRITABLE:
            raise SparseCRFError(Errors.SC214.format(attr=attr, known=", ".join(WRITABLE)))
        self.attr = attr
        self.alternatives = alternatives
        self._key = attr.upper()
        self._id = IDS[self._key]
        # The labels of the last call, and what spaCy stores for them.
        self._known: tuple[Sequence[str], NDArray[np.uint64]] = (), np.empty(0, dtype=np.uint64)

    def check_label(self, label: str) -> None:
        """Raise `SparseCRFError` for a part of speech that spaCy does not know."""
        known = [name for name in PARTS_OF_SPEECH if name]
        if self.attr == "pos" and label not in known:
            raise SparseCRFError(Errors.SC215.format(label=label, known=", ".join(known)))

    def gold(self, example: Example) -> list[str | tuple[str, ...] | None]:
        """Read the gold label of each predicted token, see `Target.gold`."""
        gold = self._read(example)
        if not self.alternatives:
            return gold
        return [tuple(label.split(self.alternatives)) if label else None for label in gold]

    def _read(self, example: Example) -> list[Any]:
        predicted, reference = example.predicted, example.reference
        if not len(predicted):
            return []
        if np.array_equal(predicted.to_array("ORTH"), reference.to_array("ORTH")):
            # Aligning characters would cost five times as much as reading these arrays.
            strings = reference.vocab.strings
            return [strings[value] for value in reference.to_array(self._key)]
        return list(example.get_aligned(self._key, as_string=True))

    def write(
        self,
        docs: Sequence[Doc],
        label_ids: Sequence[NDArray[np.int32]],
        labels: Sequence[str],
        *,
        overwrite: bool,
    ) -> None:
        """Write predicted labels, through one array a Doc; see `Target.write`."""
        if not len(docs):
            return
        ids = np.concatenate(label_ids)
        # A vocab may have lost strings since the last call, as at the end of a memory zone.
        written = [labels[i] for i in set(ids.tolist())]
        for strings in {id(doc.vocab): doc.vocab.strings for doc in docs}.values():
            for label in written:
                strings.add(label)
        values = self._values(labels)[ids].reshape(-1, 1)
        last = 0
        for doc in docs:
            first, last = last, last + len(doc)
            predicted = values[first:last]
            if not overwrite and doc.has_annotation(self._key):
                present = doc.to_array(self._key).reshape(-1, 1)
                predicted = np.where(present != 0, present, predicted)
            doc.from_array([self._id], predicted)  # type: ignore[arg-type]

    def _values(self, labels: Sequence[str]) -> NDArray[np.uint64]:
        """What spaCy stores for each label, the same in every vocab: [Y] uint64."""
        if self._known[0] != labels:
            values = [get_string_id(label) for label in labels]
            self._known = tuple(labels), np.array(values, dtype=np.uint64)
        return self._known[1]
