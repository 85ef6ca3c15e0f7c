"""Conversion of token attributes to a corpus for training and to observations for decoding."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...corpus.encoded import NO_VALUES, EncodedCorpus, Observations
from ...corpus.numbering import distinct_rows, number_features, without_rare
from ...errors import Errors, SparseCRFError, Warnings, warn
from ...model.model import CRFModel
from .attributes import SEPARATOR, Attributes, Longs

Hashes = NDArray[np.uint64]

# The key of the feature that is active at every token; an attribute's key is its number plus this.
ALWAYS = 1


class _Parts(NamedTuple):
    """Attributes divided into binary and real-valued features.

    indptr [N + 1], numbers [M]: binary features of a token; values: [N, V] float32, of attributes
    whose value differs from 1 at some token; value_keys: [V] uint64, their keys.
    """

    indptr: Longs
    numbers: Longs
    values: NDArray[np.float32]
    value_keys: Hashes


class BigramAttributes(NamedTuple):
    """Attributes that are conjoined with pairs of labels.

    chosen: [n + 1] bool, mask of attributes by number; start_label: see `EncodedCorpus`.
    """

    chosen: NDArray[np.bool_]
    start_label: bool


class Encoded(NamedTuple):
    """A corpus.

    zeros: [n] int64, ascending, the coordinates of attributes with value 0 and the gold labels of
    their tokens; real: numbers of the real-valued attributes.
    """

    corpus: EncodedCorpus
    zeros: Longs
    real: list[int]


class GoldLabels(NamedTuple):
    """Gold labels.

    names: of the Y labels; ids: [N] int32, of tokens, -1 for none; weights: [S] float64, of
    sequences.
    """

    names: list[str]
    ids: NDArray[np.int32]
    weights: NDArray[np.float64]


def encode(
    attributes: Attributes,
    n_attributes: int,
    gold: GoldLabels,
    bigrams: BigramAttributes,
    min_freq: int,
) -> Encoded:
    """Create a corpus.

    n_attributes: number of attributes; bigrams: attributes also conjoined with pairs of labels;
    min_freq: attributes of fewer tokens are removed, unless they are real-valued.
    RAISES: SparseCRFError if real values do not fit into memory, or no attribute is left.
    """
    parts = _divide(attributes)
    counts = np.bincount(parts.numbers, minlength=n_attributes + 1)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= max(1, min_freq)]
    if min_freq > 1 and not len(order) + len(parts.value_keys):
        values = {"min_freq": min_freq, "n_tokens": len(gold.ids)}
        raise SparseCRFError(Errors.SC351.format(**values))
    keys = np.concatenate(((order + ALWAYS).astype(np.uint64), parts.value_keys))
    rank = np.full(n_attributes + 1, -1, np.int32)
    rank[keys - np.uint64(ALWAYS)] = np.arange(len(keys), dtype=np.int32)
    tests = rank[parts.numbers]
    pairs = _bigram_keys(attributes.offsets, parts, bigrams)
    pairs[:, 1:] = without_rare(pairs[:, 1:], min_freq)
    representatives, context = distinct_rows(pairs)
    bigram_keys, ctx_indptr, ctx_indices = number_features(pairs[representatives])
    corpus = EncodedCorpus(
        offsets=attributes.offsets,
        labels=gold.ids,
        weights=gold.weights,
        uni_indptr=np.append(0, np.cumsum(tests >= 0))[parts.indptr],
        uni_indices=tests[tests >= 0],
        context=context,
        ctx_indptr=ctx_indptr,
        ctx_indices=ctx_indices,
        unigram_keys=keys,
        bigram_keys=bigram_keys,
        start_label=bigrams.start_label,
        values=parts.values,
        value_features=np.arange(len(order), len(keys)),
    )
    test, label = rank[attributes.zero_numbers], gold.ids[attributes.zero_tokens]
    known = (test >= 0) & (label >= 0)
    zeros = np.unique(test[known].astype(np.int64) * len(gold.names) + label[known])
    return Encoded(corpus, zeros, (parts.value_keys - np.uint64(ALWAYS)).tolist())


def observe(attributes: Attributes, bigrams: BigramAttributes) -> Observations:
    """Create observations for a decoder; arguments and errors as for `encode`."""
    parts = _divide(attributes)
    unigrams = _rows(parts.indptr, parts.numbers)
    # A feature that is binary in the model may have other values in some sequences.
    pairs = _bigram_keys(attributes.offsets, _ones(attributes), bigrams)
    split, width = unigrams.shape[1], unigrams.shape[1] + pairs.shape[1]
    return Observations(
        hashes=np.concatenate((unigrams, pairs), axis=1),
        offsets=attributes.offsets,
        unigram_columns=np.arange(split, dtype=np.int32),
        bigram_columns=np.arange(split, width, dtype=np.int32),
        start_label=bigrams.start_label,
        values=parts.values,
        value_keys=parts.value_keys,
    )


def find_bigrams(
    texts: Sequence[str], bigrams: Sequence[str] | bool, start_label: bool
) -> BigramAttributes:
    """Find the attributes that are also conjoined with pairs of labels.

    texts: of the attributes from number 1; bigrams: attributes or keys of dicts, True for all;
    start_label: whether first tokens have pairs.
    Warns of names that no attribute has.
    """
    named = set() if isinstance(bigrams, bool) else set(bigrams)
    chosen, found = [bigrams is True] * len(texts), set[str]()
    for i, text in enumerate(texts if named else ()):
        own = [name for name in _names(text) if name in named]
        found.update(own)
        chosen[i] = bool(own)
    for name in sorted(map(str, named - found)):
        warn(Warnings.SCW804.format(value=name))
    return BigramAttributes(np.array([False, *chosen], dtype=np.bool_), start_label)


def bigrams_of(model: CRFModel, n_attributes: int) -> BigramAttributes:
    """Return the attributes that have weights with pairs of labels in a model."""
    chosen = np.zeros(n_attributes + 1, np.bool_)
    keys = model.bigram.keys
    chosen[keys[keys > ALWAYS] - np.uint64(ALWAYS)] = True
    # Without a start label in training, its pairs have no weights.
    return BigramAttributes(chosen, start_label=True)


def _names(text: str) -> Iterator[str]:
    """Yield an attribute, and its possible keys."""
    yield text
    yield from (text[: match.start()] for match in re.finditer(SEPARATOR, text))


def _divide(attributes: Attributes) -> _Parts:
    """Divide attributes into binary features and real values."""
    indptr, numbers, values = attributes.indptr, attributes.numbers, attributes.values
    if values is None:
        return _Parts(indptr, numbers, NO_VALUES, np.empty(0, np.uint64))
    valued = np.unique(numbers[values != 1.0])
    n_tokens = attributes.n_tokens
    _check_fits(n_tokens, len(valued))
    is_value = np.isin(numbers, valued)
    token = np.repeat(np.arange(n_tokens), np.diff(indptr))[is_value]
    column = np.searchsorted(valued, numbers[is_value])
    table = np.zeros((n_tokens, len(valued)), np.float32)
    np.add.at(table, (token, column), values[is_value].astype(np.float32))
    tests = np.append(0, np.cumsum(~is_value))[indptr]
    return _Parts(tests, numbers[~is_value], table, (valued + ALWAYS).astype(np.uint64))


def _ones(attributes: Attributes) -> _Parts:
    """Return the features of value 1."""
    indptr, numbers, values = attributes.indptr, attributes.numbers, attributes.values
    if values is not None:
        kept = values == 1.0
        indptr, numbers = np.append(0, np.cumsum(kept))[indptr], numbers[kept]
    return _Parts(indptr, numbers, NO_VALUES, np.empty(0, np.uint64))


def _check_fits(n_tokens: int, n_values: int) -> None:
    from ...loss.size import available_memory  # imports numba

    available, needed = available_memory(), 4 * n_tokens * n_values
    if available is not None and needed > available:
        counts = {"n_values": n_values, "n_tokens": n_tokens}
        sizes = {"needed": needed >> 20, "available": available >> 20}
        raise SparseCRFError(Errors.SC808.format(**counts, **sizes))


def _bigram_keys(offsets: Longs, parts: _Parts, bigrams: BigramAttributes) -> Hashes:
    """Return keys of features conjoined with pairs of labels: [N, 1 + B], the first always active.

    Without a start label, the first token of a sequence has none.
    """
    chosen = bigrams.chosen[parts.numbers]
    indptr = np.append(0, np.cumsum(chosen))[parts.indptr]
    rows = _rows(indptr, parts.numbers[chosen])
    rows = np.concatenate((np.full((len(rows), 1), ALWAYS, np.uint64), rows), axis=1)
    if not bigrams.start_label:
        rows[offsets[:-1][np.diff(offsets) > 0]] = 0
    return rows


def _rows(indptr: Longs, numbers: Longs) -> Hashes:
    """Return keys of features as rows [N, P], padded with 0."""
    sizes = np.diff(indptr)
    rows = np.zeros((len(sizes), sizes.max(initial=0)), np.uint64)
    column = np.arange(len(numbers)) - np.repeat(indptr[:-1], sizes)
    rows[np.repeat(np.arange(len(sizes)), sizes), column] = (numbers + ALWAYS).astype(np.uint64)
    return rows
