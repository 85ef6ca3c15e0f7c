"""Import trained models of other programs: map their features to features of a component.

Wapiti and CRF++ store only the text that a pattern generates. If columns contain the text between
two macros, such as a slash, different values of the macros generate the same text. Each of them is
a separate feature here and gets the weights of that text.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..model.model import CRFModel, WeightTable
from ..model.names import ALWAYS, write_pattern_name
from . import external_models as models
from .external_features import names_of, templates_of
from .patterns.featurizer import CRFPP, WAPITI
from .patterns.macros import Pattern, parse_patterns

_FEATURES = {models.WAPITI: "WapitiPatterns", models.CRFPP: "CRFPPTemplates"}
_TRUTHS = ("true", "false")


class Imported(NamedTuple):
    """Weights for a component.

    model: with arbitrary keys; names: of its features, by these keys; features: block of the
    config; n_never: number of omitted features, which no pattern generates.
    """

    model: CRFModel
    names: dict[int, str]
    features: dict[str, Any]
    n_never: int


def import_model(
    path: Path, columns: Sequence[str], known: Mapping[str, str], dtype: str
) -> Imported:
    """Read a model of Wapiti, CRF++ or CRFsuite.

    columns: attributes of the columns of the data, see `parse_columns` of `patterns.plan`; known:
    template names of CRFsuite's features, see `names_of`; dtype: of the weights.
    RAISES: SparseCRFError for other files, patterns that read other columns, and features that
        templates cannot express.
    """
    trained = models.read_model(path)
    if 0 < trained.n_columns < len(columns):
        values = {"path": path, "n": trained.n_columns, "columns": ", ".join(columns)}
        raise SparseCRFError(Errors.SC655.format(**values))
    active = np.unique(trained.weights.features).tolist()
    features: dict[str, Any] = {"start_label": False}
    if trained.patterns:
        dialect = {models.WAPITI: WAPITI, models.CRFPP: CRFPP}[trained.program]
        patterns = parse_patterns(trained.patterns, dialect, len(columns), str(path))
        named = {i: names_by_patterns(trained.features[i], patterns) for i in active}
        features["@crf_features"] = f"spacy_sparsecrf.{_FEATURES[trained.program]}.v1"
        features |= {"text": trained.patterns, "columns": list(columns)}
    else:
        own = [i for i in active if trained.features[i]]
        texts = names_of([trained.features[i] for i in own], known)
        named = {len(trained.features) - 1: [ALWAYS]}
        named |= {i: [name] for i, name in zip(own, texts, strict=True)}
    model, names = _with_names(trained, named, dtype)
    if not trained.patterns:
        features["@crf_features"] = "spacy_sparsecrf.Templates.v1"
        features["templates"] = templates_of(model, names)
    return Imported(model, names, features, sum(not found for found in named.values()))


def _with_names(
    trained: models.TrainedModel, named: Mapping[int, Sequence[str]], dtype: str
) -> tuple[CRFModel, dict[int, str]]:
    """Return a model with a feature for each name, and the names; named: names of each feature."""
    names = [*dict.fromkeys(name for found in named.values() for name in found)]
    keys = {name: key for key, name in enumerate(names)}
    counts = np.zeros(len(trained.features), np.int64)
    for feature, found in named.items():
        counts[feature] = len(found)
    first = np.cumsum(counts) - counts
    ordered = [keys[name] for feature in sorted(named) for name in named[feature]]
    weights = trained.weights
    copies = counts[weights.features]
    row = np.repeat(np.arange(len(copies)), copies)
    within = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
    test = np.array(ordered, np.uint64)[first[weights.features[row]] + within]
    is_pair = weights.previous[row] >= 0
    unigram, bigram = (
        _table(test[chosen], weights, row[chosen], dtype) for chosen in (~is_pair, is_pair)
    )
    model = CRFModel(trained.labels, dtype, unigram, bigram, trained.kind)
    return model, dict(enumerate(names))


def _table(
    keys: NDArray[np.uint64], weights: models.ExternalWeights, rows: NDArray[np.int64], dtype: str
) -> WeightTable:
    previous, values = weights.previous[rows], weights.values[rows].astype(dtype)
    of_pairs = None if (previous < 0).all() else previous
    return WeightTable.of(keys, of_pairs, weights.labels[rows], values)


def names_by_patterns(feature: str, patterns: Sequence[Pattern]) -> list[str]:
    """Return the names of all features for which a pattern generates this text."""
    text = feature[:1].lower() + feature[1:]
    found = (
        write_pattern_name(pattern.literals, values)
        for pattern in patterns
        if text.startswith(pattern.literals[0])
        for values in _values(text[len(pattern.literals[0]) :], pattern, 0)
    )
    return [*dict.fromkeys(found)]


def _values(rest: str, pattern: Pattern, at: int) -> Iterator[tuple[str, ...]]:
    """Yield all possible values of the macros from number `at` on, given the rest of the text."""
    if at == len(pattern.macros):
        if not rest:
            yield ()
        return
    literal, command = pattern.literals[at + 1], pattern.macros[at].view.command
    if at + 1 == len(pattern.macros):
        ends = [len(rest) - len(literal)] if rest.endswith(literal) else []
    else:
        ends = [i for i in range(len(rest) + 1) if rest.startswith(literal, i)]
    for end in ends:
        value = rest[:end]
        # A match may be empty, a column may not.
        if command == "m" or (value and (command == "x" or value in _TRUTHS)):
            for others in _values(rest[end + len(literal) :], pattern, at + 1):
                yield value, *others
