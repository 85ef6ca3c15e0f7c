"""Attribute values of tokens.

spaCy returns most annotations as arrays (`read_annotations`). Other attributes are read in Python,
token by token, by readers: functions of Docs of one vocab, which return values [N, W] uint64 of
their N tokens, 0 = missing. Numbers (vectors and extension attributes) can be real-valued features
(`read_values`), or hashed: each dimension of a vector by its bin.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import accumulate, chain
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc, Token
from spacy.util import filter_spans
from thinc.util import to_numpy

from ..corpus.numbering import Array, Ints, Longs, Singles
from ..corpus.readings import Division
from ..corpus.words import extension_values
from ..errors import Errors, SparseCRFError
from .attributes.phrases import PhraseList, Phrases
from .attributes.words import DOCUMENT, EXTENSION, PHRASE, SPAN, STACKED, VECTOR, Value
from .cursor import Read
from .plan import FROM_END, FROM_FIRST, places_of
from .templates import PlacedAttribute

Values: TypeAlias = NDArray[np.uint64]
TokenReader: TypeAlias = Callable[[Sequence[Doc]], Values]
Alone: TypeAlias = Collection[Doc] | None
"""For training, Docs that are not joined to others in a sequence; None: all."""

MODES = ("sents", "docs")
# Docs, and words, of a sequence of several Docs, at most.
_MOST_DOCS, _MOST_WORDS = 10, 250
EMPTY = 0x27D4EB2F165667C5
"""Value of an empty text, which gives a feature, unlike a missing value."""
_MASK = 2**64 - 1
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_LARGEST = float(np.finfo(np.float32).max)


def read_annotations(docs: Sequence[Doc], attributes: tuple[int, ...]) -> Values:
    """Read attributes of the tokens of Docs: [N, A] uint64. docs: at least one; attributes: ids."""
    # to_array accepts any iterable, and returns an array, both unknown to spaCy's stub.
    arrays: Any = [doc.to_array(attributes) for doc in docs]  # type: ignore[arg-type]
    values: Values = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return values


def sequences_of(
    docs: Sequence[Doc],
    options: tuple[bool, int, int],
    tokens: tuple[Values, Ints, NDArray[np.uint8]],
) -> tuple[Longs, Division]:
    """Divide the tokens of Docs into sequences of words; see `kernels.hashing.cut`.

    options: see there; tokens: values of annotations, [N, A], with SENT_START in column 1; rows,
    [N]; and kinds of rows, [R]. The values and rows of the n words are moved to the first n places.
    RETURNS: offsets [S + 1] int64, sequence s is the words offsets[s]:offsets[s + 1]; the division.
    """
    values, rows, kinds = tokens
    ends = np.fromiter(accumulate(map(len, docs)), np.int64, len(docs))
    n = len(rows)
    offsets, kept = np.empty(n + 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    offsets = offsets[: _cut()(ends, values, rows, kinds, *options, offsets, kept) + 1]
    if offsets[-1] == n:
        return offsets, Division(ends, ends, None)
    kept = kept[: offsets[-1]]
    apart = np.flatnonzero(kept < 0)
    kept = np.maximum(kept, ~kept)
    return offsets, Division(kept.searchsorted(ends), ends, kept, apart)


def joined(offsets: Longs, ends: Longs, alone: Sequence[bool]) -> Longs:
    """Join Docs: remove offsets of sequences where some Docs end.

    A sequence has 1 to 10 Docs, at random, so that a model learns from single sentences to label
    texts; a generator with a fixed seed draws the numbers for each run of Docs that may be joined.
    Long Docs are texts already. ends: [D] int64, of Docs; alone: [D], Docs that are not joined.
    """
    numbers = np.random.default_rng(0).integers(1, _MOST_DOCS, len(ends), endpoint=True).tolist()
    joints, kept = set[int](), {0, int(offsets[-1])}
    i = begin = behind = n = 0
    for end, is_alone in zip(ends.tolist(), alone, strict=True):
        if is_alone:
            kept |= {behind, end}
            i, n = -1, 1
        elif n > 0 and end - begin <= _MOST_WORDS:
            joints.add(behind)
        else:
            begin, n = behind, numbers[i]
        behind, i, n = end, i + 1, n - 1
    return offsets[~np.isin(offsets, [*(joints - kept)])]


@cache
def _cut() -> Callable[..., int]:
    """Import the kernel, with numba, only once: an import takes as long as reading a Doc."""
    from ..kernels.hashing import cut

    return cut


def token_reader(
    read: Read,
    phrases: Mapping[str, PhraseList] | None = None,
    phrase_attr: str = "LOWER",
    vector_width: int = 0,
) -> TokenReader:
    """Return the reader of an attribute that is read in Python.

    phrases: all lists that are read; phrase_attr: see `Phrases`; vector_width: see `VectorBins`.
    """
    if read.name == EXTENSION:
        return partial(read_extension, read.argument)
    if read.name == SPAN:
        return partial(read_spans, read.argument)
    if read.name in (*STACKED, *DOCUMENT):
        # A placeholder for what `stacking` or `document` inserts.
        return lambda docs: np.zeros((sum(map(len, docs)), 1), dtype=np.uint64)
    if read.name == PHRASE:
        return Phrases((phrases or {})[read.argument], phrase_attr)
    return VectorBins(read.length, vector_width)


def number_of(value: Any) -> int:
    """Return spaCy's id of a string, or the value itself of an integer or truth value."""
    return int(get_string_id(value)) if isinstance(value, str) else int(value) & _MASK


def _extension(name: str, docs: Sequence[Doc]) -> Iterator[tuple[Token, Any]]:
    """Return tokens and their values of an attribute. RAISES: SparseCRFError if not registered."""
    if not Token.has_extension(name):
        raise SparseCRFError(Errors.SC120.format(name=name))
    extension = Token.get_extension(name)
    pairs = (zip(doc, extension_values(doc, name, extension), strict=True) for doc in docs)
    return chain.from_iterable(pairs)


def read_extension(name: str, docs: Sequence[Doc]) -> Values:
    """Read an extension attribute, `token._.NAME`: strings, integers or truth values, or None.

    RAISES: SparseCRFError if the attribute is not registered, or for values of other types.
    """
    values = []
    for token, value in _extension(name, docs):
        if not (value is None or isinstance(value, (str, bool, int, np.bool_, np.integer))):
            kind = type(value).__name__
            raise SparseCRFError(Errors.SC121.format(name=name, kind=kind, text=token.text))
        values.append(0 if value is None else number_of(value))
    return np.array(values, dtype=np.uint64)[:, None]


def read_spans(key: str, docs: Sequence[Doc]) -> Values:
    """Read the spans of a group, `doc.spans[KEY]`: "B-label" at their beginning, then "I-label".

    If spans overlap, the longest is used, of equally long spans the first. The group is optional.
    """
    values = np.zeros(sum(map(len, docs)), dtype=np.uint64)
    first = 0
    for doc in docs:
        spans: Iterable[Any] = doc.spans.get(key, ())
        for span in filter_spans(spans):
            begin = first + span.start
            values[begin : first + span.end] = get_string_id(f"I-{span.label_}")
            values[begin] = get_string_id(f"B-{span.label_}")
        first += len(doc)
    return values[:, None]


# Real values


def read_values(
    attributes: Sequence[PlacedAttribute],
    docs: Sequence[Doc],
    sequences: tuple[Longs, Longs | None],
    vector_width: int,
) -> Singles:
    """Read the real values of words: [n, V] float32.

    Values are 0 outside the sequence, and if missing. Vectors are not scaled.
    attributes: of templates whose reads are real; docs: of one vocab; sequences: their
    offsets, and the tokens of words or None; vector_width: number of dimensions of vectors. RAISES:
    SparseCRFError for values that are not numbers or not finite, and for vectors of another width.
    """
    offsets, kept = sequences
    own = slice(None) if kept is None else kept
    reads = dict.fromkeys(attribute.read for attribute in attributes)
    values = {read: _read_numbers(read, docs, vector_width)[own] for read in reads}
    columns = [_placed(values[attribute.read], offsets, attribute) for attribute in attributes]
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)


def _read_numbers(read: Read, docs: Sequence[Doc], vector_width: int) -> Singles:
    """Read numbers from the tokens of Docs: [N, W]."""
    if read.name == VECTOR:
        return np.concatenate([vectors_of(doc, vector_width, np.float32) for doc in docs])
    numbers = [_number(read, token, value) for token, value in _extension(read.argument, docs)]
    return np.array(numbers, dtype=np.float32)[:, None]


def _number(read: Read, token: Token, value: Any) -> float:
    if value is None:
        return 0.0
    where = {"read": read, "name": read.argument, "text": token.text}
    if not isinstance(value, _NUMBERS):
        raise SparseCRFError(Errors.SC391.format(kind=type(value).__name__, **where))
    number: Any = value
    # Compare before conversion, because converting a large integer overflows.
    if not -_LARGEST <= number <= _LARGEST:
        raise SparseCRFError(Errors.SC392.format(value=value, doc=token.doc.text[:60], **where))
    return float(number)


def _placed(values: Singles, offsets: Longs, attribute: PlacedAttribute) -> Singles:
    """Return the values [N, W] at the offset of an attribute, 0 outside the sequence."""
    (offset,), (anchor,) = places_of([attribute])
    if not attribute.absolute and offset == 0:
        return values
    lengths = np.diff(offsets)
    first, behind = np.repeat(offsets[:-1], lengths), np.repeat(offsets[1:], lengths)
    origin = {FROM_FIRST: first, FROM_END: behind}.get(int(anchor), np.arange(len(values)))
    at = origin + offset
    inside = (at >= first) & (at < behind)
    return np.where(inside[:, None], values[np.where(inside, at, 0)], np.float32(0))


class VectorBins:
    """Bins of the dimensions of `token.vector`, W values per token.

    A vector is divided by its root mean square, so that its norm does not matter. Bins are equally
    likely under a normal distribution; two bins give the sign. The value of dimension d in bin b
    is d * bins + b + 1; a vector of zeros has no values.

    bins: 2 or more; width: W, number of dimensions.
    """

    def __init__(self, bins: int, width: int) -> None:
        self._bins = bins
        self._width = width
        self._edges = np.array([NormalDist().inv_cdf(b / bins) for b in range(1, bins)])

    def __call__(self, docs: Sequence[Doc]) -> Values:
        """Read the tokens of Docs: [N, W].

        RAISES: SparseCRFError for vectors of another width, or that are not finite.
        """
        vectors = np.concatenate([vectors_of(doc, self._width) for doc in docs])
        size = np.sqrt(np.mean(np.square(vectors), axis=1, keepdims=True))
        with np.errstate(invalid="ignore"):
            bins = np.searchsorted(self._edges, vectors / size, side="right")
        values = bins + np.arange(1, self._width * self._bins, self._bins)
        return np.where(size > 0, values, 0).astype(np.uint64)


def vector_width(docs: Sequence[Doc]) -> int:
    """Return the width of the vectors of Docs, at least one of which is not empty.

    RAISES: SparseCRFError if tokens have no vectors.
    """
    doc = next(doc for doc in docs if len(doc))
    width = len(doc[0].vector)
    if not width:
        raise SparseCRFError(Errors.SC125)
    return width


def vectors_of(doc: Doc, width: int, dtype: DTypeLike = np.float64) -> Array:
    """Return the vectors of the tokens of a Doc, the same as `token.vector`: [n, W].

    RAISES: SparseCRFError for vectors of another width, or that are not finite in this dtype.
    """
    if not len(doc):
        return np.empty((0, width), dtype)
    table = doc.vocab.vectors
    which = np.arange(len(doc))  # index in `found` of each token's vector
    found: Any
    if "vector" in doc.user_token_hooks:
        found = [token.vector for token in doc]
    elif table.size == 0 and doc.tensor.size != 0:
        found = doc.tensor
    else:
        keys, which = np.unique(doc.to_array(table.attr), return_inverse=True)
        found = [doc.vocab.get_vector(key) for key in keys.tolist()]
    widths = {len(vector) for vector in found}
    if widths != {width}:
        raise SparseCRFError(Errors.SC126.format(found=max(widths - {width}), trained=width))
    arrays = [to_numpy(vector) for vector in found]  # type: ignore[no-untyped-call]
    with np.errstate(over="ignore"):
        vectors: Array = np.array(arrays).astype(dtype)[which]
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        bad = doc[int(finite.argmin())].text
        raise SparseCRFError(Errors.SC127.format(text=bad, doc=doc.text[:60]))
    return vectors


def value_of(text: str) -> int:
    """Return spaCy's id of a text, EMPTY for the empty text."""
    return int(get_string_id(text)) if text else EMPTY


def text_of(value: Value) -> str:
    """Return the text of an attribute's value, digits for numbers and truth values."""
    return value if isinstance(value, str) else str(int(value))


def texts_of(read: Read, docs: Sequence[Doc]) -> Mapping[int, str]:
    """Return the texts of the values in Docs of an attribute that is read in Python.

    RETURNS: the texts by their numbers, see `number_of`; "" for 0.
    """
    if read.name == EXTENSION:
        values = {value for _, value in _extension(read.argument, docs)}
        texts = {number_of(value): text_of(value) for value in values if value is not None}
    else:
        spans = (span for doc in docs for span in doc.spans.get(read.argument, ()))
        labels = {span.label_ for span in spans}
        marked = (f"{mark}-{label}" for label in labels for mark in "BI")
        texts = {int(get_string_id(text)): text for text in marked}
    return {**texts, 0: ""}
