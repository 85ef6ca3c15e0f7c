"""Targets: the annotation that a component learns and writes.

Below it stands what targets share that read Docs and write to them.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

Docs: TypeAlias = Sequence[Doc]
Labels: TypeAlias = Sequence[str]
Ids: TypeAlias = Sequence[NDArray[np.int32]]
"""Of the labels of tokens, an array a Doc."""
Mask: TypeAlias = NDArray[np.bool_]
Scores: TypeAlias = NDArray[np.float64] | None


class Chain(NamedTuple):
    """Some of a component's labels, which label tokens apart from the others.

    ids: [Yk] int64, positions among the component's labels, that of "O" last; labels: [Yk], what
    `target` calls them, which returns what is set of what they write.
    """

    ids: NDArray[np.int64]
    labels: tuple[str, ...]
    target: "Target"


@runtime_checkable
class Target(Protocol):
    """Reads gold labels from Examples and writes predicted labels to Docs.

    Labels are those of the tokens. Where users think in other names, such as types of entities,
    `names_of` and `labels_of` translate. A class that derives from this one has its defaults: all
    label sequences are valid, nothing is kept, and names are labels.
    """

    def __init_subclass__(cls) -> None:
        """Replace the inherited `__init__` of Protocol, whose `*args` configs cannot resolve."""
        super().__init_subclass__()
        if cls.__init__ is Target.__init__:
            cls.__init__ = _without_arguments  # type: ignore[method-assign]

    def check_label(self, label: str) -> None:
        """Raise `SparseCRFError` for a label that cannot be written."""
        return None

    def complete(self, labels: Labels) -> tuple[str, ...]:
        """Return labels as they are learnt: in normal form, with required labels added."""
        return tuple(labels)

    def labels_of(self, name: str) -> tuple[str, ...]:
        """Return the labels that a user's name stands for."""
        return self.complete([name])

    def names_of(self, labels: Labels) -> tuple[str, ...]:
        """Return the names that users know labels by."""
        return tuple(labels)

    def scoring(self) -> dict[str, Any]:
        """Return what a scorer has to know of the target, as keyword arguments."""
        return {}

    @property
    def score_name(self) -> str | None:
        """The extension of spans that gets their probabilities; None where labels tell no spans."""
        return None

    def chains(self, labels: Labels) -> tuple[Chain, ...]:
        """Return the chains that label tokens, each apart from the others; () for a single one."""
        return ()

    def gold(self, example: Example) -> Sequence[str | tuple[str, ...] | None]:
        """Read the gold label of each predicted token.

        RETURNS: [tokens] labels; a tuple where it may be any of several; None or "" where it is
            missing.
        """
        ...

    def legal(self, labels: Labels) -> Mask | None:
        """Return which labels may follow each other.

        labels: [Y] names of the labels.
        RETURNS: [Y + 1, Y + 1], entry [a, b] whether label b may follow label a; row Y: whether b
            may begin a sequence; column Y: whether a may end one. None: all may.
        """
        return None

    def permitted(self, docs: Docs, labels: Labels, *, overwrite: bool) -> Mask | None:
        """Return which labels tokens may get, given annotation that is set already and is kept.

        labels: [Y] names of the labels.
        overwrite: whether annotation that is already set is replaced.
        RETURNS: [N, Y] for all tokens of the Docs, or None where nothing is set anywhere.
        """
        return None

    def write(
        self, docs: Docs, label_ids: Ids, labels: Labels, *, overwrite: bool, scores: Scores = None
    ) -> None:
        """Write predicted labels.

        docs: the D Docs to change.
        label_ids: D arrays [tokens of the Doc] int32, positions in `labels`.
        labels: [Y] names of the labels.
        overwrite: whether annotation that is already set is replaced.
        scores: [K] float64, to be written too: the probabilities of the K spans that the labels
            tell, in their order; None, also for a target whose labels tell none.
        """


def _without_arguments(self: object) -> None:
    pass


def have_same_tokens(example: Example) -> bool:
    """Return whether predicted and gold tokens are the same.

    Aligning characters would cost several times as much as reading arrays.
    """
    predicted, reference = example.predicted.to_array("ORTH"), example.reference.to_array("ORTH")
    return bool(np.array_equal(predicted, reference))


def add_extension(kind: type[Span] | type[Token], name: str) -> None:
    """Make an extension attribute of tokens or spans, None by default, if there is none yet."""
    if not kind.has_extension(name):
        kind.set_extension(name, default=None)


def add_strings(docs: Docs, strings: Iterable[str]) -> None:
    """Make strings known to the vocabs of Docs.

    A vocab may have lost strings since the last time, as at the end of a memory zone.
    """
    strings = tuple(strings)
    for store in {id(doc.vocab): doc.vocab.strings for doc in docs}.values():
        for string in strings:
            store.add(string)


def string_ids(strings: Iterable[str]) -> NDArray[np.uint64]:
    """Return spaCy's numbers of strings, the same in every vocab: [strings] uint64."""
    return np.array([get_string_id(string) for string in strings], dtype=np.uint64)


def ends_of(arrays: Iterable[object]) -> NDArray[np.int64]:
    """Ends of Docs, or of arrays of their tokens, put one after the other: [D] int64."""
    return np.cumsum([len(array) for array in arrays], dtype=np.int64)  # type: ignore[arg-type]
