"""Conversion between estimators and pipeline components with the same weights.

A component reads features from Docs with templates; an estimator gets them from the user. They can
be converted if each feature is a template feature, see `interop.external_features`.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from ...errors import Errors, SparseCRFError
from ...features.naming import NameRecord
from ...model.model import CRFModel
from ...model.names import ALWAYS, read_hash
from ..external_features import names_of, templates_of
from ..importing import set_weights
from . import encoding

_OF_SPANS = ("sparse_crf_ner", "sparse_crf_spans")
_NUMBERS = ("vector[", "value(")  # begin names of real-valued features


def make_pipe(
    nlp: Any,
    model: CRFModel,
    attributes: Sequence[str],
    known: Mapping[str, str],
    factory: str,
    config: Mapping[str, Any],
) -> Any:
    """Add a component with an estimator's weights to a pipeline.

    model, attributes: of the estimator; known: template names of features; factory: of the
    component; config: its block, without templates; the default scheme of spans is that of the
    labels. RETURNS: the component.
    RAISES: SparseCRFError if templates cannot express a feature, or two features have one name.
    """
    own = names_of(attributes, known)
    names = {encoding.ALWAYS: ALWAYS, **dict(enumerate(own, start=encoding.ALWAYS + 1))}
    features = {"templates": templates_of(model, names), **config.get("features", {})}
    config = {"model": model.kind, **config, "features": features}
    target = config.get("target", {})
    if factory in _OF_SPANS and not {"@crf_targets", "scheme"} & target.keys():
        is_biluo = any(label.startswith(("L-", "U-")) for label in model.labels)
        config["target"] = {**target, "scheme": "BILUO" if is_biluo else "IOB2"}
    pipe = nlp.add_pipe(factory, config=config)
    set_weights(pipe, model, {key: [name] for key, name in names.items()}, "the estimator")
    return pipe


def check_plain(name: str, settings: Any, model: CRFModel) -> None:
    """Refuse settings of predictions that estimators lack. RAISES: SparseCRFError."""
    decoding = settings.decoding
    for key, is_set in (
        (".learning] stack", model.first is not None),
        ("] threshold", settings.threshold > 0.0),
        (".decoding] thresholds", bool(decoding.thresholds)),
        (".decoding] outside_weight", decoding.outside_weight != 0.0),
        (".decoding] method", decoding.method != "viterbi"),
        (".decoding] temperature", decoding.temperature != 1.0),
    ):
        if is_set:
            raise SparseCRFError(Errors.SC818.format(name=name, key=key))


def take_weights(pipe: Any) -> tuple[dict[int, str], int, tuple[str, ...]]:
    """Return the names of a component's features, which become attributes.

    RETURNS: the names by the keys of its model; the key of transitions; the names of features
        that have weights with pairs of labels.
    RAISES: SparseCRFError if features have no names, or real-valued features have weights.
    """
    lines = [*pipe.dump()]  # also updates the model
    model: CRFModel = pipe.model
    entries = chain(model.unigram.entries(), model.bigram.entries())
    pairs = zip(lines, entries, strict=True)
    names = {entry[0][0]: line.split("\t")[1] for line, entry in pairs}
    for name in names.values():
        if read_hash(name) is not None or name.startswith(_NUMBERS):
            raise SparseCRFError(Errors.SC812.format(name=pipe.name))
    always = next((key for key, name in names.items() if name == ALWAYS), 0)
    bigrams = tuple(names[key] for key in model.bigram.keys.tolist() if key != always)
    return names, always, bigrams


def read_docs(pipe: Any, docs: Iterable[Any]) -> list[list[list[str]]]:
    """Return the sequences that a component reads from Docs, with the names of token features.

    RAISES: SparseCRFError if features have no names or are real-valued.
    """
    record = NameRecord.of(pipe.setup.features)
    found = record(list(docs), pipe.setup.settings.sequences) if record is not None else None
    if record is None or found is None or len(found.value_keys):
        raise SparseCRFError(Errors.SC812.format(name=pipe.name))
    names = record.names(np.setdiff1d(found.hashes, [0]))
    unigrams, bigrams = found.unigram_hashes.tolist(), found.bigram_hashes.tolist()
    tokens = []
    for own, pairs in zip(unigrams, bigrams, strict=True):
        # A feature conjoined with labels and with pairs is listed once. Transitions are implicit.
        more = [names[key] for key in pairs if key and key not in own]
        tokens.append([names[key] for key in own if key] + [n for n in more if n != ALWAYS])
    return [tokens[a:b] for a, b in pairwise(found.offsets.tolist())]
