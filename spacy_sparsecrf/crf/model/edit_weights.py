r"""Weights as text, one per line, and changes to a model by such lines.

    kind <tab> test <tab> label before <tab> label <tab> weight

kind is `u` for a feature conjoined with the label, `b` with the pair of labels. test is the name of
the feature (see `Names`), or its hash as in 0x0123456789abcdef. The label before is `#` if
kind is `u`, and `*` at the beginning of a sequence. The label `*0` is the first cluster of labels.
In labels, a tab is written \t, line ends \n and \r, a backslash \\ and a first asterisk \*.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import Errors, SparseCRFError, brief
from .model import CRFModel, WeightTable
from .names import LEAST_LIMIT, Names, escape, read_feature, read_hash

HashNames: TypeAlias = Callable[[Sequence[str]], NDArray[np.uint64]]
# A change of one weight: kind, hash or name of the feature, label before or -1, label, weight.
Change: TypeAlias = tuple[str, int | str, int, int, np.floating]
Weights: TypeAlias = dict[tuple[int, int, int], np.floating]  # hash, label before or -1, label

_NO_LABEL = "#"
_STAR = "*"
_WEIGHT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def dump(model: CRFModel, names: Names | Mapping[int, str]) -> Iterator[str]:
    """Yield one line for each weight, without line end; weights of a feature are consecutive."""
    clusters = [f"{_STAR}{c}" for c in range(model.n_outcomes - len(model.labels))]
    labels = [*map(_write_label, model.labels)]
    for kind, table, here in (("u", model.unigram, labels + clusters), ("b", model.bigram, labels)):
        before = [*labels, _STAR]
        for (key, previous, label), weight in table.entries():
            previous_text = _NO_LABEL if previous < 0 else before[previous]
            # numpy writes the shortest text that is parsed as the same weight.
            fields = kind, names[key], previous_text, here[label], str(weight)
            yield "\t".join(fields)


def _write_label(label: str) -> str:
    text = escape(label)
    return f"\\{text}" if text.startswith(_STAR) else text


class Patched(NamedTuple):
    """A changed model. names: of the features that the lines name, by hash; n_changes: number of
    lines.
    """

    model: CRFModel
    names: dict[int, str]
    n_changes: int


class _LineReader:
    """Reads the lines of a file. path: for messages; templates: see `patch`."""

    def __init__(
        self, model: CRFModel, path: str, templates: Mapping[str, frozenset[str]] | None
    ) -> None:
        labels = {_write_label(label): i for i, label in enumerate(model.labels)}
        n = len(model.labels)
        self._previous = {**labels, _STAR: n}
        clusters = {f"{_STAR}{i - n}": i for i in range(n, model.n_outcomes)}
        self._labels = {"u": labels | clusters, "b": labels}
        self._path = path
        self._number = 0
        self._templates = templates
        self._dtype = np.dtype(model.dtype).type
        self._checked: set[tuple[str, str]] = set()

    def read(self, lines: Iterable[str]) -> Iterator[Change]:
        """Read lines; skip empty lines and lines that start with #."""
        for self._number, line in enumerate(lines, start=1):
            text = line.rstrip("\r\n")
            if text and not text.startswith("#"):
                yield self._read(text.split("\t"))

    def _read(self, fields: list[str]) -> Change:
        if len(fields) != 5:
            self._fail(f"it has {len(fields)} columns, not 5")
        kind, feature, previous, label, weight = fields
        if kind not in self._labels:
            self._fail(f"kind {brief(kind)} is neither u nor b")
        before = -1
        if kind == "b":
            before = self._find(self._previous, previous)
        elif previous != _NO_LABEL:
            self._fail(
                f"the label before is {brief(previous)}, but of kind u there is none: write #"
            )
        after = self._find(self._labels[kind], label)
        return kind, self._feature(kind, feature), before, after, self._weight(weight)

    def _find(self, known: Mapping[str, int], text: str) -> int:
        if text not in known:
            self._fail(f"the model has no label {brief(text)}, but {', '.join(known)}")
        return known[text]

    def _feature(self, kind: str, feature: str) -> int | str:
        key = read_hash(feature)
        if key is not None or (kind, feature) in self._checked:
            return feature if key is None else key
        if len(feature) > LEAST_LIMIT:
            self._fail(f"{brief(feature)} is longer than {LEAST_LIMIT} characters")
        try:
            named = read_feature(feature)
            feature.encode("utf8")  # fails for lone surrogates
        except ValueError as error:
            self._fail(f"{brief(feature)} is neither a feature nor a hash ({error})")
        if 0 in named.values:
            self._fail(f"{brief(feature)} never occurs, because 0 is no value")
        if self._templates is not None and named.key not in self._templates[kind]:
            self._fail(f"no template of type {kind} is {brief(named.text)}, for {brief(feature)}")
        self._checked.add((kind, feature))
        return feature

    def _weight(self, text: str) -> np.floating:
        if not _WEIGHT.fullmatch(text):
            self._fail(f"weight {brief(text)} is not a finite number")
        with np.errstate(over="ignore", under="ignore"):
            weight: np.floating = self._dtype(text)
        if not math.isfinite(weight):
            self._fail(f"weight {brief(text)} is too large to be stored")
        return weight

    def _fail(self, reason: str) -> NoReturn:
        values = {"path": self._path, "line": self._number, "reason": reason}
        raise SparseCRFError(Errors.SC603.format(**values))


def patch(
    model: CRFModel,
    lines: Iterable[str],
    path: str,
    hash_names: HashNames,
    templates: Mapping[str, frozenset[str]] | None = None,
    *,
    replace: bool = False,
) -> Patched:
    """Return a copy of a model with changed weights. Of lines on one weight, the last one counts.

    model: is not changed; lines: as `dump` writes them, weight 0 removes a weight; path: of their
    file, for messages; hash_names: hashes features by their names; templates: keys of the
    component's templates or patterns of kind u and b (see `NamedFeature`), None to permit all;
    replace: whether to remove weights without a line.
    RAISES: SparseCRFError with the file and line.
    """
    changes = [*_LineReader(model, path, templates).read(lines)]
    named = sorted({feature for _, feature, *_ in changes if isinstance(feature, str)})
    keys: dict[int | str, int] = dict(zip(named, hash_names(named).tolist(), strict=True))
    tables = {"u": model.unigram, "b": model.bigram}
    weights = {kind: {} if replace else dict(table.entries()) for kind, table in tables.items()}
    for kind, feature, previous, label, weight in changes:
        weights[kind][int(keys.get(feature, feature)), previous, label] = weight
    unigram, bigram = (_table(weights[kind], model.dtype) for kind in tables)
    others = model.kind, model.bounds, model.first
    patched = CRFModel(model.labels, model.dtype, unigram, bigram, *others)
    return Patched(patched, {key: str(name) for name, key in keys.items()}, len(changes))


def _table(weights: Weights, dtype: str) -> WeightTable:
    """Pack weights in the same order as training; weights of 0 are left out."""
    named = sorted(weights)
    features = np.array([key for key, _, _ in named], dtype=np.uint64)
    labels = np.array([label for _, _, label in named], dtype=np.uint16)
    values = np.array([weights[name] for name in named], dtype=dtype)
    previous = np.array([before for _, before, _ in named], dtype=np.int64)
    return WeightTable.of(features, previous if (previous >= 0).all() else None, labels, values)
