"""The weights of an estimator in the interfaces and file format of CRFsuite's tools."""

import os
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...atomic_write import write_files
from ...errors import Errors, SparseCRFError
from ...model.model import CRFModel, WeightTable
from .encoding import ALWAYS

if TYPE_CHECKING:
    from .estimator import Estimator


class WeightSummary(NamedTuple):
    """The weights, as `pycrfsuite.Tagger.info` returns them.

    transitions: by (label before, label); state_features: by (feature, label); header: counts;
    labels, attributes: their numbers as text.
    """

    transitions: dict[tuple[str | None, str], float]
    state_features: dict[tuple[str, str], float]
    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]


class CRFsuiteTagger:
    """The model of an estimator with the methods of `pycrfsuite.Tagger`."""

    def __init__(self, estimator: "Estimator") -> None:
        self._estimator = estimator
        self.set(())

    def set(self, xseq: Iterable[Any]) -> None:
        """Set the sequence for the other methods."""
        self._sequence = [*xseq]
        self._marginals: list[dict[str, float]] = []

    def tag(self, xseq: Iterable[Any] | None = None) -> list[str]:
        """Return the most probable labels of a sequence; default: the sequence that was set."""
        if xseq is not None:
            self.set(xseq)
        return self._estimator.predict_single(self._sequence)

    def labels(self) -> list[str]:
        """Return the labels."""
        return [*self._estimator.classes_]

    def marginal(self, y: str, pos: int) -> float:
        """Compute p(y_pos = y | x) for the sequence that was set."""
        if not self._marginals:
            self._marginals = self._estimator.predict_marginals_single(self._sequence)
        return self._marginals[pos][y]

    def probability(self, yseq: Sequence[str]) -> float:
        """Compute p(y | x) for labels of the sequence that was set."""
        return float(np.exp(self._estimator.predict_log_probability([self._sequence], [yseq])[0]))

    def info(self) -> WeightSummary:
        """Return the non-zero weights."""
        own = self._estimator
        labels, attributes = own.classes_, own.attributes_
        states, transitions = own.state_features_, own.transition_features_
        header = {
            "num_features": str(len(states) + len(transitions)),
            "num_labels": str(len(labels)),
            "num_attrs": str(len(attributes)),
        }
        numbers = ({text: str(i) for i, text in enumerate(texts)} for texts in (labels, attributes))
        return WeightSummary(transitions, states, header, *numbers)

    def dump(self, filename: str | Path) -> None:
        """Write the weights to a file in the format of CRFsuite's dump."""
        write_weights(self._estimator, Path(filename))


class ModelFile:
    """The file of an estimator's weights, with the interface of sklearn-crfsuite's `modelfile`.

    name: its path, None if there is no file yet; auto: whether it is a temporary file, which is
    removed with this object unless keep_tempfiles is true.
    """

    def __init__(self, filename: str | None, keep_tempfiles: bool) -> None:
        self.name, self.auto = filename, filename is None
        self.keep_tempfiles = keep_tempfiles

    def refresh(self) -> None:
        """Create a new, empty temporary file, unless the estimator has a `model_filename`."""
        self.cleanup()
        if self.auto:
            descriptor, name = tempfile.mkstemp(".crfsuite", "model")
            os.close(descriptor)
            self.name = name
            if not self.keep_tempfiles:
                self._remove = weakref.finalize(self, Path(name).unlink, missing_ok=True)

    def cleanup(self) -> None:
        """Remove a temporary file, unless keep_tempfiles is true."""
        if self.auto and self.name is not None and not self.keep_tempfiles:
            self._remove()
            self.name = None


def write_weights(estimator: "Estimator", path: Path) -> None:
    """Write the weights of an estimator to a file in the format of CRFsuite's dump.

    RAISES: SparseCRFError for names that such a file cannot have, and if it cannot be written.
    """
    info = CRFsuiteTagger(estimator).info()
    for name in (*info.labels, *info.attributes):
        arrow = name in info.labels and " --> " in f" {name} "
        if not name or arrow or "\n" in name or "\r" in name:
            raise SparseCRFError(Errors.SC815.format(name=name, path=path))
    blocks = {
        "FILEHEADER": [f"  {key}: {value}" for key, value in info.header.items()],
        "LABELS": [f"  {number:>5}: {label}" for label, number in info.labels.items()],
        "ATTRIBUTES": [f"  {number:>5}: {text}" for text, number in info.attributes.items()],
        "TRANSITIONS": [
            f"  (1) {before} --> {label}: {_decimal(weight)}"
            for (before, label), weight in info.transitions.items()
        ],
        "STATE_FEATURES": [
            f"  (0) {text} --> {label}: {_decimal(weight)}"
            for (text, label), weight in info.state_features.items()
        ],
    }
    lines = "".join(
        f"{name} = {{\n{''.join(line + chr(10) for line in rows)}}}\n\n"
        for name, rows in blocks.items()
    )
    write_files(path.parent, {path.name: lines.encode()}, "model_filename")


def _decimal(weight: float) -> str:
    """Return the shortest text of a 32-bit weight without an exponent."""
    return np.format_float_positional(np.float32(weight), trim="0")


def read_weights(path: Path) -> tuple[CRFModel, list[str]]:
    """Read the weights of a CRFsuite model file or dump.

    RETURNS: a model, and its features in the order of its keys (see `Estimator`).
    RAISES: SparseCRFError for other files.
    """
    from ..external_models import CRFSUITE, read_model  # imports spaCy

    found = read_model(path)
    if found.program != CRFSUITE:
        raise SparseCRFError(Errors.SC816.format(path=path, program=found.program))
    weights, n = found.weights, len(found.features) - 1  # the last feature is of transitions
    keys = (weights.features + ALWAYS + 1).astype(np.uint64)
    keys[weights.features == n] = ALWAYS
    values, pairs = weights.values.astype(np.float32), np.flatnonzero(weights.previous >= 0)
    others = np.flatnonzero(weights.previous < 0)
    unigram = WeightTable.of(keys[others], None, weights.labels[others], values[others])
    bigram = WeightTable.of(
        keys[pairs], weights.previous[pairs], weights.labels[pairs], values[pairs]
    )
    return CRFModel(found.labels, "float32", unigram, bigram), found.features[:n]
