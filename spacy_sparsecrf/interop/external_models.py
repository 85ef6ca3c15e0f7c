"""Trained models of Wapiti, CRF++ and CRFsuite: their labels, features and weights.

A feature is a text. Models of Wapiti and CRF++ contain the patterns that generate their features;
features of CRFsuite have names that only the user can map to templates.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..crf.corpus.numbering import Floats, Longs
from ..crf.model.model import CRFModel, WeightTable
from ..errors import Errors, SparseCRFError, brief
from ..schema import reported_as
from .crfsuite_file import (
    LARGEST,
    MAGIC,
    CrfsuiteModel,
    ExternalWeights,
    check_labels,
)
from .peer_pickles import BEGINNINGS, read_model_data

WAPITI, CRFPP, CRFSUITE = "Wapiti", "CRF++", "CRFsuite"

_DAMAGE = (ArithmeticError, ValueError, LookupError, StopIteration, struct.error)
KINDS = ("maxent", "memm", "chain")  # by Wapiti's number; its first versions wrote none for a CRF


class TrainedModel(NamedTuple):
    """A model as stored in its file.

    program: that wrote it; kind: see `CRFModel`; labels: in order; patterns: lines, "" for
    CRFsuite; features: texts, where "" is the feature of transitions alone; n_columns: of its
    training data without labels, 0 if unknown.
    """

    program: str
    kind: str
    labels: list[str]
    patterns: str
    features: list[str]
    weights: ExternalWeights
    n_columns: int = 0

    def with_numbers(self, dtype: str) -> CRFModel:
        """Return the weights, with the positions of features as keys. dtype: of the weights."""
        features, previous, labels, values = self.weights
        pairs, others = np.flatnonzero(previous >= 0), np.flatnonzero(previous < 0)
        keys, values = features.astype(np.uint64), values.astype(dtype)
        unigram = WeightTable.of(keys[others], None, labels[others], values[others])
        bigram = WeightTable.of(keys[pairs], previous[pairs], labels[pairs], values[pairs])
        return CRFModel(self.labels, dtype, unigram=unigram, bigram=bigram, kind=self.kind)


def read_model(path: Path) -> TrainedModel:
    """Read a model of one of the programs; its first bytes show which.

    RAISES: SparseCRFError for other files and damaged files.
    """
    with path.open("rb") as file:
        start = file.read(16)
    for begin, program, read in (
        (b"#mdl#", WAPITI, _read_wapiti),
        (b"version:", CRFPP, _read_crfpp),
        ((MAGIC, *BEGINNINGS), CRFSUITE, _read_crfsuite),
    ):
        if start.startswith(begin):
            with reported_as(Errors.SC631, _DAMAGE, path=path, program=program):
                return _checked(read(path), path)
    raise SparseCRFError(Errors.SC630.format(path=path))


def _checked(model: TrainedModel, path: Path) -> TrainedModel:
    """Return a model whose numbers can be used as indices.

    RAISES: ValueError for invalid labels, for weights of unknown features or labels, and for those
        that are not finite in 32 bits; SparseCRFError for too many labels.
    """
    check_labels(model.labels, path.stat().st_size, path)
    weights, n, n_labels = model.weights, len(model.features), len(model.labels)
    labels = np.append(weights.labels, weights.previous)
    for what, numbers, most in (("feature", weights.features, n), ("label", labels, n_labels)):
        if (largest := numbers.max(initial=-1)) >= most:
            raise ValueError(f"a weight is of {what} {largest}, and there are {most}")
    if not (np.abs(weights.values) <= LARGEST).all():
        raise ValueError("a weight is not finite in 32 bits")
    return model


# Wapiti and CRF++: weights by number, all labels of a feature in a row


def _read_wapiti(path: Path) -> TrainedModel:
    lines = iter(path.read_bytes().split(b"\n"))

    def numbers_of(expression: str) -> tuple[int, ...]:
        """Read a line of numbers; one that may be missing is 2."""
        line = next(lines).decode("ascii")
        if (match := re.fullmatch(expression, line)) is None:
            raise ValueError(f"expected {expression}, not {brief(line)}")
        return tuple(int(group) for group in match.groups("2"))

    def texts(n: int) -> Iterator[str]:
        """Read texts; the length in bytes comes first, a comma last."""
        for size, _, text in (line.partition(b":") for line in islice(lines, n)):
            if len(text) != int(size) + 1 or text[-1:] != b",":
                raise ValueError(f"expected the end of a text after {int(size)} bytes")
            yield text[:-1].decode("utf8")

    kind, n_active = numbers_of(r"#mdl#(?:([0-2])#)?(\d+)")
    patterns = "\n".join(texts(numbers_of(r"#rdr#(\d+)/\d+(?:/\d+)?")[0]))
    labels = [*texts(numbers_of(r"#qrk#(\d+)")[0])]
    features = [*texts(numbers_of(r"#qrk#(\d+)")[0])]
    if not patterns:
        raise ValueError("it has no patterns; train it with wapiti train -p")
    pairs = [line.decode("ascii").split("=") for line in lines if line]
    if len(pairs) != n_active:
        raise ValueError(f"it has {len(pairs)} weights, not {n_active}")
    numbers = np.array([int(number) for number, _ in pairs], np.int64)
    # As C reads them: decimal, unless "0x" says otherwise.
    values = np.array([float.fromhex(x) if "x" in x.lower() else float(x) for _, x in pairs])
    weights = _by_place(features, len(labels), numbers=numbers, values=values)
    return TrainedModel(
        program=WAPITI,
        kind=KINDS[kind],
        labels=labels,
        patterns=patterns,
        features=features,
        weights=weights,
    )


def _read_crfpp(path: Path) -> TrainedModel:
    from .text_files import read_lines  # imports spaCy

    lines = read_lines(path)

    def block() -> list[str]:
        """Read lines up to an empty line."""
        return [*iter(lambda: next(lines), "")]

    header = dict(line.split(": ", 1) for line in block())
    labels, patterns = block(), block()
    numbered = [line.split(" ", 1) for line in block()]
    order = sorted((int(number), text) for number, text in numbered)
    features = [text for _, text in order]
    starts = np.array([number for number, _ in order] + [int(header["maxid"])], np.int64)
    if not np.array_equal(starts, starts_of(features, len(labels))):
        raise ValueError("the numbers of its features do not go with its labels")
    values = np.array([*map(float, lines)]) * float(header["cost-factor"])
    if len(values) != starts[-1]:
        raise ValueError(f"it has {len(values)} weights, not {starts[-1]}")
    numbers = np.flatnonzero(values)
    return TrainedModel(
        program=CRFPP,
        kind="chain",
        labels=labels,
        patterns="\n".join(patterns),
        features=features,
        weights=_by_place(features, len(labels), numbers=numbers, values=values[numbers]),
        n_columns=int(header.get("xsize", 0)),
    )


def starts_of(features: Sequence[str], n_labels: int) -> Longs:
    """Return the index of each feature's first weight, and the number of weights: [O + 1]."""
    sizes = {"u": n_labels, "b": n_labels**2, "*": n_labels + n_labels**2}
    counts = [sizes[text[:1].lower()] for text in features]
    return np.append(0, np.cumsum(counts, dtype=np.int64))


def _by_place(
    features: Sequence[str], n_labels: int, *, numbers: Longs, values: Floats
) -> ExternalWeights:
    """Find feature and labels of weights by index: labels precede pairs of labels.

    numbers, values: [n], of weights. RAISES: ValueError for a number of no feature.
    """
    starts = starts_of(features, n_labels)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < starts[-1]:
        raise ValueError("a weight is of no feature")
    feature = np.searchsorted(starts, numbers, side="right") - 1
    has_labels = np.array([text[:1].lower() != "b" for text in features], np.bool_)
    outcome = numbers - starts[feature]
    is_pair = ~has_labels[feature] | (outcome >= n_labels)
    outcome -= np.where(is_pair & has_labels[feature], n_labels, 0)
    previous = np.where(is_pair, outcome // n_labels, -1)
    return ExternalWeights(feature, previous, outcome % n_labels, values)


# CRFsuite


def _read_crfsuite(path: Path) -> TrainedModel:
    model = CrfsuiteModel(read_model_data(path.read_bytes(), path), path)
    return of_crfsuite(model, model.attributes)


def of_crfsuite(model: CrfsuiteModel, attributes: Sequence[str] = ()) -> TrainedModel:
    """Return all weights of a model of CRFsuite. RAISES: SparseCRFError for damaged data.

    attributes: its attributes, unless nobody asks for their names.
    """
    # The feature of transitions alone follows all attributes.
    n = model.n_attributes
    pairs = [(n, previous, y, weight) for previous, y, weight in model.transitions() if weight]
    tables: Any = zip(model.all_states(), ExternalWeights.of(pairs), strict=True)
    weights = ExternalWeights(*map(np.concatenate, tables))
    return TrainedModel(
        program=CRFSUITE,
        kind="chain",
        labels=model.labels,
        patterns="",
        features=[*attributes, ""],
        weights=weights,
    )
