"""Trained weights of attributes and of pairs of labels, and their file."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import srsly

from ...atomic_write import write_files
from ...crf.model.model import CRFModel, WeightTable
from ...errors import Errors, SparseCRFError
from ...schema import reported_as
from ..crfsuite_file import (
    CrfsuiteModel,
    ExternalWeights,
    check_labels,
    encoded,
    write_crfsuite,
)
from ..external_models import of_crfsuite
from .item_encoding import ALWAYS, SHOWN

START = "__BOS__"
"""The attribute of first tokens that has the weights of the start label in other programs."""


class TrainedWeights:
    """The non-zero weights of a model.

    model: with the keys of `encoding`; attributes: in the order of these keys; real: attributes
    with other values than 0 and 1 in training.
    """

    def __init__(
        self, model: CRFModel, attributes: Sequence[str], real: Sequence[str] = ()
    ) -> None:
        self.model, self.attributes, self.real = model, [*attributes], [*real]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the weights, without what is computed from them."""
        return TrainedWeights, (self.model, self.attributes, self.real)

    @classmethod
    def of(cls, model: CRFModel, texts: Sequence[str], real: Sequence[str]) -> "TrainedWeights":
        """Return the attributes with weights, renumbered. texts: attributes by number from 1."""
        active = np.union1d(model.unigram.keys, model.bigram.keys)
        active = active[active != ALWAYS]

        def numbered(table: WeightTable) -> WeightTable:
            keys = np.where(table.keys == ALWAYS, 0, active.searchsorted(table.keys) + 1)
            return replace(table, keys=keys.astype(np.uint64) + np.uint64(ALWAYS))

        unigram, bigram = numbered(model.unigram), numbered(model.bigram)
        attributes = [texts[key - ALWAYS - 1] for key in active.tolist()]
        renumbered = CRFModel(model.labels, model.dtype, unigram, bigram)
        return cls(renumbered, attributes, sorted({*attributes}.intersection(real)))

    @classmethod
    def of_crfsuite(cls, source: CrfsuiteModel) -> "TrainedWeights":
        """Return the weights of a model of CRFsuite, with the same numbers."""
        return cls(numbered(source), source.attributes)

    @classmethod
    def from_bytes(cls, data: bytes, path: object) -> "TrainedWeights":
        """Return the weights that `to_bytes` wrote. path: for messages. RAISES: SparseCRFError."""
        damage = (ValueError, LookupError, TypeError, AttributeError)
        with reported_as(Errors.SC631, damage, path=path, program="CRFsuite"):
            values = srsly.msgpack_loads(data)
            model = CRFModel.from_bytes(values["model"])
            attributes = [name.decode("utf8", "surrogateescape") for name in values["attributes"]]
            check_labels(model.labels, len(data), path)
            for table, least in ((model.unigram, ALWAYS + 1), (model.bigram, ALWAYS)):
                keys = table.keys
                if len(keys) and not least <= keys.min() <= keys.max() <= len(attributes) + ALWAYS:
                    raise ValueError("features have no names")
            return cls(model, attributes)

    def to_bytes(self) -> bytes:
        """Return the weights in CRFsuite's format, or if they do not fit into it, in our own."""
        has_zeros = any("\0" in name for name in (*self.labels, *self.attributes))
        if not (has_zeros or self.has_start or self.bigrams):
            return self.to_crfsuite()
        names = [*map(encoded, self.attributes)]
        values = {"model": self.model.to_bytes(), "attributes": names}
        data: bytes = srsly.msgpack_dumps(values)
        return data

    def to_crfsuite(self) -> bytes:
        """Return the weights in CRFsuite's format.

        Weights of the start label become weights of the attribute START.
        RAISES: SparseCRFError for weights of attributes and label pairs, and names with zero bytes.
        """
        if self.bigrams:
            names = ", ".join(self.bigrams[:SHOWN])
            raise SparseCRFError(Errors.SC822.format(n=len(self.bigrams), names=names))
        attributes = [*dict.fromkeys(self.attributes + [START] * self.has_start)]
        n, n_labels = len(attributes), len(self.labels)
        start = attributes.index(START) if self.has_start else n
        rows = []
        for number, previous, y, weight in self.entries():
            if previous < 0:
                pair = number - 1, -1
            else:
                pair = (start, -1) if previous == n_labels else (n, previous)
            rows.append((*pair, y, weight))
        return write_crfsuite(self.labels, attributes, ExternalWeights.of(rows))

    @property
    def has_start(self) -> bool:
        """Whether pairs of the start label have weights."""
        return bool((self.model.bigram.previous == len(self.model.labels)).any())

    @property
    def bigrams(self) -> list[str]:
        """The attributes that have weights with pairs of labels."""
        keys = self.model.bigram.keys
        return [self.attributes[key - ALWAYS - 1] for key in keys[keys > ALWAYS].tolist()]

    @property
    def labels(self) -> list[str]:
        """The labels, by number."""
        return [*self.model.labels]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The numbers of attributes, from 1; 0 of unknown ones."""
        return Counter({text: number for number, text in enumerate(self.attributes, start=1)})

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return len(self.to_bytes())

    def entries(self) -> Iterator[tuple[int, int, int, float]]:
        """Yield attributes by number, or 0, labels before, or -1, labels, and non-zero weights."""
        for table in (self.model.unigram, self.model.bigram):
            for (key, previous, y), weight in table.entries():
                yield key - ALWAYS, previous, y, float(weight)


def numbered(source: CrfsuiteModel) -> CRFModel:
    """Return the weights of a model of CRFsuite, without the names of attributes."""
    trained = of_crfsuite(source)
    weights = trained.weights
    is_state = weights.features < source.n_attributes
    keys = np.where(is_state, weights.features + ALWAYS + 1, ALWAYS)
    is_exact = (weights.values == weights.values.astype(np.float32)).all()
    keyed = trained._replace(weights=weights._replace(features=keys))
    return keyed.with_numbers("float32" if is_exact else "float64")


def write_file(path: str | PathLike[str], data: bytes) -> None:
    """Write the file of a model. RAISES: SparseCRFError if that fails."""
    write_files(Path(path).parent, {Path(path).name: data}, "model_filename")
