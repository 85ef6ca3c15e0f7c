"""Targets with one label for each token, in a built-in or an extension attribute."""

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from spacy.attrs import IDS  # type: ignore[import-not-found]
from spacy.parts_of_speech import IDS as PARTS  # type: ignore[import-not-found]
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.vocab import Vocab

from ...crf.corpus.blanks import extension_values
from ...crf.corpus.numbering import Hashes, Mask
from ...errors import Errors, SparseCRFError
from ...registry import crf_targets
from .target import Docs, Ids, Labels, Not, Scores, Target, have_same_tokens, string_ids

PREFIX = "_."
WRITABLE = ("tag", "pos", "morph")
BLANK_LABELS = ("_SP", "SPACE")  # a tag and a part of speech
TOKEN_ATTR = "token_attr"  # name of the scorer's argument for the attribute
OUTSIDE_LABEL = "outside_label"  # and for the label that it leaves out


@lru_cache(maxsize=16)  # of the labels of models
def _label_ids(labels: tuple[str, ...]) -> Hashes:
    """Return spaCy's ids of labels, and 0 for tokens without a label: [Y + 1]."""
    return np.append(string_ids(labels), np.uint64(0))


@crf_targets("spacy_sparsecrf.TokenAttribute.v1")  # type: ignore[untyped-decorator]
def make_token_attribute(attr: str = "tag", alternatives: str = "", outside: str = "") -> Target:
    """Create the target that learns and writes an attribute of tokens.

    attr: "tag", "pos", "morph", or "_.name", an extension attribute.
    alternatives: separator of labels in a gold attribute of which any may be right: with "|", the
        tag "NN|VB" is either "NN" or "VB"; "" if each value is a single label.
    outside: the label of most tokens, such as "NONE", if the others are to be found; "" for none.
    RAISES: SparseCRFError for any other attribute, or an extension that cannot be written.
    """
    if str(attr).startswith(PREFIX):
        return TokenExtension(attr, alternatives, outside)
    return TokenAttribute(attr, alternatives, outside)


class TokenTarget(Target):
    """A target whose labels are values of a token attribute.

    attr: attribute to learn and write.
    alternatives, outside: see `make_token_attribute`.
    """

    def __init__(self, attr: str, alternatives: str, outside: str) -> None:
        self.attr = attr
        self.alternatives = alternatives
        self.outside_label = outside

    def blank(self, labels: Labels) -> int:
        """Return the label that spaCy gives to white space, if there is one; see `Target`."""
        return next((i for i, label in enumerate(labels) if label in BLANK_LABELS), -1)

    def scoring(self) -> dict[str, str]:
        """Return the attribute and its outside label, for `spacy_sparsecrf.token_scorer.v1`."""
        return {TOKEN_ATTR: self.attr, OUTSIDE_LABEL: self.outside_label}

    @abstractmethod
    def values(self, example: Example) -> list[str | None]:
        """Read the gold value of each predicted token; None or "" if it is missing."""

    @abstractmethod
    def matches(self, docs: Docs, labels: Labels) -> Mask | None:
        """Return whether tokens have labels now: [N, Y], or None if no token has any."""

    def gold(self, example: Example) -> list[str | tuple[str, ...] | Not | None]:
        """Read the gold label of each predicted token, see `Target.gold`."""
        values = self.values(example)
        labels = {value: self._label(value) for value in {*values}}
        return [labels[value] for value in values]

    def _label(self, value: str | None) -> str | tuple[str, ...] | Not | None:
        # Tags such as !! are of marks.
        is_name = value and any(map(str.isalnum, value))
        if value and value[0] == "!" and is_name and self.attr == "tag":
            return Not((value[1:],))
        return tuple(value.split(self.alternatives)) if value and self.alternatives else value

    def permitted(self, docs: Docs, labels: Labels, *, overwrite: bool) -> Mask | None:
        """Permit only the existing value of a token, if it is a label; see `Target.permitted`."""
        permitted = None if overwrite else self.matches(docs, labels)
        if permitted is not None:
            permitted[~permitted.any(axis=1)] = True
        return permitted


class TokenAttribute(TokenTarget):
    """Learns and writes `token.tag`, `token.pos` or `token.morph`.

    The label of a morphology is its string of features, "_" if it has none; a token whose
    morphology was never set has no label.

    attr: "tag", "pos" or "morph".
    alternatives, outside: see `make_token_attribute`.
    RAISES: SparseCRFError for any other attribute.
    """

    def __init__(self, attr: str = "tag", alternatives: str = "", outside: str = "") -> None:
        if attr not in WRITABLE:
            writable = ", ".join((*WRITABLE, f"{PREFIX}name"))
            raise SparseCRFError(Errors.SC214.format(attr=attr, known=writable))
        super().__init__(attr, alternatives, outside)
        self._key = attr.upper()
        self._id = IDS[self._key]

    def check_label(self, label: str) -> None:
        """Raise `SparseCRFError` for a part of speech that spaCy does not support."""
        if self.attr == "pos" and (not label or label not in PARTS):
            parts = ", ".join(filter(None, PARTS))
            raise SparseCRFError(Errors.SC215.format(label=label, known=parts))

    def complete(self, labels: Labels) -> tuple[str, ...]:
        """Return labels in normal form: features and their values sorted."""
        if self.attr != "morph" or not labels:
            return tuple(labels)
        return tuple(dict.fromkeys(map(_normal_features(), labels)))

    def values(self, example: Example) -> list[str | None]:
        """Read the gold value of each predicted token; "" if it is missing."""
        reference = example.reference
        if not len(example.predicted):
            return []
        if have_same_tokens(example):
            strings = reference.vocab.strings
            return [strings[value] for value in reference.to_array(self._key).tolist()]
        return list(example.get_aligned(self._key, as_string=True))

    def matches(self, docs: Docs, labels: Labels) -> Mask | None:
        """Return whether tokens have labels now."""
        if not [doc for doc in docs if len(doc) and doc.has_annotation(self._id)]:
            return None
        present = np.concatenate([doc.to_array(self._key) for doc in docs])
        matches: Mask = present[:, None] == _label_ids(tuple(labels))[:-1]
        return matches

    def write(
        self, docs: Docs, label_ids: Ids, labels: Labels, *, overwrite: bool, scores: Scores = None
    ) -> None:
        """Write predicted labels, with one array for each Doc; see `Target.write`."""
        if not len(docs):
            return
        # For all Docs at once: the overhead of a numpy call exceeds the work for one Doc.
        ids = np.concatenate(label_ids)
        used = {*ids.tolist()} - {-1}
        values, end, vocab = _label_ids((*labels,)).take(ids), 0, None
        for doc in docs:
            if doc.vocab is not vocab:
                # It may have lost strings since the last call, at the end of a memory zone.
                vocab = doc.vocab
                for i in used:
                    vocab.strings.add(labels[i])
            begin, end = end, end + len(doc)
            predicted = values[begin:end]
            if not overwrite and doc.has_annotation(self._id):
                present = doc.to_array(self._key)
                predicted = np.where(present != 0, present, predicted)
            doc.from_array([self._id], predicted)  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def _normal_features() -> Callable[[str], str]:
    """Return the function that normalises a string of morphological features."""
    normalise: Callable[[str], str] = Vocab().morphology.normalize_features
    return normalise


class TokenExtension(TokenTarget):
    """Learns and writes an extension attribute of tokens; a value None or "" is no label.

    attr: "_.name". It is registered with the default None if it is missing.
    alternatives, outside: see `make_token_attribute`.
    RAISES: SparseCRFError for an extension that cannot be written.
    """

    def __init__(self, attr: str, alternatives: str = "", outside: str = "") -> None:
        super().__init__(attr, alternatives, outside)
        self.name = attr.removeprefix(PREFIX)
        if not self.name.isidentifier():
            raise SparseCRFError(Errors.SC506.format(attr=attr))
        if not Token.has_extension(self.name):
            Token.set_extension(self.name, default=None)
        _, method, getter, setter = Token.get_extension(self.name)
        if method is not None or (getter is not None and setter is None):
            raise SparseCRFError(Errors.SC506.format(attr=attr))

    def values(self, example: Example) -> list[str | None]:
        """Read the gold value of each predicted token; None if it is missing or ambiguous.

        RAISES: SparseCRFError for a value that is not a string.
        """
        gold = example.reference
        present = zip(gold, self._present(gold), strict=True)
        values = [self._checked(token, value) for token, value in present]
        if have_same_tokens(example):
            return values
        aligned = (example.alignment.x2y[i] for i in range(len(example.predicted)))
        candidates = ({values[i] for i in tokens} for tokens in aligned)
        return [labels.pop() if len(labels) == 1 else None for labels in candidates]

    def matches(self, docs: Docs, labels: Labels) -> Mask | None:
        """Return whether tokens have labels now."""
        present = [value for doc in docs for value in self._set(doc)]
        if not any(present):
            return None
        return np.array([[label == value for label in labels] for value in present])

    def write(
        self, docs: Docs, label_ids: Ids, labels: Labels, *, overwrite: bool, scores: Scores = None
    ) -> None:
        """Write predicted labels to spaCy's storage: the dict `doc.user_data`, or a setter."""
        *_, setter = Token.get_extension(self.name)
        for doc, ids in zip(docs, label_ids, strict=True):
            stored: dict[Any, Any] = doc.user_data
            present = [None] * len(doc) if overwrite else self._set(doc)
            for token, i, value in zip(doc, ids.tolist(), present, strict=True):
                if value or i < 0:
                    continue
                if setter is None:
                    # Equivalent to `token._.set`, which takes many times as long as labelling.
                    stored["._.", self.name, token.idx, None] = labels[i]
                else:
                    token._.set(self.name, labels[i])

    def _set(self, doc: Doc) -> list[Any]:
        """Return the current values of tokens; None for the default, which nobody has set."""
        default = Token.get_extension(self.name)[0]
        return [None if value == default else value for value in self._present(doc)]

    def _present(self, doc: Doc) -> list[Any]:
        """Return the current values of tokens."""
        return extension_values(doc, self.name, Token.get_extension(self.name))

    def _checked(self, token: Token, value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value or None
        message = Errors.SC507.format(attr=self.attr, value=value, text=token.doc.text[:60])
        raise SparseCRFError(message)
