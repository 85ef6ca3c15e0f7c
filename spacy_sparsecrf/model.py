"""The trained model: labels, hashed tests, and the active weights only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


class CRFModel:
    """Labels and active weights of a linear-chain CRF, or of a per-position model.

    labels: strings, their position is the label id. dtype: "float32" or "float64", how weights
    are stored. kind: "chain", "maxent" or "memm" (see `loss.local`).
    RAISES: SparseCRFError for another dtype or kind, repeated or too many labels.
    """

    def __init__(
        self,
        labels: Sequence[str] = (),
        dtype: str = "float32",
        unigram: WeightTable | None = None,
        bigram: WeightTable | None = None,
        kind: str = "chain",
    ) -> None:
        self._set(
            labels,
            _check_dtype(dtype),
            check_kind(kind),
            WeightTable.empty(dtype) if unigram is None else unigram,
            WeightTable.empty(dtype) if bigram is None else bigram,
        )

    def _set(
        self,
        labels: Sequence[str],
        dtype: str,
        kind: str,
        unigram: WeightTable,
        bigram: WeightTable,
    ) -> None:
        if len(set(labels)) < len(labels) or len(labels) > MAX_LABELS:
            raise SparseCRFError(Errors.SC311.format(n=len(labels), most=MAX_LABELS))
        self.labels: tuple[str, ...] = tuple(labels)
        self.dtype = dtype
        self.kind = kind
        self.unigram = unigram
        self.bigram = bigram

    @property
    def n_active(self) -> int:
        """Number of stored weights, all non-zero."""
        return self.unigram.n_active + self.bigram.n_active

    def add_label(self, label: str) -> None:
        """Append a label, whose weights are all zero.

        RAISES: SparseCRFError where the label is there already.
        """
        n = len(self.labels)
        previous = self.bigram.previous.copy()
        previous[previous == n] = n + 1  # the start label moves up
        bigram = WeightTable(
            self.bigram.keys,
            self.bigram.indptr,
            previous,
            self.bigram.labels,
            self.bigram.values,
        )
        self._set((*self.labels, label), self.dtype, self.kind, self.unigram, bigram)

    def to_bytes(self) -> bytes:
        """Serialise; the same model gives the same bytes."""
        tables = {"unigram": self.unigram, "bigram": self.bigram}
        arrays = {
            f"{kind}.{name}": array
            for kind, table in tables.items()
            for name, array in table.packed().items()
        }
        meta = {"labels": list(self.labels), "dtype": self.dtype, "kind": self.kind}
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
            # Files from before there were others have no kind.
            kind = check_kind(meta.get("kind", "chain"))
        except (KeyError, TypeError) as error:
            raise SparseCRFError(Errors.SC314.format(reason=f"{error!r} is missing")) from error
        for name, table in tables.items():
            if not table.is_sound(len(labels), pairs=name == "bigram"):
                raise SparseCRFError(Errors.SC314.format(reason=f"the {name} table is unsound"))
        self._set(labels, dtype, kind, **tables)
        return self

    def to_disk(self, path: str | Path) -> None:
        """Write to a file."""
        Path(path).write_bytes(self.to_bytes())

    def from_disk(self, path: str | Path) -> CRFModel:
        """Replace this model by one from a file; RAISES as `from_bytes`."""
        return self.from_bytes(Path(path).read_bytes())
