"""Helpers of tests of feature names."""

from collections.abc import Sequence

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc

from spacy_sparsecrf.crf.model.names import Outside, Value, read_feature
from spacy_sparsecrf.interop.patterns.pattern_featurizer import PatternFeaturizer
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.pipeline.features.naming import NameRecord, hash_names

from .reference_features import MASK, after, before, hash_values

EMPTY = 0x27D4EB2F165667C5  # value of an empty text of a pattern


def number(value: Value) -> int:
    """Return the number that is hashed for a value of a name."""
    if isinstance(value, Outside):
        distance = value.distance
        return before(-distance) if distance < 0 else after(distance)
    return (get_string_id(value) or EMPTY) if isinstance(value, str) else value & MASK


def names_of(
    features: Featurizer | PatternFeaturizer, docs: Sequence[Doc], sequences: str = "sents"
) -> list[list[str]]:
    """Return the names of the features at each token, "" where there is none.

    Every feature must have a name that hashes to it, by the kernel and by the reference.
    """
    record = NameRecord(features)
    halves = [record(docs[:1], sequences), record(docs[1:], sequences)]
    hashes = np.concatenate([half.hashes for half in halves])
    assert np.array_equal(hashes, features(docs, sequences).hashes)
    keys = np.unique(hashes[hashes != 0])
    names = record.names(keys)
    assert sorted(names) == keys.tolist()
    assert hash_names([*names.values()]).tolist() == [*names]
    for key, name in names.items():
        test = read_feature(name)
        assert hash_values(test.key, *map(number, test.values)) == key, name
    return [[names.get(key, "") for key in row] for row in hashes.tolist()]
