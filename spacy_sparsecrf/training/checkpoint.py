"""A training run on disk: what a run that was cut off continues from, bit for bit.

A checkpoint holds the solver's state, never the corpus: it only fits the run that it was made of.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..model.file import Arrays, read, write
from ..model.model import CRFModel
from ..penalty import ElasticNet
from ..schema import Field, check, check_json, told
from ..solvers.base import BatchSolver, fields_of
from ..writing import write_files

# What a file stores for each kind of value; other kinds are widened.
_STORED = {"f": "<f8", "i": "<i8", "u": "<u8", "b": "<u2"}
_DTYPES = {np.dtype(code).str for code in "?bBhHiIlLqQefd"}
_SCALARS = {"bool": bool, "int": int, "float": float}
# Begins the names of what the loop was told.
ROWS = "rows."
_SETTING = "[initialize.components.NAME] checkpoint"
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
    left_out = "requires", "average_warm_start", "steep_start"
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
    numbers, float, int and bool, by name. RAISES: SparseCRFError where it cannot be written.
    """
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
    """Read what `save` wrote, for a body that goes on from it and raises ValueError if it cannot.

    RAISES: SparseCRFError for a damaged file, another kind of file, or another run's.
    """
    with told(Errors.SC318, path=path):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ValueError(error.strerror or error) from error
        meta, arrays = read(data)
        found = meta.get("checkpoint")
        if found is None:
            raise SparseCRFError(Errors.SC315.format(path=path))
        check_json(meta, {"checkpoint": dict, "kinds": dict}, "it")
        # What a version of before did not know was as if it were empty.
        differing = sorted(key for key in identity if found.get(key, "") != identity[key])
        if differing:
            raise SparseCRFError(Errors.SC316.format(path=path, differing=", ".join(differing)))
        if list(arrays) != list(meta["kinds"]):
            raise ValueError("it does not tell of its arrays")
        yield {name: _value(name, arrays[name], kind) for name, kind in meta["kinds"].items()}


def _value(name: str, stored: NDArray[Any], kind: Any) -> Any:
    """The value that an array stores, by what is told of it: dtype, shape, and type if a scalar."""
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
    values: Mapping[str, Any], forms: Mapping[str, Field | type], sizes: Mapping[str, int]
) -> None:
    """Check values that were loaded.

    forms: by name, fields of arrays and types of scalars; whole numbers are at least 0; sizes: of
    the letters in the fields, see `schema.check`.
    RAISES: ValueError that names what is wrong.
    """
    if values.keys() != forms.keys():
        raise ValueError(f"it has {', '.join(values)}, not {', '.join(forms)}"[:500])
    fields = {}
    for name, form in forms.items():
        if isinstance(form, Field):
            if not isinstance(values[name], np.ndarray):
                raise ValueError(f"{name} is no array")
            fields[name] = form
        elif type(values[name]) is not form or (form is int and values[name] < 0):
            raise ValueError(f"{name} is {values[name]!r:.50}")
    check({name: values[name] for name in fields}, fields, sizes)


def expect_state(values: Mapping[str, Any], first: Any) -> None:
    """Check the fields of a solver's state that were loaded, by those of its first state.

    Arrays have the same dtypes and shapes, but for rows of which there were none at first. A field
    with a default may be absent: an earlier version did not know it.
    RAISES: ValueError that names what is wrong.
    """
    forms: dict[str, Field | type] = {}
    sizes: dict[str, int] = {}
    optional = {own.name for own in fields(first) if own.default is not MISSING}
    for name, value in fields_of(first).items():
        if name in optional - values.keys():
            continue
        forms[name] = type(value)
        if isinstance(value, np.ndarray):
            letters = [f"{name}.{axis}" for axis in range(value.ndim)]
            sizes.update(zip(letters, value.shape, strict=True))
            if value.ndim > 1 and len(value) == 0:
                letters[0] = "rows"
            is_finite = name in ("theta", "gradient")
            forms[name] = Field(value.dtype.str, " ".join(letters), finite=is_finite)
    expect(values, forms, sizes)


@dataclass
class Rows:
    """What spaCy's loop was told of a run, to be told again where the run was cut off.

    The loop counts steps anew and knows no scores: it gets the same losses and models once more.

    losses: after each step, or of each batch; models: serialised, those that were taken, by the
    number of steps before; done: steps of which the loop knows.
    """

    losses: list[float] = field(default_factory=list)
    models: dict[int, bytes] = field(default_factory=dict)
    done: int = 0

    @property
    def is_replayed(self) -> bool:
        """Whether the loop is behind the run."""
        return self.done < len(self.losses)

    @property
    def loss(self) -> float:
        """The loss of the last step."""
        return self.losses[self.done - 1]

    def replay(self) -> float:
        """Go on by a step that is known. RETURNS: its loss."""
        self.done += 1
        return self.loss

    def add(self, loss: float) -> float:
        """Go on by a new step. RETURNS: its loss."""
        self.losses.append(loss)
        return self.replay()

    def model(self) -> CRFModel:
        """The model of a step that is known. RAISES: SparseCRFError where it was not taken then."""
        if self.done not in self.models:
            raise SparseCRFError(Errors.SC223.format(n=self.done))
        return CRFModel().from_bytes(self.models[self.done])

    def values(self) -> dict[str, Any]:
        """Arrays by name, from which `of` makes the same."""
        models = {str(n): np.frombuffer(data, "<u8") for n, data in self.models.items()}
        return {"losses": np.array(self.losses), **prefixed("model.", models)}

    @classmethod
    def of(cls, values: Mapping[str, Any], labels: tuple[str, ...]) -> "Rows":
        """Read `values`, of a run with these labels; none are there in checkpoints of before.

        RAISES: ValueError for others.
        """
        if not values:
            return cls()
        stored = without_prefix("model.", dict(values))
        forms = {number: Field("<u8", f"M{number}") for number in stored}
        expect(values, {"losses": Field("<f8", "n"), **prefixed("model.", forms)}, {})
        found = cls(values["losses"].tolist())
        for number, array in stored.items():
            if not number.isdecimal() or int(number) > len(found.losses):
                raise ValueError(f"there is no step {number:.50}")
            data = found.models[int(number)] = array.tobytes()
            try:
                own = CRFModel().from_bytes(data).labels
            except SparseCRFError as error:
                raise ValueError(f"the model of step {number}: {error}") from error
            if own != labels:
                raise ValueError(f"the model of step {number} has other labels")
        return found
