"""The trained model: labels, hashed features, and the active weights only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ... import compatible
from ...atomic_write import write_files
from ...errors import Errors, SparseCRFError
from ...schema import reported_as
from ..corpus.coordinates import Coordinates
from ..corpus.encoded import MAX_LABELS
from ..corpus.ragged import pointers
from . import file

# "chain" is normalised per sequence; "maxent" and "memm" per token, without and with the previous
# label.
Kind = Literal["chain", "maxent", "memm"]
KINDS = get_args(Kind)


@dataclass(frozen=True)
class WeightTable:
    """Active unigram or bigram weights, grouped by feature.

    keys: [O] uint64, sorted hashes of the features; indptr: [O + 1] int64; previous, labels: [K]
    uint16, label pair of a weight (`previous` is empty for unigram weights; the id of the start
    label is the number of labels); values: [K] float32 or float64.
    """

    keys: NDArray[np.uint64]
    indptr: NDArray[np.int64]
    previous: NDArray[np.uint16]
    labels: NDArray[np.uint16]
    values: NDArray[np.floating]

    @classmethod
    def empty(cls, dtype: DTypeLike) -> WeightTable:
        """Return a table without weights."""
        no_labels = np.empty(0, np.uint16)
        return cls(
            keys=np.empty(0, np.uint64),
            indptr=np.zeros(1, np.int64),
            previous=no_labels,
            labels=no_labels,
            values=np.empty(0, dtype),
        )

    @classmethod
    def of(
        cls,
        keys: NDArray[np.uint64],
        previous: NDArray[np.integer] | None,
        labels: NDArray[np.integer],
        values: NDArray[np.floating],
    ) -> WeightTable:
        """Group weights [K] by feature: feature hashes, previous labels or None, labels, values.

        Zero weights are dropped; the weights of a feature stay in the given order.
        """
        active = np.flatnonzero(values)
        order = active[np.argsort(keys[active], kind="stable")]
        features, starts = np.unique(keys[order], return_index=True)
        no_labels = np.empty(0, np.uint16)
        return cls(
            keys=features,
            indptr=np.append(starts, len(order)).astype(np.int64),
            previous=no_labels if previous is None else previous[order].astype(np.uint16),
            labels=labels[order].astype(np.uint16),
            values=values[order],
        )

    def entries(self) -> Iterator[tuple[tuple[int, int, int], np.floating]]:
        """Return pairs of (hash, previous label or -1, label) and value, one for each weight."""
        keys = np.repeat(self.keys, np.diff(self.indptr)).tolist()
        previous = self.previous.tolist() if len(self.previous) else [-1] * len(keys)
        coordinates = zip(keys, previous, self.labels.tolist(), strict=True)
        return zip(coordinates, self.values, strict=True)

    def packed(self) -> file.Arrays:
        """Return the arrays to store, with the number of weights per feature instead of indptr."""
        counts = np.diff(self.indptr)
        width = np.uint16 if counts.max(initial=0) <= np.iinfo(np.uint16).max else np.uint32
        stored = (self.keys, counts.astype(width), self.previous, self.labels, self.values)
        return dict(zip(file.PACKED, stored, strict=True))

    @classmethod
    def unpacked(cls, arrays: file.Arrays) -> WeightTable:
        """Return the table that `packed` stored."""
        indptr = pointers(arrays["counts"])
        stored = {name: arrays[name] for name in file.PACKED if name != "counts"}
        return cls(indptr=indptr, **stored)


def check_kind(kind: str) -> str:
    """Return the kind. RAISES: SparseCRFError if it is not one of KINDS."""
    if kind not in KINDS:
        raise SparseCRFError(Errors.SC342.format(value=kind, known=", ".join(KINDS)))
    return kind


@dataclass(frozen=True)
class WeightNames:
    """The hashes and labels that coordinates of weights (see `corpus.coordinates`) stand for.

    unigram_keys, bigram_keys: [O] uint64, distinct hashes of the features, index = feature id;
    labels: label names, index = label id; bounds: of clusters of labels, see `CRFModel`;
    start_label: whether pairs (start, y) exist; kind: of the model.
    """

    unigram_keys: NDArray[np.uint64]
    bigram_keys: NDArray[np.uint64]
    labels: tuple[str, ...]
    bounds: tuple[int, ...]
    start_label: bool
    kind: str

    @property
    def coding(self) -> Coordinates:
        """The potential weights by coordinate; clusters of labels are further labels."""
        n_outcomes = len(self.labels) + max(0, len(self.bounds) - 1)
        return Coordinates(n_outcomes, len(self.unigram_keys), self.start_label)


class CRFModel:
    """Labels and active weights of a linear-chain CRF, or of a per-position model.

    labels: label names, index = label id; ids, including the start label's, are stored in 16 bits.
    dtype: "float32" or "float64", dtype of stored weights. kind: "chain", "maxent" or "memm"
    (see `loss.per_token`). bounds: of clusters of labels, see `loss.subproblems`: the first
    label of each and the number of labels, empty for no clusters; the unigram weights of cluster c
    have label id Y + c. first: the first-stage model of two, with the same labels, dtype, kind and
    bounds; features of this model may read its predictions (see `attributes.stage`). The attribute
    `cfg` has the digest that a loaded model was saved with, see `to_bytes`.
    RAISES: SparseCRFError for another dtype or kind, repeated or too many labels, or clusters with
    another kind than "maxent".
    """

    def __init__(
        self,
        labels: Sequence[str] = (),
        dtype: str = "float32",
        unigram: WeightTable | None = None,
        bigram: WeightTable | None = None,
        kind: str = "chain",
        bounds: Sequence[int] = (),
        first: CRFModel | None = None,
    ) -> None:
        if dtype not in ("float32", "float64"):
            raise SparseCRFError(Errors.SC310.format(value=dtype))
        self.first, self.dtype, self.kind = first, dtype, check_kind(kind)
        n_clusters = max(0, len(bounds) - 1)
        if bounds and kind != "maxent":
            compatible.check(compatible.facts_of_run(kind=kind, clusters=n_clusters))
        if len(set(labels)) < len(labels) or len(labels) + n_clusters > MAX_LABELS:
            raise SparseCRFError(Errors.SC311.format(n=len(labels), most=MAX_LABELS))
        self.cfg = ""
        self.labels: tuple[str, ...] = tuple(labels)
        self.bounds: tuple[int, ...] = tuple(bounds)
        self.n_outcomes = len(labels) + n_clusters
        self.unigram = WeightTable.empty(dtype) if unigram is None else unigram
        self.bigram = WeightTable.empty(dtype) if bigram is None else bigram

    @classmethod
    def of_weights(
        cls,
        names: WeightNames,
        coordinates: NDArray[np.int64],
        theta: NDArray[np.float64],
        dtype: str,
    ) -> CRFModel:
        """Return the model with the given weights.

        coordinates: [n] int64, ascending; theta: [n]; dtype: see `CRFModel`. Weights that
        underflow the dtype are dropped.
        """
        feature, previous, label = names.coding.decode(coordinates)
        values, split = theta.astype(dtype), names.coding.split(coordinates)
        unigram = WeightTable.of(
            keys=names.unigram_keys[feature[:split]],
            previous=None,
            labels=label[:split],
            values=values[:split],
        )
        bigram = WeightTable.of(
            keys=names.bigram_keys[feature[split:] - len(names.unigram_keys)],
            previous=previous[split:],
            labels=label[split:],
            values=values[split:],
        )
        return cls(
            names.labels,
            dtype=dtype,
            unigram=unigram,
            bigram=bigram,
            kind=names.kind,
            bounds=names.bounds,
        )

    @property
    def tables(self) -> dict[str, WeightTable]:
        """The tables of weights by their names in files, including the first-stage model's."""
        tables = dict(zip(file.TABLES, (self.unigram, self.bigram), strict=True))
        if self.first is not None:
            tables |= {file.FIRST + name: table for name, table in self.first.tables.items()}
        return tables

    @property
    def keys(self) -> list[NDArray[np.uint64]]:
        """Hashes of the features with weights, an array for each table."""
        return [table.keys for table in self.tables.values()]

    @property
    def n_active(self) -> int:
        """Number of stored weights, all non-zero, without the weights of the first-stage model."""
        return len(self.unigram.values) + len(self.bigram.values)

    def with_labels(self, labels: Sequence[str]) -> CRFModel:
        """Return the model with further labels, also in the last cluster, with all weights zero.

        labels: those of the model, then others. RAISES: SparseCRFError for a repeated label.
        """
        n = len(self.labels)
        n_new = len(labels) - n
        if not n_new:
            return self
        previous = self.bigram.previous.copy()
        previous[previous == n] += n_new  # the start label moves up
        bigram = replace(self.bigram, previous=previous)
        moved = np.where(self.unigram.labels >= n, n_new, 0).astype(np.uint16)  # clusters move up
        unigram = replace(self.unigram, labels=self.unigram.labels + moved)
        bounds = (*self.bounds[:-1], len(labels)) if self.bounds else ()
        return CRFModel(
            labels,
            dtype=self.dtype,
            unigram=unigram,
            bigram=bigram,
            kind=self.kind,
            bounds=bounds,
            first=None if self.first is None else self.first.with_labels(labels),
        )

    def with_weights(self, unigram: WeightTable, bigram: WeightTable) -> CRFModel:
        """Return a model of one stage with the same labels and other weights."""
        return CRFModel(
            self.labels,
            dtype=self.dtype,
            unigram=unigram,
            bigram=bigram,
            kind=self.kind,
            bounds=self.bounds,
        )

    def to_bytes(self, cfg: str = "") -> bytes:
        """Serialise; the same model gives the same bytes.

        cfg: digest of the component's file `cfg`; "" for a model without one.
        """
        arrays = {
            f"{table}.{name}": array
            for table, weights in self.tables.items()
            for name, array in weights.packed().items()
        }
        meta: dict[str, Any] = {
            "labels": list(self.labels),
            "dtype": self.dtype,
            "kind": self.kind,
            "bounds": list(self.bounds),
        }
        if cfg:
            meta[file.CFG] = cfg
        return file.write(meta, arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> CRFModel:
        """Load a serialised model.

        RAISES: SparseCRFError for data that is invalid or of a newer format, see `file`.
        """
        with reported_as(Errors.SC314):
            meta, arrays = file.read(data)
            file.check_meta(meta)
            labels, dtype, kind, bounds = (meta[key] for key in file.META)
            model = cls(labels, dtype, kind=kind, bounds=bounds)
            file.check_arrays(arrays, dtype, len(labels), model.n_outcomes)
        first_stage = None
        for prefix in file.prefixes_of(arrays):
            unigram, bigram = (
                WeightTable.unpacked(
                    {name: arrays[f"{prefix}{table}.{name}"] for name in file.PACKED}
                )
                for table in file.TABLES
            )
            model = model.with_weights(unigram, bigram)
            model.first, first_stage = first_stage, model
        model.cfg = meta.get(file.CFG, "")
        return model

    def to_disk(self, path: str | Path) -> None:
        """Write to a file. RAISES: SparseCRFError if the file cannot be written."""
        write_files(Path(path).parent, {Path(path).name: self.to_bytes()}, "the path")

    @classmethod
    def from_disk(cls, path: str | Path) -> CRFModel:
        """Load a model from a file. RAISES: as `from_bytes`."""
        return cls.from_bytes(Path(path).read_bytes())
