"""Weights of an earlier training run, to continue from."""

from pathlib import Path

from ..errors import Errors, SparseCRFError
from ..model import CRFModel


def load_init_weights(path: str | Path, name: str) -> CRFModel:
    """Load the model that training shall continue from.

    path: a saved pipeline that has a component of this name, the directory of one component,
        or a component's file `model`.
    name: of the component.
    RAISES: SparseCRFError if there is no such file, or it is not a model.
    """
    path = Path(path)
    tried = [path, path / "model", path / name / "model"]
    for candidate in tried:
        if candidate.is_file():
            return CRFModel().from_bytes(candidate.read_bytes())
    error = Errors.SC207.format(name=name, path=path, tried=", ".join(map(str, tried)))
    raise SparseCRFError(error)
