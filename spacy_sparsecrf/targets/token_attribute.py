"""One label a token, kept in an attribute of the token."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDS  # type: ignore[import-not-found]
from spacy.parts_of_speech import (  # type: ignore[import-not-found]
    IDS as PARTS_OF_SPEECH,
)
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError
from ..registry import crf_targets
from .base import Target
from .reading import add_strings, have_same_tokens, split_alternatives, string_ids
from .token_extension import PREFIX, TokenExtension

WRITABLE = ("tag", "pos", "morph")


@crf_targets("spacy_sparsecrf.TokenAttribute.v1")  # type: ignore[untyped-decorator]
def make_token_attribute(attr: str = "tag", alternatives: str = "") -> Target:
    """Create the target that learns and writes an attribute of tokens.

    attr: "tag", "pos", "morph", or "_.name", an extension attribute.
    alternatives: what stands between the labels of a gold attribute that may be any of several:
        with "|" the tag "NN|VB" is either; "" where attributes are labels as they are.
    RAISES: SparseCRFError for any other attribute, or an extension that cannot be written.
    """
    if isinstance(attr, str) and attr.startswith(PREFIX):
        return TokenExtension(attr, alternatives)
    return TokenAttribute(attr, alternatives)


class TokenAttribute(Target):
    """Learns and writes `token.tag`, `token.pos` or `token.morph`.

    The label of a morphology is its string of features, "_" where it has none; a token whose
    morphology was never set has no label.

    attr: "tag", "pos" or "morph".
    alternatives: see `make_token_attribute`.
    RAISES: SparseCRFError for any other attribute.
    """

    def __init__(self, attr: str = "tag", alternatives: str = "") -> None:
        if attr not in WRITABLE:
            known = ", ".join((*WRITABLE, f"{PREFIX}name"))
            raise SparseCRFError(Errors.SC214.format(attr=attr, known=known))
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

    def complete(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return labels in normal form: features and their values sorted."""
        if self.attr != "morph" or not labels:
            return tuple(labels)
        return tuple(dict.fromkeys(map(_normal_features(), labels)))

    def gold(self, example: Example) -> list[str | tuple[str, ...] | None]:
        """Read the gold label of each predicted token, see `Target.gold`."""
        return split_alternatives(self._read(example), self.alternatives)

    def _read(self, example: Example) -> list[str | None]:
        predicted, reference = example.predicted, example.reference
        if not len(predicted):
            return []
        if have_same_tokens(example):
            strings = reference.vocab.strings
            return [strings[value] for value in reference.to_array(self._key)]
        return list(example.get_aligned(self._key, as_string=True))

    def permitted(
        self, docs: Sequence[Doc], labels: Sequence[str], *, overwrite: bool
    ) -> NDArray[np.bool_] | None:
        """Permit only the label that is set, where it is one; see `Target.permitted`."""
        if overwrite or not any(len(doc) and doc.has_annotation(self._key) for doc in docs):
            return None
        present = np.concatenate([doc.to_array(self._key) for doc in docs])
        mask: NDArray[np.bool_] = present[:, None] == self._values(labels)
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
        """Write predicted labels, through one array a Doc; see `Target.write`."""
        if not len(docs):
            return
        ids = np.concatenate(label_ids)
        add_strings(docs, [labels[i] for i in set(ids.tolist())])
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
            self._known = tuple(labels), string_ids(labels)
        return self._known[1]


@lru_cache(maxsize=1)
def _normal_features() -> Callable[[str], str]:
    """What puts a string of features into normal form."""
    normalise: Callable[[str], str] = Vocab().morphology.normalize_features
    return normalise
