"""How a component is stored: `cfg`, `model` and, if it has any, `names`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import srsly
from spacy import util
from spacy.pipeline import TrainablePipe

from ..errors import Errors, SparseCRFError
from ..names import Names
from .decoding_settings import DecodingSettings
from .feature_state import recall
from .session import Session

if TYPE_CHECKING:
    from ..model import CRFModel
    from ..targets.base import Target

FORMAT = 1  # of `cfg`; a model file has its own
NAMES = "names"


class StoredPipe(TrainablePipe):  # type: ignore[misc]
    """Serialises a component with the weights of its training run so far."""

    name: str
    cfg: dict[str, Any]
    model: "CRFModel"
    features: Any
    target: "Target"
    decoding: DecodingSettings
    _names: Names
    _session: Session

    def _refresh(self) -> None:
        raise NotImplementedError

    def _named(self) -> Names:
        """The names of tests, with those that training has made active."""
        self._refresh()
        record = self._session.record
        if record is not None:
            for table in (self.model.unigram, self.model.bigram):
                self._names.add(record.names(self._names.missing(table.keys)))
        return self._names

    def _names_to_bytes(self) -> bytes:
        return self._named().to_bytes(self.model.unigram.keys, self.model.bigram.keys)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise, with the weights of the training run so far."""
        self._refresh()
        fields = srsly.msgpack_loads(super().to_bytes(exclude=exclude))
        fields.update(util.to_dict({NAMES: self._names_to_bytes}, exclude))
        data: bytes = srsly.msgpack_dumps(fields)
        return data

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write to a directory, with the weights of the training run so far."""
        self._refresh()
        super().to_disk(path, exclude=exclude)
        util.to_disk(path, {NAMES: self._write_names}, exclude)

    def _write_names(self, path: Path) -> None:
        data = self._names_to_bytes()
        if data:
            path.write_bytes(data)
        else:
            path.unlink(missing_ok=True)

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "StoredPipe":
        """Load what `to_bytes` wrote; ends a training run.

        RAISES: SparseCRFError for a newer format or a damaged model.
        """
        super().from_bytes(bytes_data, exclude=exclude)
        self._check_loaded(exclude)
        self._names = Names()
        util.from_bytes(bytes_data, {NAMES: self._set_names}, exclude)
        return self

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "StoredPipe":
        """Load what `to_disk` wrote; ends a training run.

        RAISES: SparseCRFError for a newer format or a damaged model.
        """
        super().from_disk(path, exclude=exclude)
        self._check_loaded(exclude)
        self._names = Names()
        util.from_disk(path, {NAMES: self._read_names}, exclude)
        return self

    def _set_names(self, data: bytes) -> None:
        self._names = Names(data)

    def _read_names(self, path: Path) -> None:
        if path.is_file():
            self._names = Names(path.read_bytes())

    def _check_loaded(self, exclude: Iterable[str]) -> None:
        self._session = Session()
        labels = tuple(self.cfg["labels"])
        if self.cfg["format"] > FORMAT:
            raise SparseCRFError(
                Errors.SC210.format(name=self.name, found=self.cfg["format"], known=FORMAT)
            )
        if {"cfg", "model"}.isdisjoint(exclude) and labels != self.model.labels:
            raise SparseCRFError(
                Errors.SC211.format(name=self.name, cfg=labels, model=self.model.labels)
            )
        if labels:
            self.decoding.legal(self.target, labels)
        recall(self.features, self.cfg)

    def __reduce__(self) -> Any:
        """Pickle and copy with the weights of the training run so far, but not the run."""
        self._named()
        return super().__reduce__()
