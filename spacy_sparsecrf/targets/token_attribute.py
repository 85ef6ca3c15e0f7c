"""One label a token, kept in an attribute of the token."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.parts_of_speech import (  # type: ignore[import-not-found]
    IDS as PARTS_OF_SPEECH,
)
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import Errors, SparseCRFError
from ..registry import crf_targets

WRITABLE = ("tag", "pos")


@crf_targets("spacy_sparsecrf.TokenAttribute.v1")
class TokenAttribute:
    """Learns and writes `token.tag` or `token.pos`.

    attr: "tag" or "pos".
    RAISES: SparseCRFError for any other attribute.
    """

    def __init__(self, attr: str = "tag") -> None:
        if attr not in WRITABLE:
            raise SparseCRFError(Errors.SC214.format(attr=attr, known=", ".join(WRITABLE)))
        self.attr = attr
        self._key = attr.upper()

    def check_label(self, label: str) -> None:
        """Raise `SparseCRFError` for a part of speech that spaCy does not know."""
        known = [name for name in PARTS_OF_SPEECH if name]
        if self.attr == "pos" and label not in known:
            raise SparseCRFError(Errors.SC215.format(label=label, known=", ".join(known)))

    def gold(self, example: Example) -> list[str | None]:
        """Read the gold label of each predicted token; None or "" where it is missing."""
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
        vocab, values = None, np.zeros(0, dtype=np.uint64)
        for doc, ids in zip(docs, label_ids, strict=True):
            if not len(doc):
                continue
            if doc.vocab is not vocab:
                vocab = doc.vocab
                values = np.asarray([vocab.strings.add(label) for label in labels], np.uint64)
            predicted = values[ids]
            if not overwrite:
                present = doc.to_array(self._key)
                predicted = np.where(present != 0, present, predicted)
            doc.from_array([self._key], predicted)  # type: ignore[arg-type]
