"""Import trained models of other programs: map their features to features of a component.

Wapiti and CRF++ store only the text that a pattern generates. If columns contain the text between
two macros, such as a slash, different values of the macros generate the same text. Each of them is
a separate feature here and gets the weights of that text.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from ..crf.model.model import CRFModel
from ..crf.model.names import ALWAYS, write_pattern_name
from ..errors import Errors, refused_option
from ..pipeline.component import SparseCRFPipe
from ..schema import reported_as
from . import external_models as models
from .external_features import names_of, templates_of
from .patterns.macros import Pattern, parse_patterns
from .patterns.pattern_featurizer import CRFPPTemplates, WapitiPatterns

_FEATURES = {models.WAPITI: WapitiPatterns, models.CRFPP: CRFPPTemplates}
_TRUTHS = ("true", "false")
# Limit of positions in texts at which macros may end: for each character of all, and more.
_TRIED_PER_CHARACTER, _MOST_TRIED = 30, 1_000_000
_MOST_COLUMNS = 1000  # that patterns read: a list has a name for each
_EXPECTED = 0.5  # share of tokens that probably had annotation when the model was trained


Left: TypeAlias = Iterator[None]
"""An item for each position that may still be tried."""


class Imported(NamedTuple):
    """Weights for a component.

    model: with arbitrary keys; names: of the features with the weights of a feature, by these keys;
    features: block of the config; n_never: number of features without names, which no pattern
    generates.
    """

    model: CRFModel
    names: dict[int, list[str]]
    features: dict[str, Any]
    n_never: int


def import_model(
    path: Path, columns: Sequence[str], known: Mapping[str, str], dtype: str
) -> Imported:
    """Read a model of Wapiti, CRF++ or CRFsuite.

    columns: attributes of the columns of the data, see `parse_columns` of `patterns.plan`. Further
    columns that patterns read are `_.column1` and so on, by their positions from 0; known: template
    names of CRFsuite's features, see `names_of`; dtype: of the weights.
    RAISES: SparseCRFError for other files, and features that templates cannot express.
    """
    trained = models.read_model(path)
    if 0 < trained.n_columns < len(columns):
        reason = f"{path} was trained on {trained.n_columns} columns"
        raise refused_option("columns", ",".join(columns), reason)
    active = np.unique(trained.weights.features).tolist()
    features: dict[str, Any] = {"start_label": False}
    model = trained.with_numbers(dtype)
    if trained.patterns:
        made = _FEATURES[trained.program]
        patterns = parse_patterns(trained.patterns, made.dialect, _MOST_COLUMNS, str(path))
        macros = [macro for pattern in patterns for macro in pattern.macros]
        n_read = 1 + max((macro.column for macro in macros), default=0)
        further = [f"_.column{i}" for i in range(len(columns), n_read)]
        if taken := {*columns}.intersection(further):
            reason = f"further columns have the names {', '.join(further)}"
            raise refused_option("columns", taken.pop(), reason)
        columns = [*columns, *further]
        texts = {i: trained.features[i] for i in active}
        left = repeat(None, _MOST_TRIED + _TRIED_PER_CHARACTER * sum(map(len, texts.values())))
        with reported_as(Errors.SC631, path=path, program=trained.program):
            # Patterns with the same texts around macros name the same features.
            distinct = {(x.key, *(macro.view for macro in x.macros)): x for x in patterns}.values()
            names = {i: names_by_patterns(text, [*distinct], left) for i, text in texts.items()}
        features["@crf_features"] = f"spacy_sparsecrf.{made.__name__}.v1"
        features |= {"text": trained.patterns, "columns": columns}
    else:
        transition = len(trained.features) - 1  # the feature of transitions alone
        states = [i for i in active if i < transition]
        shown = names_of([trained.features[i] for i in states], known)
        called = {**dict(zip(states, shown, strict=True)), transition: ALWAYS}
        names = {i: [name] for i, name in called.items()}
        features["@crf_features"] = "spacy_sparsecrf.Templates.v1"
        features["templates"] = templates_of(model, called)
    return Imported(model, names, features, sum(not named for named in names.values()))


def set_weights(
    pipe: SparseCRFPipe, model: CRFModel, names: Mapping[int, Sequence[str]], path: str
) -> None:
    """Set the labels and weights of a new component.

    model: has the labels and weights, with arbitrary keys; names: of the component's features with
    the weights of a feature, by these keys; path: source of the model, for messages.
    RAISES: SparseCRFError for labels that the target cannot write, and for features that no
        template of the component generates.
    """
    from ..crf.model.edit_weights import dump

    # Sets the labels; the dummy Doc of spaCy has no gold annotation.
    empty = Doc(pipe.vocab, words=["x", "y", "z"])
    pipe.initialize(lambda: [Example(empty, empty.copy())], labels=model.labels)
    # Trained components know the annotation that their features need; warn if all tokens lack it.
    features: Any = pipe.features
    pipe.cfg["shares"] = dict.fromkeys(features.plan.watched, _EXPECTED)
    rows = (line.split("\t", 2) for line in dump(model, {key: str(key) for key in names}))
    lines = (f"{kind}\t{name}\t{weight}" for kind, key, weight in rows for name in names[int(key)])
    pipe.patch(lines, path, replace=True)


def names_by_patterns(feature: str, patterns: Sequence[Pattern], left: Iterator[None]) -> list[str]:
    """Return the names of all features for which a pattern generates this text.

    RAISES: ValueError if all positions have been tried.
    """
    text = feature[:1].lower() + feature[1:]
    matching = (
        write_pattern_name(pattern.literals, values)
        for pattern in patterns
        if text.startswith(pattern.literals[0])
        for values in _values(text[len(pattern.literals[0]) :], pattern, 0, left)
    )
    return [*dict.fromkeys(matching)]


def _values(rest: str, pattern: Pattern, at: int, left: Left) -> Iterator[tuple[str, ...]]:
    """Yield all possible values of the macros from number `at` on, given the rest of the text."""
    if at == len(pattern.macros):
        if not rest:
            yield ()
        return
    literal, command = pattern.literals[at + 1], pattern.macros[at].view.command
    is_last, tried = at + 1 == len(pattern.macros), islice(left, len(rest) + 1)
    ends = [i for i, _ in enumerate(tried) if rest.startswith(literal, i)]
    if next(left, left) is left:
        raise ValueError("its patterns fit the texts of its features in too many ways")
    for end in ends:
        if is_last and end + len(literal) < len(rest):
            continue
        value = rest[:end]
        # A match may be empty, a column may not.
        if command == "m" or (value and (command == "x" or value in _TRUTHS)):
            for others in _values(rest[end + len(literal) :], pattern, at + 1, left):
                yield value, *others
