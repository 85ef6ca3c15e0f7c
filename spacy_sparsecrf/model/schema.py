"""What a model file must hold: the arrays of two tables of weights, and what is told of them.

Kernels take labels and places from a model for indices: whatever is out of range is refused here.
"""

from collections.abc import Sequence
from itertools import pairwise
from reprlib import repr
from typing import Any

import numpy as np

from .file import Arrays, damaged, has_keys

TABLES = ("unigram", "bigram")
# The arrays of a table, in the order of a file, and their dtypes; values are as wide as is told.
PACKED = ("keys", "counts", "previous", "labels", "values")
_DTYPES = {"keys": ("<u8",), "counts": ("<u2", "<u4"), "previous": ("<u2",), "labels": ("<u2",)}
_VALUES = {"float32": ("<f4",), "float64": ("<f8",)}


def check_meta(meta: dict[str, Any]) -> None:
    """Check labels and clusters; which kinds and dtypes there are, `CRFModel` knows.

    RAISES: SparseCRFError that names what is wrong.
    """
    # Files from before there were others have no kind, and no clusters.
    if not has_keys(meta, {"labels", "dtype"}, {"kind", "bounds"}):
        raise damaged(f"it tells {repr(sorted(meta))}, not labels, dtype, kind and bounds")
    labels, bounds = meta["labels"], meta.get("bounds", [])
    if not isinstance(labels, list) or not all(map(_is_text, labels)):
        raise damaged("its labels are not a list of texts")
    if len(set(labels)) < len(labels):
        raise damaged("it has a label twice")
    if not isinstance(bounds, list) or (bounds and not _are_bounds(bounds, len(labels))):
        raise damaged("the clusters are unsound")


def check_arrays(arrays: Arrays, dtype: str, n_labels: int, n_outcomes: int) -> None:
    """Check the tables of weights; after that, everything in them can be taken for an index.

    dtype: of values; n_outcomes: labels and clusters of labels, which unigram weights are of.
    RAISES: SparseCRFError that names what is wrong.
    """
    expected = [f"{table}.{name}" for table in TABLES for name in PACKED]
    if list(arrays) != expected:
        raise damaged(f"its arrays are {repr(list(arrays))}, not {', '.join(expected)}")
    for table in TABLES:
        parts = {name: arrays[f"{table}.{name}"] for name in PACKED}
        for name, array in parts.items():
            if array.dtype.str not in _DTYPES.get(name, _VALUES[dtype]):
                raise damaged(f"{table}.{name} has the dtype {array.dtype.str}")
        n = len(parts["values"])
        sizes = {"counts": len(parts["keys"]), "labels": n, "previous": n}
        if table == "unigram":
            sizes["previous"] = 0
        for name, size in sizes.items():
            if len(parts[name]) != size:
                raise damaged(f"{table}.{name} has {len(parts[name])} entries, not {size}")
        fault = _fault(parts, n_labels, n_outcomes if table == "unigram" else n_labels)
        if fault:
            raise damaged(f"{table}.{fault}")


def _fault(parts: Arrays, n_labels: int, n_outcomes: int) -> str:
    """What is wrong with the values of a table, or nothing."""
    keys, counts = parts["keys"], parts["counts"]
    if not (keys[1:] > keys[:-1]).all():
        return "keys do not ascend"
    if not counts.all() or int(counts.sum(dtype=np.int64)) != len(parts["values"]):
        return "counts are not those of its weights"
    if not (parts["labels"] < n_outcomes).all():
        return "labels are not all among those of the model"
    if not (parts["previous"] <= n_labels).all():
        return "previous labels are not all among those of the model"
    return "" if np.isfinite(parts["values"]).all() else "values are not all finite"


def _is_text(label: Any) -> bool:
    """Whether something is a text that can be written again: without half a character."""
    return isinstance(label, str) and not any("\ud800" <= char <= "\udfff" for char in label)


def _are_bounds(bounds: Sequence[Any], n_labels: int) -> bool:
    """Whether clusters have labels, and all labels a cluster."""
    whole = all(type(bound) is int for bound in bounds)
    ascend = whole and all(a < b for a, b in pairwise(bounds))
    return ascend and len(bounds) > 1 and (bounds[0], bounds[-1]) == (0, n_labels)
