"""Weights of an earlier training run, to continue from."""

from pathlib import Path

from ..errors import Errors, SparseCRFError
from ..model import CRFModel
from ..names import Names
from .storage import NAMES


def load_init_weights(path: str | Path, name: str) -> CRFModel:
    """Load the model that training shall continue from.

    path: a saved pipeline that has a component of this name, the directory of one component,
        or a component's file `model`.
    name: of the component.
    RAISES: SparseCRFError if there is no such file, or it is not a model.
    """
    return CRFModel().from_bytes(_find(Path(path), name).read_bytes())


def load_init_names(path: str | Path, name: str) -> Names:
    """Load the names of tests that lie beside that model; none where there is no such file."""
    beside = _find(Path(path), name).with_name(NAMES)
    return Names(beside.read_bytes() if beside.is_file() else b"")


def _find(path: Path, name: str) -> Path:
    tried = [path, path / "model", path / name / "model"]
    for candidate in tried:
        if candidate.is_file():
            return candidate
    error = Errors.SC207.format(name=name, path=path, tried=", ".join(map(str, tried)))
    raise SparseCRFError(error)
