"""Checkpoints, from which an interrupted training run resumes with bit-identical results.

A checkpoint contains the solver's state, but not the corpus: it fits only the run that wrote it.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..atomic_write import append_file, write_files
from ..errors import Errors, SparseCRFError
from ..model.file import Arrays, read, write
from ..model.model import CRFModel
from ..penalty import ElasticNet
from ..schema import SchemaField, check, check_json, reported_as
from ..solvers.base import BatchSolver, fields_of

# The stored dtype for each kind of value.
_STORED = {"f": "<f8", "i": "<i8", "u": "<u8", "b": "<u2"}
_DTYPES = {np.dtype(code).str for code in "?bBhHiIlLqQefd"}
_SCALARS = {"bool": bool, "int": int, "float": float}
# Prefix of the values of the evaluation log.
ROWS = "rows."
_SETTING = "[initialize.components.NAME] checkpoint"
# Prefix of the names of models in a record, and bytes of the length before a record.
_MODEL, _LENGTH = "model.", 8


def digest(*arrays: NDArray[Any]) -> str:
    """Hash the bytes of arrays."""
    found = hashlib.blake2b(digest_size=16)
    for array in arrays:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        found.update(data.data)
    return found.hexdigest()


def identity_of(solver: BatchSolver, penalty: ElasticNet) -> dict[str, Any]:
    """Return the settings of solver and penalty that a resumed run must share, as JSON."""
    # `requires` follows from other settings.
    settings = {key: value for key, value in vars(solver).items() if key != "requires"}
    return {
        "solver": [type(solver).__name__, *map(str, settings.items())],
        "l1": repr(penalty.l1),
        "l2": repr(penalty.l2),
    }


def prefixed(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with a prefix added to their names."""
    return {prefix + name: value for name, value in values.items()}


def without_prefix(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values whose names have a prefix, with the prefix removed."""
    return {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}


def save(
    path: Path,
    identity: dict[str, Any],
    values: dict[str, Any],
    rows: "EvaluationLog | None" = None,
) -> None:
    """Write arrays and scalars to a file atomically.

    identity: JSON values that identify the run, without floats, which JSON may round; values:
    arrays of numbers, float, int and bool, by name; rows: the evaluation log, whose new part is
    written first, to a file next to this one. RAISES: SparseCRFError if writing fails.
    """
    if rows is not None:
        values = values | prefixed(ROWS, rows.write(path))
    arrays: Arrays = {}
    kinds: dict[str, Any] = {}
    for name, value in values.items():
        array = np.asarray(value)
        arrays[name] = array.astype(_STORED[array.dtype.kind]).ravel()
        scalar = None if isinstance(value, np.ndarray) else type(value).__name__
        kinds[name] = [array.dtype.str, list(array.shape), scalar]
    data = write({"checkpoint": identity, "kinds": kinds}, arrays)
    write_files(path.parent, {path.name: data}, _SETTING)


@contextmanager
def loaded(path: Path, identity: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Load a checkpoint in a `with` statement; its body raises ValueError if it cannot resume.

    RAISES: SparseCRFError for a damaged file, or a file of another type or another run.
    """
    with reported_as(Errors.SC318, path=path):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ValueError(error.strerror or error) from error
        meta, arrays = read(data)
        found = meta.get("checkpoint")
        if found is None:
            raise SparseCRFError(Errors.SC315.format(path=path))
        check_json(meta, {"checkpoint": dict, "kinds": dict}, "it")
        # An absent value, as from an earlier version, counts as empty.
        differing = sorted(key for key in identity if found.get(key, "") != identity[key])
        if differing:
            raise SparseCRFError(Errors.SC316.format(path=path, differing=", ".join(differing)))
        if list(arrays) != list(meta["kinds"]):
            raise ValueError("it does not describe its arrays")
        yield {name: _value(name, arrays[name], kind) for name, kind in meta["kinds"].items()}


def _value(name: str, stored: NDArray[Any], kind: Any) -> Any:
    """Return the value of a stored array; kind: its dtype, shape, and type if it is a scalar."""
    if type(kind) is not list or len(kind) != 3:
        raise ValueError(f"{name} is {kind!r:.50}, not a dtype, a shape and a type")
    dtype, shape, scalar = kind
    check_json(dtype, str, name)
    check_json(shape, [int], name)
    if dtype not in _DTYPES or stored.dtype.str != _STORED[np.dtype(dtype).kind]:
        raise ValueError(f"{name} has the dtype {dtype:.50}, stored as {stored.dtype.str}")
    if min(shape, default=0) < 0 or math.prod(shape) != len(stored):
        raise ValueError(f"{name} has {len(stored)} numbers, not those of {shape!r:.50}")
    with np.errstate(all="ignore"):
        array = stored.astype(dtype).reshape(shape)
    if not np.array_equal(array.reshape(-1), stored, equal_nan=True):
        raise ValueError(f"{name} has numbers that are none of the dtype {dtype}")
    if scalar is None:
        return array
    check_json(scalar, str, name)
    if scalar not in _SCALARS or shape or np.dtype(dtype).kind != scalar[0]:
        raise ValueError(f"{name} is no {scalar!r:.50}")
    return _SCALARS[scalar](array[()])


def expect(
    values: Mapping[str, Any], forms: Mapping[str, SchemaField | type], sizes: Mapping[str, int]
) -> None:
    """Check loaded values.

    forms: by name, fields of arrays and types of scalars; integers must be >= 0; sizes: values of
    the letters in the fields, see `schema.check`.
    RAISES: ValueError that names the problem.
    """
    if values.keys() != forms.keys():
        raise ValueError(f"it has {', '.join(values)}, not {', '.join(forms)}"[:500])
    fields = {}
    for name, form in forms.items():
        if isinstance(form, SchemaField):
            if not isinstance(values[name], np.ndarray):
                raise ValueError(f"{name} is no array")
            fields[name] = form
        elif type(values[name]) is not form or (form is int and values[name] < 0):
            raise ValueError(f"{name} is {values[name]!r:.50}")
    check({name: values[name] for name in fields}, fields, sizes)


def expect_state(values: Mapping[str, Any], first: Any) -> dict[str, Any]:
    """Check the loaded fields of a solver's state against its initial state.

    Arrays must have the same dtypes and shapes, but matrices without rows at first may have rows. A
    field with a default may be absent, and float32 may be float64, as in files of earlier versions.
    RETURNS: fields in the dtypes of the initial state. RAISES: ValueError that names the problem.
    """
    found = dict(values)
    forms: dict[str, SchemaField | type] = {}
    sizes: dict[str, int] = {}
    optional = {own.name for own in fields(first) if own.default is not MISSING}
    for name, value in fields_of(first).items():
        if name in optional - values.keys():
            continue
        forms[name] = type(value)
        if isinstance(value, np.ndarray):
            wide = value.dtype == np.float32 and getattr(found.get(name), "dtype", 0) == np.float64
            if wide:
                with np.errstate(all="ignore"):
                    found[name] = found[name].astype(np.float32)
            letters = [f"{name}.{axis}" for axis in range(value.ndim)]
            sizes.update(zip(letters, value.shape, strict=True))
            if value.ndim > 1 and len(value) == 0:
                letters[0] = "rows"
            is_finite = name in ("theta", "gradient")
            forms[name] = SchemaField(value.dtype.str, " ".join(letters), finite=is_finite)
    expect(found, forms, sizes)
    return found


@dataclass
class EvaluationLog:
    """Losses and models that spaCy's loop got from a run, replayed when the run resumes.

    The loop restarts at step 0 without scores, so it gets the same losses and models again. The log
    is an append-only file next to the checkpoint. Each record has its length in eight bytes, then
    its data. The checkpoint stores the number of valid bytes.

    losses: of each step or batch; models: serialised models that are not yet written, by number of
    steps; done: number of steps that the loop has seen; places: offset of the record with the
    model, by number of steps; size: number of valid bytes in the file; hashed: hash of these bytes;
    n_written: number of written losses; path: of the file.
    """

    losses: list[float] = field(default_factory=list)
    models: dict[int, bytes] = field(default_factory=dict)
    done: int = 0
    places: dict[int, int] = field(default_factory=dict)
    size: int = 0
    hashed: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))
    n_written: int = 0
    path: Path = Path()

    @property
    def is_replayed(self) -> bool:
        """True while the loop is behind the resumed run."""
        return self.done < len(self.losses)

    @property
    def loss(self) -> float:
        """The loss of the last step."""
        return self.losses[self.done - 1]

    def replay(self) -> float:
        """Replay a step. RETURNS: its loss."""
        self.done += 1
        return self.loss

    def add(self, loss: float) -> float:
        """Add a new step. RETURNS: its loss."""
        self.losses.append(loss)
        return self.replay()

    def model(self) -> CRFModel:
        """Return the model of a replayed step.

        RAISES: SparseCRFError if no model was kept at this step, or if the file cannot be read.
        """
        data = self.models.get(self.done)
        if data is None:
            if self.done not in self.places:
                raise SparseCRFError(Errors.SC223.format(n=self.done))
            with reported_as(Errors.SC318, path=self.path), _opened(self.path) as file:
                file.seek(self.places[self.done])
                arrays = read(_record(file, self.size - file.tell()))[1]
                data = _of_step(arrays, self.done)
        return CRFModel().from_bytes(data)

    def keep(self, model: CRFModel) -> bool:
        """Keep the model of the last step, to be written. RETURNS: whether it is new.

        It is not new before the first step, nor when the loop has just caught up with a stream: a
        file with two models of one step is rejected.
        """
        if not self.done or self.done in self.places:
            return False
        self.models[self.done] = model.to_bytes()
        return True

    def write(self, checkpoint: Path) -> dict[str, Any]:
        """Append new losses and models to the log of a checkpoint. RETURNS: `values` for `of`.

        RAISES: SparseCRFError if writing fails.
        """
        self.path = _rows_of(checkpoint)
        arrays = {f"{_MODEL}{n}": np.frombuffer(data, "<u8") for n, data in self.models.items()}
        arrays["losses"] = np.array(self.losses[self.n_written :])
        data = write({"step": self.n_written}, arrays)
        data = len(data).to_bytes(_LENGTH, "little") + data
        append_file(self.path, self.size, data, _SETTING)
        self._count(data, len(self.losses), [*self.models])
        self.models = {}
        return {"size": self.size, "digest": np.frombuffer(self.hashed.digest(), "<u8")}

    def _count(self, record: bytes, n_losses: int, steps: Iterable[int]) -> None:
        """Count a record that is in the file as written."""
        self.places.update(dict.fromkeys(steps, self.size))
        self.size += len(record)
        self.hashed.update(record)
        self.n_written = n_losses

    @classmethod
    def of(
        cls, values: Mapping[str, Any], labels: tuple[str, ...], checkpoint: Path
    ) -> "EvaluationLog":
        """Read the file of a run with these labels; values: the result of `write`.

        Checkpoints of earlier versions have no log.
        RAISES: ValueError for a file that does not match.
        """
        found = cls(path=_rows_of(checkpoint))
        if not values:
            return found
        expect(values, {"size": int, "digest": SchemaField("<u8", "two")}, {"two": 2})
        with _opened(found.path) as file:
            while found.size < values["size"]:
                data = _record(file, values["size"] - found.size)
                found.take(data, labels)
        if found.hashed.digest() != values["digest"].tobytes():
            raise ValueError(f"{found.path.name} beside it is of another run")
        return found

    def take(self, data: bytes, labels: tuple[str, ...]) -> None:
        """Add a record of the file. RAISES: ValueError that names the problem."""
        meta, arrays = read(data)
        check_json(meta, {"step": int}, "a row")
        names = [*without_prefix(_MODEL, arrays)]
        forms = {_MODEL + name: SchemaField("<u8", f"M{name}") for name in names}
        check(arrays, {**forms, "losses": SchemaField("<f8", "n")}, {})
        self.losses += arrays["losses"].tolist()
        if meta["step"] != self.n_written:
            raise ValueError(f"a row is of step {meta['step']}")
        for name in names:
            if not name.isdecimal() or int(name) > len(self.losses) or int(name) in self.places:
                raise ValueError(f"there is no step {name:.50}")
            try:
                own = CRFModel().from_bytes(_of_step(arrays, int(name))).labels
            except SparseCRFError as error:
                raise ValueError(f"the model of step {name}: {error}") from error
            if own != labels:
                raise ValueError(f"the model of step {name} has other labels")
        record = len(data).to_bytes(_LENGTH, "little") + data
        self._count(record, len(self.losses), map(int, names))


def _rows_of(checkpoint: Path) -> Path:
    """Return the path of the evaluation log of a checkpoint."""
    return checkpoint.with_name(checkpoint.name + ".rows")


def _of_step(arrays: Arrays, n: int) -> bytes:
    """Return the model of a step in a record. RAISES: ValueError if it is missing."""
    if f"{_MODEL}{n}" not in arrays:
        raise ValueError(f"there is no model of step {n}")
    return arrays[f"{_MODEL}{n}"].tobytes()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open the file of an evaluation log. RAISES: ValueError if it cannot be read."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise ValueError(f"{path.name} beside it: {error.strerror or error}") from error


def _record(file: BinaryIO, most: int) -> bytes:
    """Read the next record, of at most so many bytes. RAISES: ValueError if it is cut off."""
    size = int.from_bytes(file.read(_LENGTH), "little")
    data = file.read(size) if size <= most - _LENGTH else b""
    if not size or len(data) < size:
        raise ValueError(f"{Path(file.name).name} beside it is cut off")
    return data
