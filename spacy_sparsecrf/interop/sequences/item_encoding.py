"""Conversion of token attributes to a corpus for training and to observations for decoding."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...crf.corpus.builder import CorpusBuilder
from ...crf.corpus.coordinates import Coordinates
from ...crf.corpus.encoded import EncodedCorpus, Observations
from ...crf.corpus.numbering import Floats, Hashes, Longs, Mask, find_keys
from ...crf.memory import available_memory
from ...crf.model.model import CRFModel
from ...errors import Errors, SparseCRFError, Warnings, warn
from .items import SEPARATOR, Vocabulary, invalid, read_numbers
from .labels import read_gold, read_weights

# The key of the feature that is active at every token; an attribute's key is its number plus this.
ALWAYS = 1
SHOWN = 10  # features in messages


class Attributes(NamedTuple):
    """Known attributes of the N tokens of sequences.

    offsets: [S + 1] int64, tokens of a sequence; tokens, numbers: [M] int64, token and number > 0
    of an attribute, in the order of tokens; values: [M] float64, finite.
    """

    offsets: Longs
    tokens: Longs
    numbers: Longs
    values: Floats


class Encoded(NamedTuple):
    """A corpus for training.

    labels: strings by id; texts: the attributes, from number 1; real: the real-valued ones; zeros:
    [n] int64, ascending, coordinates of attributes with value 0 and the gold labels of their
    tokens.
    """

    corpus: EncodedCorpus
    labels: list[str]
    texts: list[str]
    real: list[str]
    zeros: Longs

    def also(self, states: bool, transitions: bool) -> Longs:
        """Return the coordinates of permitted weights that are not observed: [n], ascending.

        states, transitions: whether all weights of features and of transitions are permitted.
        """
        coding = Coordinates.of(self.corpus, len(self.labels))
        also = np.arange(coding.first_pair) if states else self.zeros
        if transitions:
            always = coding.n_unigram + np.flatnonzero(self.corpus.bigram_keys == ALWAYS)
            also = np.concatenate((also, coding.complete(always)))
        return also


def read_corpus(
    X: Iterable[Any],
    y: Iterable[Any],
    sample_weight: ArrayLike | None,
    named: Sequence[str] | bool,
    start_label: bool,
    min_freq: int,
) -> Encoded:
    """Read sequences of features and their labels; see `CRF`; named: its `bigrams`.

    Warns of real-valued features that would be conjoined with pairs of labels.
    RAISES: SparseCRFError also if no attribute is left.
    """
    vocabulary = Vocabulary()
    attributes = read_attributes(X, vocabulary)
    lengths = np.diff(attributes.offsets).tolist()
    names, ids = read_gold(y, lengths)
    texts, values = vocabulary.texts, attributes.values
    chosen = find_bigrams(texts, named)
    real = np.unique(attributes.numbers[(values != 0.0) & (values != 1.0)])
    if ignored := [texts[number - 1] for number in real[chosen[real]].tolist()]:
        warn(Warnings.SCW805.format(names=", ".join(ignored[:SHOWN])))
    chosen[real] = False
    for name in (*names, *texts):
        try:
            name.encode("utf8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise invalid(repr(name), error) from None
    builder = CorpusBuilder()
    observations = observe(attributes, chosen, start_label)
    builder.add(observations, ids, read_weights(sample_weight, len(lengths)))
    corpus = builder.build(min_freq)
    is_zero = values == 0.0
    feature = find_keys(corpus.unigram_keys, _keys(attributes.numbers[is_zero]))
    label = ids[attributes.tokens[is_zero]]
    has_weight = (feature >= 0) & (label >= 0)
    zeros = np.unique(feature[has_weight] * len(names) + label[has_weight])
    return Encoded(
        corpus=corpus,
        labels=names,
        texts=texts,
        real=[texts[n - 1] for n in real.tolist()],
        zeros=zeros,
    )


def read_attributes(sequences: Iterable[Any], vocabulary: Vocabulary) -> Attributes:
    """Read the features of sequences of tokens. RAISES: as `read_numbers`."""
    ends, sizes, numbers, values = read_numbers(sequences, vocabulary)
    signed = np.array(numbers, np.int64)
    of_tokens = np.where(signed < 0, 0.0, 1.0)
    of_tokens[[*values]] = [*values.values()]
    known_attributes = np.flatnonzero(signed)
    tokens = np.repeat(np.arange(len(sizes)), sizes)
    return Attributes(
        offsets=np.array(ends),
        tokens=tokens[known_attributes],
        numbers=np.abs(signed[known_attributes]),
        values=of_tokens[known_attributes],
    )


def observe(attributes: Attributes, chosen: Mask, start_label: bool) -> Observations:
    """Create observations.

    chosen: [n + 1] bool, mask of attributes by number that are also conjoined with pairs of labels;
    start_label: see `Observations`.
    RAISES: SparseCRFError if real values do not fit into memory.
    """
    offsets, tokens, numbers, values = attributes
    n_tokens, is_one = int(offsets[-1]), values == 1.0
    valued = np.unique(numbers[~is_one & (values != 0.0)])
    _check_fits(n_tokens, len(valued))
    is_value = np.isin(numbers, valued)
    column = np.searchsorted(valued, numbers[is_value])
    table = np.zeros((n_tokens, len(valued)), np.float32)
    np.add.at(table, (tokens[is_value], column), values[is_value].astype(np.float32))
    is_unigram = is_one & ~is_value
    unigrams = rows_of(tokens[is_unigram], numbers[is_unigram], n_tokens)
    # A feature that is binary in the model may have other values in some sequences.
    is_bigram = is_one & chosen[numbers]
    pairs = rows_of(tokens[is_bigram], numbers[is_bigram], n_tokens)
    always = np.full((n_tokens, 1), ALWAYS, np.uint64)
    split, width = unigrams.shape[1], unigrams.shape[1] + 1 + pairs.shape[1]
    return Observations(
        hashes=np.concatenate((unigrams, always, pairs), axis=1),
        offsets=offsets,
        unigram_columns=np.arange(split, dtype=np.int32),
        bigram_columns=np.arange(split, width, dtype=np.int32),
        start_label=start_label,
        values=table,
        value_keys=_keys(valued),
    )


def find_bigrams(texts: Sequence[str], bigrams: Sequence[str] | bool) -> Mask:
    """Find the attributes that are also conjoined with pairs of labels; see `observe`.

    texts: of the attributes from number 1; bigrams: attributes or keys of dicts, True for all.
    Warns of names that no attribute has.
    """
    chosen = np.full(len(texts) + 1, bigrams is True)
    for name in () if isinstance(bigrams, bool) else sorted({*map(str, bigrams)}):
        is_named = [text == name or text.startswith(name + SEPARATOR) for text in texts]
        chosen[1:] |= is_named
        if not any(is_named):
            warn(Warnings.SCW804.format(value=name))
    return chosen


def bigrams_of(model: CRFModel, n_attributes: int) -> Mask:
    """Return the attributes that have weights with pairs of labels in a model; see `observe`."""
    chosen = np.zeros(n_attributes + 1, np.bool_)
    keys = model.bigram.keys
    chosen[keys[keys > ALWAYS] - np.uint64(ALWAYS)] = True
    return chosen


def _keys(numbers: Longs) -> Hashes:
    """Return the keys of attributes."""
    return (numbers + ALWAYS).astype(np.uint64)


def _check_fits(n_tokens: int, n_values: int) -> None:
    available, needed = available_memory(), 4 * n_tokens * n_values
    if available is not None and needed > available:
        counts = {"n_values": n_values, "n_tokens": n_tokens}
        sizes = {"needed": needed >> 20, "available": available >> 20}
        raise SparseCRFError(Errors.SC808.format(**counts, **sizes))


def rows_of(tokens: Longs, numbers: Longs, n_tokens: int) -> Hashes:
    """Return keys of features as rows [N, P], padded with 0; tokens: [M], ascending."""
    sizes = np.bincount(tokens, minlength=n_tokens)
    rows = np.zeros((n_tokens, sizes.max(initial=0)), np.uint64)
    begins = np.cumsum(sizes) - sizes
    rows[tokens, np.arange(len(tokens)) - begins[tokens]] = _keys(numbers)
    return rows
