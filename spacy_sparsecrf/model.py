"""The trained model: labels, hashed tests, and the active weights only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import model_file
from .errors import Errors, SparseCRFError

# Labels are stored in 16 bits, the start label included.
MAX_LABELS = np.iinfo(np.uint16).max - 1
# A chain is normalised over paths; the others at each token, without or with the label before.
KINDS = ("chain", "maxent", "memm")


_PACKED = ("keys", "counts", "previous", "labels", "values")


@dataclass(frozen=True)
class WeightTable:
    """Active weights of one kind, grouped by test.

    keys: [O] uint64, sorted hashes of the tests; indptr: [O + 1] int64; previous, labels: [K]
    uint16, label pair of a weight (`previous` is empty for unigram weights; the number of labels
    stands for the start label); values: [K] float32 or float64.
    """

    keys: NDArray[np.uint64]
    indptr: NDArray[np.int64]
    previous: NDArray[np.uint16]
    labels: NDArray[np.uint16]
    values: NDArray[np.floating]

    @classmethod
    def empty(cls, dtype: DTypeLike) -> WeightTable:
        """A table without weights."""
        none = np.empty(0, np.uint16)
        return cls(np.empty(0, np.uint64), np.zeros(1, np.int64), none, none, np.empty(0, dtype))

    @property
    def n_active(self) -> int:
        """Number of weights."""
        return len(self.values)

    def packed(self) -> model_file.Arrays:
        """The arrays to store: the number of weights a test takes the place of indptr."""
        counts = np.diff(self.indptr)
        width = np.uint16 if counts.max(initial=0) <= np.iinfo(np.uint16).max else np.uint32
        stored = (self.keys, counts.astype(width), self.previous, self.labels, self.values)
        return dict(zip(_PACKED, stored, strict=True))

    @classmethod
    def unpacked(cls, arrays: model_file.Arrays) -> WeightTable:
        """The table that `packed` stored."""
        indptr = np.concatenate(([0], np.cumsum(arrays["counts"], dtype=np.int64)))
        return cls(arrays["keys"], indptr, arrays["previous"], arrays["labels"], arrays["values"])

    def is_sound(self, n_labels: int, pairs: bool) -> bool:
        """Whether indices are in range, keys ascend and values are finite."""
        n = self.n_active
        return bool(
            len(self.indptr) == len(self.keys) + 1
            and self.indptr[0] == 0
            and self.indptr[-1] == n
            and (np.diff(self.indptr) > 0).all()
            and (self.keys[1:] > self.keys[:-1]).all()
            and len(self.labels) == n
            and len(self.previous) == (n if pairs else 0)
            and (self.labels < n_labels).all()
            and (self.previous <= n_labels).all()
            and np.isfinite(self.values).all()
        )


def _check_dtype(dtype: str) -> str:
    if dtype not in ("float32", "float64"):
        raise SparseCRFError(Errors.SC310.format(value=dtype))
    return dtype


def check_kind(kind: str) -> str:
    """Refuse what is not one of KINDS."""
    if kind not in KINDS:
        raise SparseCRFError(Errors.SC342.format(value=kind, known=", ".join(KINDS)))
    return kind


def n_clusters(bounds: Sequence[int]) -> int:
    """Number of clusters, from their bounds."""
    return max(0, len(bounds) - 1)


def check_clusters(kind: str, number: int) -> None:
    """Refuse a number of clusters, other than 0, for all kinds but "maxent"."""
    if number and kind != "maxent":
        raise SparseCRFError(Errors.SC343.format(kind=kind))


def _are_bounds(bounds: Sequence[int], n_labels: int) -> bool:
    """Whether clusters have labels, and all labels a cluster."""
    ascend = all(a < b for a, b in pairwise(bounds))
    return ascend and len(bounds) > 1 and (bounds[0], bounds[-1]) == (0, n_labels)


class CRFModel:
    """Labels and active weights of a linear-chain CRF, or of a per-position model.

    labels: strings, their position is the label id. dtype: "float32" or "float64", how weights
    are stored. kind: "chain", "maxent" or "memm" (see `loss.local`). bounds: of clusters of
    labels, see `loss.parts`: the first label of each and the number of labels, empty for none;
    the unigram weights of cluster c are those of a label of the id Y + c.
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
    ) -> None:
        self._set(
            labels,
            _check_dtype(dtype),
            check_kind(kind),
            bounds,
            WeightTable.empty(dtype) if unigram is None else unigram,
            WeightTable.empty(dtype) if bigram is None else bigram,
        )

    def _set(
        self,
        labels: Sequence[str],
        dtype: str,
        kind: str,
        bounds: Sequence[int],
        unigram: WeightTable,
        bigram: WeightTable,
    ) -> None:
        check_clusters(kind, len(bounds))
        if len(set(labels)) < len(labels) or len(labels) + n_clusters(bounds) > MAX_LABELS:
            raise SparseCRFError(Errors.SC311.format(n=len(labels), most=MAX_LABELS))
        self.labels: tuple[str, ...] = tuple(labels)
        self.dtype = dtype
        self.kind = kind
        self.bounds: tuple[int, ...] = tuple(bounds)
        self.unigram = unigram
        self.bigram = bigram

    @property
    def n_active(self) -> int:
        """Number of stored weights, all non-zero."""
        return self.unigram.n_active + self.bigram.n_active

    @property
    def n_outcomes(self) -> int:
        """Number of labels and of clusters of labels."""
        return len(self.labels) + n_clusters(self.bounds)

    def add_label(self, label: str) -> None:
        """Append a label, whose weights are all zero; it joins the last cluster of labels.

        RAISES: SparseCRFError where the label is there already.
        """
        n = len(self.labels)
        previous = self.bigram.previous.copy()
        previous[previous == n] = n + 1  # the start label moves up
        bigram = replace(self.bigram, previous=previous)
        moved = (self.unigram.labels >= n).astype(np.uint16)  # clusters move up
        unigram = replace(self.unigram, labels=self.unigram.labels + moved)
        bounds = (*self.bounds[:-1], n + 1) if self.bounds else ()
        self._set((*self.labels, label), self.dtype, self.kind, bounds, unigram, bigram)

    def to_bytes(self) -> bytes:
        """Serialise; the same model gives the same bytes."""
        tables = {"unigram": self.unigram, "bigram": self.bigram}
        arrays = {
            f"{kind}.{name}": array
            for kind, table in tables.items()
            for name, array in table.packed().items()
        }
        meta = {
            "labels": list(self.labels),
            "dtype": self.dtype,
            "kind": self.kind,
            "bounds": list(self.bounds),
        }
        return model_file.write(meta, arrays)

    def from_bytes(self, data: bytes) -> CRFModel:
        """Replace this model by a serialised one.

        RAISES: SparseCRFError for data of a newer format, truncated or tampered with.
        """
        meta, arrays = model_file.read(data)
        try:
            tables = {
                kind: WeightTable.unpacked({name: arrays[f"{kind}.{name}"] for name in _PACKED})
                for kind in ("unigram", "bigram")
            }
            labels, dtype = meta["labels"], _check_dtype(meta["dtype"])
            # Files from before there were others have no kind, and no clusters.
            kind, bounds = check_kind(meta.get("kind", "chain")), meta.get("bounds", [])
        except (KeyError, TypeError) as error:
            raise SparseCRFError(Errors.SC314.format(reason=f"{error!r} is missing")) from error
        if bounds and not _are_bounds(bounds, len(labels)):
            raise SparseCRFError(Errors.SC314.format(reason="the clusters are unsound"))
        n_outcomes = {"unigram": len(labels) + n_clusters(bounds), "bigram": len(labels)}
        for name, table in tables.items():
            if not table.is_sound(n_outcomes[name], pairs=name == "bigram"):
                raise SparseCRFError(Errors.SC314.format(reason=f"the {name} table is unsound"))
        self._set(labels, dtype, kind, bounds, **tables)
        return self

    def to_disk(self, path: str | Path) -> None:
        """Write to a file."""
        Path(path).write_bytes(self.to_bytes())

    def from_disk(self, path: str | Path) -> CRFModel:
        """Replace this model by one from a file; RAISES as `from_bytes`."""
        return self.from_bytes(Path(path).read_bytes())
