"""A training run on disk: what a run that was cut off continues from, bit for bit.

A checkpoint holds the solver's state, never the corpus: it only fits the run that it was made of.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..model.file import Arrays, read, write
from ..penalty import ElasticNet
from ..solvers.base import BatchSolver

# What a file stores for each kind of value; other kinds are widened.
_STORED = {"f": "<f8", "i": "<i8", "u": "<u8", "b": "<u2"}
_SCALARS = {"bool": bool, "int": int, "float": float}
# Bytes that are hashed at once.
_PIECE = 1 << 24


def digest(*arrays: NDArray[Any], release: Callable[[], None] = lambda: None) -> str:
    """Tell arrays from others: a hash of their bytes; release: called after each piece."""
    found = hashlib.blake2b(digest_size=16)
    for array in arrays:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for first in range(0, len(data), _PIECE):
            found.update(data[first : first + _PIECE].data)
            release()
    return found.hexdigest()


def identity_of(solver: BatchSolver, penalty: ElasticNet) -> dict[str, Any]:
    """What a run and its continuation have in common of how they learn, as JSON has it."""
    # What it needs of a problem follows from its settings; how it began is over, and is not in
    # checkpoints of before there was a choice.
    left_out = "requires", "average_warm_start"
    settings = {key: value for key, value in vars(solver).items() if key not in left_out}
    return {
        "solver": [type(solver).__name__, *map(str, settings.items())],
        "l1": repr(penalty.l1),
        "l2": repr(penalty.l2),
    }


def prefixed(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values, by names that begin with a prefix."""
    return {prefix + name: value for name, value in values.items()}


def without_prefix(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    """Those values whose names begin with a prefix, by the rest of their names."""
    return {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}


def save(path: Path, identity: dict[str, Any], values: dict[str, Any]) -> None:
    """Write arrays and scalars to a file, at once or not at all.

    identity: JSON-able, of the run, without floats, which JSON may round; values: arrays of
    numbers, float, int and bool, by name.
    """
    arrays: Arrays = {}
    kinds: dict[str, Any] = {}
    for name, value in values.items():
        array = np.asarray(value)
        arrays[name] = array.astype(_STORED[array.dtype.kind]).ravel()
        scalar = None if isinstance(value, np.ndarray) else type(value).__name__
        kinds[name] = [array.dtype.str, list(array.shape), scalar]
    data = write({"checkpoint": identity, "kinds": kinds}, arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(data)
    os.replace(unfinished, path)


def load(path: Path, identity: dict[str, Any]) -> dict[str, Any]:
    """Read what `save` wrote.

    RAISES: SparseCRFError for a damaged file, another kind of file, or another run's.
    """
    meta, arrays = read(path.read_bytes())
    found = meta.get("checkpoint")
    if found is None:
        raise SparseCRFError(Errors.SC315.format(path=path))
    # What a version of before did not know was as if it were empty.
    differing = sorted(key for key in identity if found.get(key, "") != identity[key])
    if differing:
        raise SparseCRFError(Errors.SC316.format(path=path, differing=", ".join(differing)))
    values: dict[str, Any] = {}
    for name, (dtype, shape, scalar) in meta["kinds"].items():
        array = arrays[name].astype(dtype).reshape(shape)
        values[name] = array if scalar is None else _SCALARS[scalar](array[()])
    return values
