"""Checkpoints, from which an interrupted training run resumes with bit-identical results.

A checkpoint is an archive of NumPy arrays: the fields of the states of a run's parts, and a digest
of its problem. It does not contain the corpus: it fits only the run that wrote it. Rules for
stopping may change.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ...atomic_write import write_files
from ...errors import Errors, SparseCRFError
from ...schema import reported_as
from ..solvers.solver import BatchSolver

_SETTING = "[initialize.components.NAME] checkpoint"
_DIGEST = "digest"
# Settings of a solver that only decide when a run ends.
_STOPPING = {"tolerance", "tolerance_gap", "window", "inner_iterations", "later_iterations"}
# Errors of files that are no archives of arrays, or damaged.
_DAMAGED: tuple[type[Exception], ...] = (OSError, EOFError, MemoryError, BadZipFile, zlib.error)
_DAMAGED += (ValueError, KeyError, AttributeError, TypeError)


def digest(*arrays: NDArray[Any]) -> str:
    """Hash the bytes of arrays."""
    digested = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digested.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digested.hexdigest()


def identity_of(solver: BatchSolver[Any], values: Mapping[str, Any]) -> str:
    """Return a digest of JSON values that identify a problem, and of the solver's settings."""
    fitted = {key: value for key, value in vars(solver).items() if key not in _STOPPING}
    settings = [type(solver).__name__, *sorted(map(str, fitted.items()))]
    text = json.dumps([settings, values], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def save(path: Path, identity: str, values: Mapping[str, Any]) -> None:
    """Write values by name to a file atomically.

    identity: see `identity_of`. RAISES: SparseCRFError if writing fails.
    """
    data = BytesIO()
    np.savez(data, **{**values, _DIGEST: identity})
    write_files(path.parent, {path.name: data.getvalue()}, _SETTING)


def load(path: Path, identity: str) -> dict[str, Any]:
    """Read the values of a checkpoint by name.

    RAISES: SparseCRFError for a damaged file, or a file of another run.
    """
    with reported_as(Errors.SC318, _DAMAGED, path=path):
        data = path.read_bytes()
        with np.load(BytesIO(data), allow_pickle=False) as archive:
            if sum(entry.file_size for entry in archive.zip.infolist()) > len(data):
                raise ValueError("its arrays are longer than the file")
            values = {name: a if a.ndim else a.item() for name, a in archive.items()}
        if values[_DIGEST] == identity:
            return values
    raise SparseCRFError(Errors.SC316.format(path=path))


def values_of(states: Sequence[Any]) -> dict[str, Any]:
    """Return the values of the states of a run's parts, with a solver's state each, by name."""
    values: dict[str, Any] = {}
    for i, state in enumerate(states):
        solver = {f"solver.{name}": value for name, value in vars(state.solver).items()}
        of_run = {name: value for name, value in vars(state).items() if name != "solver"} | solver
        values |= {f"{i}.{name}": value for name, value in of_run.items()}
    return values


def states_of(
    values: Mapping[str, Any], n: int, run_state: type[Any], solver_state: type[Any]
) -> list[Any]:
    """Return the states of the n parts of a run, see `values_of`."""
    states = []
    for i in range(n):
        solver = {name: values[f"{i}.solver.{name}"] for name in _names(solver_state)}
        of_run = {name: values[f"{i}.{name}"] for name in _names(run_state) if name != "solver"}
        states.append(run_state(solver=solver_state(**solver), **of_run))
    return states


def _names(state: type[Any]) -> list[str]:
    return [field.name for field in fields(state)]
