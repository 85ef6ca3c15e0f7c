"""One label a token, kept in an extension attribute, `token._.name`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Token
from spacy.training import Example

from ..errors import Errors, SparseCRFError
from .base import Target
from .reading import have_same_tokens, split_alternatives

PREFIX = "_."


class TokenExtension(Target):
    """Learns and writes an extension attribute of tokens; a value None or "" is no label.

    attr: "_.name". It is registered with the default None if it is not there.
    alternatives: what stands between labels of which any may be right, or "".
    RAISES: SparseCRFError for an extension that cannot be written.
    """

    def __init__(self, attr: str, alternatives: str = "") -> None:
        self.attr = attr
        self.alternatives = alternatives
        self.name = attr.removeprefix(PREFIX)
        if not self.name.isidentifier():
            raise SparseCRFError(Errors.SC506.format(attr=attr))
        if not Token.has_extension(self.name):
            Token.set_extension(self.name, default=None)
        _, method, getter, setter = Token.get_extension(self.name)
        if method is not None or (getter is not None and setter is None):
            raise SparseCRFError(Errors.SC506.format(attr=attr))

    def check_label(self, label: str) -> None:
        """Accept any label."""

    def gold(self, example: Example) -> list[str | tuple[str, ...] | None]:
        """Read the gold label of each predicted token; None where it is missing or ambiguous.

        RAISES: SparseCRFError for a value that is not a string.
        """
        values = [self._read(token) for token in example.reference]
        if have_same_tokens(example):
            return split_alternatives(values, self.alternatives)
        aligned = (example.alignment.x2y[i] for i in range(len(example.predicted)))
        candidates = ({values[i] for i in tokens} for tokens in aligned)
        aligned_values = [found.pop() if len(found) == 1 else None for found in candidates]
        return split_alternatives(aligned_values, self.alternatives)

    def permitted(
        self, docs: Sequence[Doc], labels: Sequence[str], *, overwrite: bool
    ) -> NDArray[np.bool_] | None:
        """Permit only the label that is set, where it is one; see `Target.permitted`."""
        if overwrite:
            return None
        present = [token._.get(self.name) for doc in docs for token in doc]
        if not any(present):
            return None
        mask = np.array([[label == value for label in labels] for value in present])
        mask[~mask.any(axis=1)] = True
        return mask

    def write(
        self,
        docs: Sequence[Doc],
        label_ids: Sequence[NDArray[np.int32]],
        labels: Sequence[str],
        *,
        overwrite: bool,
        scores: NDArray[np.float64] | None = None,
    ) -> None:
        """Write predicted labels token by token, as spaCy keeps them in a dict."""
        for doc, ids in zip(docs, label_ids, strict=True):
            for token, i in zip(doc, ids.tolist(), strict=True):
                if overwrite or not token._.get(self.name):
                    token._.set(self.name, labels[i])

    def _read(self, token: Token) -> str | None:
        value = token._.get(self.name)
        if value is None or isinstance(value, str):
            return value or None
        message = Errors.SC507.format(attr=self.attr, value=value, text=token.doc.text[:60])
        raise SparseCRFError(message)
