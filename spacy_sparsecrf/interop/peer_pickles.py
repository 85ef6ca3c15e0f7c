"""Pickles of `sklearn_crfsuite.CRF`, read without its program: no name of a file is imported."""

import bz2
import lzma
import pickle
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np

from ..errors import Errors, SparseCRFError, brief
from ..schema import reported_as
from .crfsuite_file import MAGIC

PROGRAM = "sklearn-crfsuite"
# First bytes of what gzip, joblib's zlib, bz2 and LZMA write, and of pickles.
_UNPACKERS: dict[tuple[bytes, ...], Callable[[], Any]] = {
    (b"\x1f\x8b", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda"): lambda: zlib.decompressobj(47),
    (b"BZh",): bz2.BZ2Decompressor,
    (b"\xfd7zXZ", b"]\0"): lzma.LZMADecompressor,
}
BEGINNINGS = (b"\x80", b"ccopy_reg\n", *sum(_UNPACKERS, ()))
_MOST_TIMES, _LEAST_LIMIT = 100, 1 << 24  # of a decompressed file: times its size, or bytes


def read_pickle(data: bytes, path: object) -> dict[str, Any]:
    """Return the attributes of a pickled `sklearn_crfsuite.CRF`.

    data: may be compressed; path: for messages. The attribute `modelfile` becomes the bytes of the
    model, or None if there are none. Names other than those of such files are not imported, but
    refused.
    RAISES: SparseCRFError for other and damaged data.
    """
    with reported_as(Errors.SC631, (Exception,), path=path, program=PROGRAM):
        for beginnings, unpacker in _UNPACKERS.items():
            if data.startswith(beginnings):
                data = unpacker().decompress(data, max(_MOST_TIMES * len(data), _LEAST_LIMIT))
        # Strings of Python 2 are bytes.
        file = _Unpickler(BytesIO(data), fix_imports=False, encoding="latin1")
        if not isinstance(estimator := file.load(), _Estimator):
            raise ValueError(f"it has a {type(estimator).__name__}, not a CRF")
        attributes, file_state = estimator.state, estimator.state["modelfile"].state
        model = file_state.get("__FILE_RESOURCE_DATA__")
        attributes["model_filename"] = file_state["name"]
        attributes["modelfile"] = model.encode("latin1") if isinstance(model, str) else model
        read: dict[str, Any] = attributes
        return read


def read_model_data(data: bytes, path: object) -> bytes:
    """Return the model of CRFsuite in data, which may be a pickle. RAISES: SparseCRFError."""
    if data.startswith(MAGIC):
        return data
    model: bytes | None = read_pickle(data, path)["modelfile"]
    if not model:
        reason = "the estimator is not fitted, or names another file"
        raise SparseCRFError(Errors.SC631.format(path=path, program=PROGRAM, reason=reason))
    return model


class _Stored:
    """An object of a file. kind: of numbers; state: its attributes, which are not set."""

    state: Any = None

    def __init__(self, kind: str = "", *_: object) -> None:
        self.kind = kind

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Estimator(_Stored):
    pass


def _number(dtype: _Stored, data: bytes) -> Any:
    """Return a number of NumPy, as searches set parameters, as one of Python."""
    return np.frombuffer(data, dtype.kind)[0].item()


_NAMES: dict[str, Callable[..., Any]] = {
    "sklearn_crfsuite.estimator.CRF": _Estimator,
    "sklearn_crfsuite._fileresource.FileResource": _Stored,
    "pycrfsuite._logparser.TrainLogParser": _Stored,
    "copy_reg._reconstructor": lambda of, *_: of(),
    "__builtin__.object": _Stored,
    "_codecs.encode": lambda text, _: text.encode("latin1"),
    "numpy.dtype": _Stored,
    "numpy.core.multiarray.scalar": _number,
    "numpy._core.multiarray.scalar": _number,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name. RAISES: UnpicklingError for other names."""
        full = f"{module}.{name}"
        if full not in _NAMES:
            raise pickle.UnpicklingError(f"it has the name {brief(full)}, which is not allowed")
        return _NAMES[full]
