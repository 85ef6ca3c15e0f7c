"""Targets: the annotation that a component learns and writes.

This module also contains helpers that targets share to read and write Docs.
"""

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from ...crf.corpus.numbering import Array, Floats, Hashes, Ints, Longs, Mask

Docs: TypeAlias = Sequence[Doc]
Labels: TypeAlias = Sequence[str]
Ids: TypeAlias = Sequence[Ints]
"""Label ids of tokens, an array for each Doc."""
Scores: TypeAlias = Floats | None


@dataclass(frozen=True)
class Not:
    """Gold annotation that a token has any label but these."""

    labels: tuple[str, ...]

    def __str__(self) -> str:
        """Return the label as spaCy writes it in gold annotation."""
        return f"!{'|'.join(self.labels)}"


@runtime_checkable
class Target(Protocol):
    """Base class of targets, which read gold labels from Examples and write predictions to Docs.

    Labels are labels of tokens. `names_of` and `labels_of` translate between labels and the
    names that users see, such as entity types. A subclass implements `gold` and `write`. It
    inherits the defaults: all label sequences are valid, existing annotation does not
    constrain labels, and names are labels.

    Examples
    --------
    >>> class Lemma(Target):
    ...     def gold(self, example):
    ...         return example.get_aligned("LEMMA", as_string=True)
    >>> doc = nlp.make_doc("We met")
    >>> Lemma().gold(Example.from_dict(doc, {"lemmas": ["we", "meet"]}))
    ['we', 'meet']
    >>> Lemma().names_of(["meet", "we"])
    ('meet', 'we')
    """

    outside_label: str = ""
    """The label of tokens with nothing to find, which scores, weights and thresholds leave out."""

    def __init_subclass__(cls) -> None:
        """Replace the inherited `__init__` of Protocol, whose `*args` configs cannot resolve."""
        super().__init_subclass__()
        if cls.__init__ is Target.__init__:
            cls.__init__ = _without_arguments  # type: ignore[method-assign]

    def check_label(self, label: str) -> None:
        """Check that a label can be written.

        Parameters
        ----------
        label : str
            The label.

        Raises
        ------
        SparseCRFError
            If it cannot be written.
        """
        return None

    def complete(self, labels: Labels) -> tuple[str, ...]:
        """Return the labels to learn: in normal form, with required labels added.

        Parameters
        ----------
        labels : sequence of str
            Labels of the corpus, or given ones.

        Returns
        -------
        tuple of str
            The labels to learn.
        """
        return tuple(labels)

    def labels_of(self, name: str) -> tuple[str, ...]:
        """Return the labels for a name that users see.

        Parameters
        ----------
        name : str
            A name, such as an entity type.

        Returns
        -------
        tuple of str
            Its labels.
        """
        return self.complete([name])

    def names_of(self, labels: Labels) -> tuple[str, ...]:
        """Return the names of labels that users see.

        Parameters
        ----------
        labels : sequence of str
            Labels of tokens.

        Returns
        -------
        tuple of str
            Their names, such as entity types.
        """
        return tuple(labels)

    def scoring(self) -> dict[str, Any]:
        """Return the keyword arguments that the target passes to a scorer.

        Returns
        -------
        dict of str
            `token_attr` names the attribute of tokens for the default scorer, which else has no
            score.
        """
        return {}

    def gold(self, example: Example) -> Sequence[str | tuple[str, ...] | Not | None]:
        """Read the gold label of each predicted token.

        Parameters
        ----------
        example : Example
            Predicted and gold Doc.

        Returns
        -------
        sequence
            [tokens] labels; a tuple if any of several labels may be right, `Not` if all but some;
            None or "" if the label is missing.
        """
        ...

    def valid_transitions(self, labels: Labels) -> Mask | None:
        """Return the valid transitions between labels.

        Parameters
        ----------
        labels : sequence of str
            Names of the Y labels.

        Returns
        -------
        array or None
            [Y + 1, Y + 1] bool, entry [a, b]: whether label b may follow label a. Row Y: whether b
            may begin a sequence; column Y: whether a may end one. None: all transitions are valid.
        """
        return None

    def permitted(self, docs: Docs, labels: Labels, *, overwrite: bool) -> Mask | None:
        """Return the labels that tokens may get, given existing annotation that is kept.

        Parameters
        ----------
        docs : sequence of Doc
            Docs with N tokens.
        labels : sequence of str
            Names of the Y labels.
        overwrite : bool
            Whether existing annotation is replaced.

        Returns
        -------
        array or None
            [N, Y] bool for all tokens of the Docs; None if all labels are permitted.
        """
        return None

    def blank(self, labels: Labels) -> int:
        """Return the id of the label of tokens that are no words.

        Parameters
        ----------
        labels : sequence of str
            Names of the labels.

        Returns
        -------
        int
            Position in `labels`, -1 for none.
        """
        return -1

    def write(
        self, docs: Docs, label_ids: Ids, labels: Labels, *, overwrite: bool, scores: Scores = None
    ) -> None:
        """Write predicted labels.

        Parameters
        ----------
        docs : sequence of Doc
            The D Docs to change.
        label_ids : sequence of array
            D arrays [tokens of the Doc] int32, positions in `labels`; -1 for tokens that are no
            words, see `blank`.
        labels : sequence of str
            Names of the Y labels.
        overwrite : bool
            Whether existing annotation is replaced.
        scores : array [K] float64, optional
            Probabilities of the K spans that the labels encode, in their order, to be written
            too; None to write none, and if labels do not encode spans.
        """


def _without_arguments(self: object) -> None:
    pass


def have_same_tokens(example: Example) -> bool:
    """Return whether predicted and gold tokens are the same.

    Comparing arrays is several times faster than aligning characters.
    """
    predicted, reference = example.predicted.to_array("ORTH"), example.reference.to_array("ORTH")
    return predicted.tobytes() == reference.tobytes()


def add_extension(kind: type[Span] | type[Token], name: str) -> None:
    """Register an extension attribute of tokens or spans, with default None, if it is missing."""
    if not kind.has_extension(name):
        kind.set_extension(name, default=None)


@lru_cache(maxsize=64)  # of the labels and types of models
def string_ids(strings: tuple[str, ...]) -> Hashes:
    """Return spaCy's ids of strings, which are the same in every vocab: [strings] uint64."""
    return np.array([get_string_id(string) for string in strings], dtype=np.uint64)


def ends_of(arrays: Sequence[Sized]) -> Longs:
    """Return the end offsets of concatenated Docs, or of arrays of their tokens: [D] int64."""
    return np.fromiter(accumulate(map(len, arrays)), np.int64, len(arrays))


def joined(arrays: Sequence[Array]) -> Array:
    """Concatenate arrays, of which there is mostly one."""
    return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
