"""Attribute values of tokens: annotations, their division into sequences, and real values.

spaCy returns annotations as arrays. Numbers (vectors and extension attributes) can be real-valued
features.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ...crf.corpus.numbering import Ints, Longs, Singles
from ...crf.corpus.readings import Division
from .attributes.attribute import Attribute, RealAttribute, Values
from .plan import FROM_END, FROM_FIRST, places_of
from .templates import PlacedAttribute

Alone: TypeAlias = Collection[Doc] | None
"""For training, Docs that are not joined to others in a sequence; None: all."""

MODES = ("sents", "docs")
# Docs, and words, of a sequence of several Docs, at most.
_MOST_DOCS, _MOST_WORDS = 10, 250
# Docs that are not joined, for each that is.
_ALONE = 3


def read_annotations(docs: Sequence[Doc], attributes: tuple[int, ...]) -> Values:
    """Read attributes of the tokens of Docs: [N, A] uint64. docs: at least one; attributes: ids."""
    # to_array accepts any iterable, and returns an array, both unknown to spaCy's stub.
    arrays: Any = [doc.to_array(attributes) for doc in docs]  # type: ignore[arg-type]
    values: Values = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return values


def sequences_of(
    docs: Sequence[Doc],
    values: Values,
    rows: Ints,
    kinds: NDArray[np.uint8],
    *,
    sentences: bool,
    glued: int,
    breaks: int,
) -> tuple[Longs, Division]:
    """Divide the tokens of Docs into sequences of words; see `crf.kernels.hashing.cut`.

    values: of annotations, [N, A], with SENT_START in column 1; rows: [N]; kinds: of rows, [R];
    sentences, glued, breaks: see there. The values and rows of the n words are moved to the front.
    RETURNS: offsets [S + 1] int64, sequence s is the words offsets[s]:offsets[s + 1]; the division.
    """
    ends = np.fromiter(accumulate(map(len, docs)), np.int64, len(docs))
    n = len(rows)
    offsets = np.empty(n + 1, dtype=np.int64)
    token_of_word = np.empty(n, dtype=np.int64)
    n_sequences = _cut()(
        ends, values, rows, kinds, sentences, glued, breaks, offsets, token_of_word
    )
    offsets = offsets[: n_sequences + 1]
    if offsets[-1] == n:
        return offsets, Division(ends, ends, None)
    token_of_word = token_of_word[: offsets[-1]]
    apart = np.flatnonzero(token_of_word < 0)
    token_of_word = np.maximum(token_of_word, ~token_of_word)
    return offsets, Division(token_of_word.searchsorted(ends), ends, token_of_word, apart)


def joined(offsets: Longs, ends: Longs, alone: Sequence[bool]) -> Longs:
    """Join Docs: remove offsets of sequences where some Docs end.

    2 to 10 Docs, at random, are a sequence, and three times as many Docs after them one each, and
    so on, so that a model learns from single sentences to label texts; a generator with a fixed
    seed draws the numbers for each run of Docs that may be joined. Long Docs are texts already.
    ends: [D] int64, of Docs; alone: [D], Docs that are not joined.
    """
    n_turns = 1 + len(ends) // (2 * (1 + _ALONE))
    sizes = np.random.default_rng(0).integers(2, _MOST_DOCS, n_turns, endpoint=True).tolist()
    # For each position, the number of Docs that a sequence has from it on.
    numbers = [left for n in sizes for left in (*range(n, 0, -1), *[1] * (_ALONE * n))]
    joints = set[int]()
    borders = {0, int(offsets[-1])}
    i = begin = behind = n = 0
    for end, is_alone in zip(ends.tolist(), alone, strict=True):
        if is_alone:
            borders |= {behind, end}
            i, n = -1, 1
        elif n > 0 and end - begin <= _MOST_WORDS:
            joints.add(behind)
        else:
            begin, n = behind, numbers[i]
        behind, i, n = end, i + 1, n - 1
    return offsets[~np.isin(offsets, [*(joints - borders)])]


@cache
def _cut() -> Callable[..., int]:
    """Import the kernel, with numba, only once: an import takes as long as reading a Doc."""
    from ...crf.kernels.hashing import cut

    return cut


def read_values(
    attributes: Sequence[PlacedAttribute],
    docs: Sequence[Doc],
    offsets: Longs,
    token_of_word: Longs | None,
    vector_width: int,
) -> Singles:
    """Read the real values of words: [n, V] float32.

    Values are 0 outside the sequence, and if missing.
    attributes: real ones; docs: of one vocab; offsets: [S + 1], of sequences; token_of_word: [n],
    None if all tokens are words; vector_width: number of dimensions of vectors. RAISES:
    SparseCRFError for values that are not numbers or not finite, and for vectors of another width.
    """
    words = slice(None) if token_of_word is None else token_of_word
    values: dict[Attribute, Singles] = {
        read: read.numbers(docs, vector_width)[words]
        for read in dict.fromkeys(attribute.read for attribute in attributes)
        if isinstance(read, RealAttribute)
    }
    columns = [_placed(values[attribute.read], offsets, attribute) for attribute in attributes]
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)


def _placed(values: Singles, offsets: Longs, attribute: PlacedAttribute) -> Singles:
    """Return the values [N, W] at the offset of an attribute, 0 outside the sequence."""
    (offset,), (anchor,) = places_of([attribute])
    if not attribute.absolute and offset == 0:
        return values
    lengths = np.diff(offsets)
    begins = np.repeat(offsets[:-1], lengths)
    ends = np.repeat(offsets[1:], lengths)
    origin = {FROM_FIRST: begins, FROM_END: ends}.get(int(anchor), np.arange(len(values)))
    at = origin + offset
    inside = (at >= begins) & (at < ends)
    return np.where(inside[:, None], values[np.where(inside, at, 0)], np.float32(0))
