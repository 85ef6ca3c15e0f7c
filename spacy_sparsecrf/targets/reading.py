"""What targets share that read Docs and write to them."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example


def have_same_tokens(example: Example) -> bool:
    """Whether predicted and gold tokens are the same.

    Aligning characters would cost several times as much as reading arrays.
    """
    predicted, reference = example.predicted.to_array("ORTH"), example.reference.to_array("ORTH")
    return bool(np.array_equal(predicted, reference))


def add_strings(docs: Sequence[Doc], strings: Iterable[str]) -> None:
    """Make strings known to the vocabs of Docs.

    A vocab may have lost strings since the last time, as at the end of a memory zone.
    """
    strings = tuple(strings)
    for store in {id(doc.vocab): doc.vocab.strings for doc in docs}.values():
        for string in strings:
            store.add(string)


def string_ids(strings: Iterable[str]) -> NDArray[np.uint64]:
    """What spaCy stores for strings, the same in every vocab: [strings] uint64."""
    return np.array([get_string_id(string) for string in strings], dtype=np.uint64)


def split_alternatives(
    gold: Sequence[str | None], separator: str
) -> list[str | tuple[str, ...] | None]:
    """Split gold labels that may be any of several, where a separator is given."""
    if not separator:
        return list(gold)
    return [tuple(label.split(separator)) if label else None for label in gold]


def ends_of(arrays: Iterable[object]) -> NDArray[np.int64]:
    """Ends of Docs, or of arrays of their tokens, put one after the other: [D] int64."""
    return np.cumsum([len(array) for array in arrays], dtype=np.int64)  # type: ignore[arg-type]
