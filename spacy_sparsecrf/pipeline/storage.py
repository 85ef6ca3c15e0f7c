"""What of a component is stored, and read again: `cfg`, `model` and, if it has any, `names`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import srsly
from spacy import util
from spacy.language import Language

from ..errors import Errors, SparseCRFError
from ..model.model import CRFModel
from ..model.names import Names
from .settings import Setup

if TYPE_CHECKING:
    from ..features.naming import NameRecord

FORMAT = 1  # of `cfg`; a model file has its own
NAMES = "names"


def new_cfg() -> dict[str, Any]:
    """What `cfg` is before training: only what is learnt is kept there."""
    return {"format": FORMAT, "labels": [], "sequences": None}


def check_loaded(
    setup: Setup, cfg: dict[str, Any], model: CRFModel, exclude: Iterable[str]
) -> None:
    """Check what a component has loaded, but for what was excluded; features get what they learnt.

    RAISES: SparseCRFError for a newer format, for a `cfg` and a model that are not of one kind, and
        for settings that do not fit the labels.
    """
    name, labels = setup.name, tuple(cfg["labels"])
    if cfg["format"] > FORMAT:
        raise SparseCRFError(Errors.SC210.format(name=name, found=cfg["format"], known=FORMAT))
    if {"cfg", "model"}.isdisjoint(exclude) and labels != model.labels:
        raise SparseCRFError(Errors.SC211.format(name=name, cfg=labels, model=model.labels))
    if labels:
        setup.legal(labels)
    features: object = setup.features
    if isinstance(features, Learning) and "features" in cfg:
        features.restore(cfg["features"])


# Names of tests


def add_names(names: Names, record: "NameRecord | None", model: CRFModel) -> None:
    """Name the tests of a model that have no name yet. record: what knows names, or None."""
    if record is not None:
        for table in (model.unigram, model.bigram):
            names.add(record.names(names.missing(table.keys)))


def with_names(data: bytes, names: Callable[[], bytes], exclude: Iterable[str]) -> bytes:
    """Add names to the bytes of a component."""
    fields = srsly.msgpack_loads(data)
    fields.update(util.to_dict({NAMES: names}, exclude))
    joined: bytes = srsly.msgpack_dumps(fields)
    return joined


def names_of_bytes(data: bytes, exclude: Iterable[str]) -> Names:
    """The names in the bytes of a component; none where it has none."""
    found = [b""]
    util.from_bytes(data, {NAMES: found.append}, exclude)
    return Names(found[-1])


def write_names(path: str | Path, names: Callable[[], bytes], exclude: Iterable[str]) -> None:
    """Write names beside a component; without any no file is left."""

    def write(file: Path) -> None:
        data = names()
        if data:
            file.write_bytes(data)
        else:
            file.unlink(missing_ok=True)

    util.to_disk(path, {NAMES: write}, exclude)


def read_names(path: str | Path, exclude: Iterable[str] = ()) -> Names:
    """The names beside a component; none where there is no such file."""
    file = Path(path) / NAMES
    stored = NAMES not in exclude and file.is_file()
    return Names(file.read_bytes() if stored else b"")


# Weights of an earlier training run, to continue from


def load_init_weights(path: str | Path | None, name: str) -> tuple[CRFModel | None, Names]:
    """Load the model that training shall continue from, and the names that lie beside it.

    path: a saved pipeline that has a component of this name, the directory of one component,
        or a component's file `model`; None for no model and no names.
    name: of the component.
    RAISES: SparseCRFError if there is no such file, or it is not a model.
    """
    if path is None:
        return None, Names()
    file = _find(Path(path), name)
    return CRFModel().from_bytes(file.read_bytes()), read_names(file.parent)


def _find(path: Path, name: str) -> Path:
    tried = [path, path / "model", path / name / "model"]
    for candidate in tried:
        if candidate.is_file():
            return candidate
    error = Errors.SC207.format(name=name, path=path, tried=", ".join(map(str, tried)))
    raise SparseCRFError(error)


# What features learn before training, such as phrases from files


@runtime_checkable
class Learning(Protocol):
    """Features that learn something before training; see `Featurizer`."""

    @property
    def learnt(self) -> dict[str, Any]:
        """What was learnt, for JSON."""

    def initialize(self, nlp: Language | None = None) -> None:
        """Learn anew."""

    def restore(self, learnt: dict[str, Any]) -> None:
        """Take over what `learnt` was."""


@contextmanager
def renewed(features: object, nlp: Language | None) -> Iterator[None]:
    """Let features learn anew; if what follows fails, they are as they were."""
    if not isinstance(features, Learning):
        yield
        return
    before = features.learnt
    features.initialize(nlp)
    try:
        yield
    except BaseException:
        features.restore(before)
        raise


def learnt_by(features: object) -> dict[str, Any]:
    """What features have learnt, for JSON."""
    return features.learnt if isinstance(features, Learning) else {}


def keep(cfg: dict[str, Any], **learnt: Mapping[str, Any]) -> None:
    """Note in `cfg` what was learnt besides labels, under its name, if anything was.

    features: see `learnt_by`; shares: which share of the training tokens had each attribute that
    features read.
    """
    for key, found in learnt.items():
        cfg.pop(key, None)
        if found:
            cfg[key] = dict(found)
