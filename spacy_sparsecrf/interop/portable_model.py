"""Pipelines as models of `spacy_sparsecrf.portable`: the fields of model.json."""

import json
import re
import sys
import zlib
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import spacy
from spacy.language import Language

from .. import portable
from ..crf.corpus.blanks import UNSEEN
from ..crf.decoding.once import Once
from ..crf.decoding.steps import Temperature
from ..crf.model.model import WeightTable
from ..crf.model.names import ALWAYS, Names, Outside, read_name
from ..pipeline.component import SparseCRFPipe
from ..pipeline.features.attributes.attribute import Attribute
from ..pipeline.features.attributes.expressions import Expression
from ..pipeline.features.featurizer import Featurizer
from ..pipeline.targets.entities import Entities
from ..pipeline.targets.spans import SpanGroups, SpanTarget
from ..pipeline.targets.token_attribute import TokenTarget
from .portable_sources import EXPRESSIONS, ReaderSources
from .portable_tokenizer import refused, tokenizer_fields

# Expressions that `regex`, `re` and JavaScript read alike.
_ATOM = (
    r"(?:[^\\\[\](){}*+?|^$.]|\\[][.^$*+?(){}|\\/d-]|\[\^?(?:[^\\\[\]&~|-]|\\[]\[\\^d-]|-(?=\]))"
)
_ATOM += r"+(?:-[^\\\[\]])?\]|\(\?:|[()|^$.])"
_PORTABLE = re.compile(rf"(?:{_ATOM}(?:(?:[*+?]|\{{\d+(?:,\d*)?\}})\??(?![*+?{{]))?)*")
NAMES = {*portable.ATTRIBUTES, *portable.CONTEXTUAL, *EXPRESSIONS}
"""Attributes that the reader has."""
_NEVER = -1_000_000_000_000_000  # score of invalid transitions
_SETS = ("doc.ents", "token.ent_iob", "token.ent_type", "doc.spans", "token.tag", "token.pos")
_SENTENCES = ("token.is_sent_start", "doc.sents")


def portable_model(nlp: Language, pipe: SparseCRFPipe) -> bytes:
    """Return model.json of a component of a pipeline.

    RAISES: SparseCRFError that names a setting or template that the reader lacks.
    """
    _check(pipe)
    _check_pipes(nlp, pipe)
    decoding, target = pipe.settings.decoding, pipe.target
    names = pipe.model.labels
    favourite, weight = pipe.setup.preference(names) or (0, 0.0)
    # Of equal scores, the first label wins.
    order = sorted(range(len(names)), key=lambda y: y != favourite)
    valid = pipe.setup.transitions_of(names)
    rows = [*order, len(names)]
    valid = np.ones((len(rows), len(rows)), np.bool_) if valid is None else valid[rows][:, rows]
    labels = [names[y] for y in order]
    blank = target.blank(labels)
    thresholds, threshold = decoding.thresholds, pipe.settings.threshold
    is_spans = isinstance(target, SpanTarget)
    kinds = [label.partition("-")[2] if is_spans else "" for label in labels]
    fields: dict[str, Any] = {
        "lang": nlp.lang,
        "component": pipe.name,
        "made_with": f"spaCy {spacy.about.__version__}, Unicode of Python {sys.version.split()[0]}",
        "labels": labels,
        "blank": labels[blank] if blank >= 0 else "",
        **_masks(target, labels, valid),
        "kinds": kinds,
        "thresholds": {kind: thresholds.get(kind, threshold) for kind in kinds if kind},
        "least": [0.0 if is_spans else thresholds.get(x, threshold) for x in labels],
        "outside_weight": weight / decoding.temperature,
        "once": pipe.setup.once(labels).begun if decoding.once else [],
        "tokenizer": tokenizer_fields(nlp, pipe),
        **_features(nlp, pipe, order),
    }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    # In a page, the text of a script must not have the sign that begins a tag.
    return with_head(text[1:].replace("<", "\\u003c").encode())


def _masks(target: Any, labels: Sequence[str], valid: Any) -> dict[str, Any]:
    """Return which steps are valid, and which begin spans. valid: [Y + 1, Y + 1]."""
    begins = np.ones(len(labels), np.bool_)
    kinds: list[str] = []
    if isinstance(target, SpanTarget):
        begins = target.valid_transitions(labels)[-1, :-1]
        kinds = [*target.names_of(labels)]
    has_longer = kinds and target.scheme.name == "IOB2"
    inside = {label[2:]: y for y, label in enumerate(labels) if label[:2] == "I-"}
    return {
        "valid": _scores(valid[:, :-1]),
        "ends": _scores(valid[:-1, -1]),
        "begins": _scores(begins),
        "starts": Once(labels, kinds, only_types=True).begun,
        "longer": inside if has_longer else {},
    }


def _scores(is_valid: Any) -> Any:
    return np.where(is_valid, 0, _NEVER).tolist()


def with_head(body: bytes) -> bytes:
    """Put the line with format, version and digest before the other fields of model.json."""
    return portable.HEAD % zlib.adler32(body) + b"\n" + body


def _check(pipe: SparseCRFPipe) -> None:
    """Refuse settings. RAISES: SparseCRFError."""
    model, decoding, features = pipe.model, pipe.settings.decoding, pipe.features
    block = f"[components.{pipe.name}"
    is_template = isinstance(features, Featurizer)
    refusals: dict[str, tuple[Any, str]] = {
        "it has no weights": (not model.n_active, "Train it first"),
        f'{block}] model = "{model.kind}"': (model.kind != "chain", 'Train with model = "chain"'),
        f"{block}.learning.stack] folds > 0": (
            model.first,
            "Train in one stage, with `config ner` or `config ner_classes`",
        ),
        f'{block}.decoding] method = "posterior"': (
            decoding.method == "posterior",
            'Set method = "viterbi", which needs no training',
        ),
        f"{block}.features] is no list of templates": (
            not is_template,
            'Train with @crf_features = "spacy_sparsecrf.Templates.v1"',
        ),
        f"{block}.learning] store_feature_names = false": (
            is_template and len(pipe.named().missing(np.concatenate(model.keys))),
            "Train with store_feature_names = true",
        ),
        f"{block}.target] is a custom target": (
            not isinstance(pipe.target, Entities | SpanGroups | TokenTarget),
            "Train with Entities.v1, Spans.v1 or TokenAttribute.v1",
        ),
    }
    for reason, (holds, remedy) in refusals.items():
        if holds:
            raise refused(pipe, reason, remedy)


def _check_pipes(nlp: Language, pipe: SparseCRFPipe) -> None:
    """Refuse pipes that may change what the component writes or reads. RAISES: SparseCRFError."""
    watched = {*_SETS, *(_SENTENCES if pipe.settings.sequences == "sents" else ())}
    for name, other in nlp.pipeline:
        assigns = nlp.get_pipe_meta(name).assigns
        if not isinstance(other, SparseCRFPipe) and (not assigns or watched & {*assigns}):
            reason = f"pipe '{name}' sets {', '.join(assigns) or 'annotation'}, which may change it"
            remedy = f"Remove it by nlp.remove_pipe({name!r}), save the pipeline and export that"
            raise refused(pipe, reason, remedy)


# Attributes, templates and weights


class _Attributes:
    """The attributes that templates read, numbered in the order in which they are asked for."""

    def __init__(self, sources: ReaderSources) -> None:
        self._sources = sources
        self._numbers: dict[Attribute, int] = {}
        self.fields: list[list[Any]] = []

    def number(self, read: Attribute, template: str, kind: str) -> int:
        """Return the number of an attribute. RAISES: SparseCRFError if the reader lacks it."""
        has_several = read.name == "ngrams" and kind != "near"
        if has_several or read.name not in NAMES or not _is_plain(read):
            reason = f"template {template!r} reads {read}"
            remedy = "Train without this template, or with another config, such as ner_classes"
            raise refused(self._sources.pipe, reason, remedy)
        if read not in self._numbers:
            self._numbers[read] = len(self.fields)
            self.fields.append(self._sources.call(read))
        return self._numbers[read]


def _kind(placed: Sequence[Any]) -> str:
    """Return "near" for features that depend on one word at an offset alone, else "wide"."""
    is_near = len(placed) == 1 and not placed[0].absolute
    return "near" if is_near and placed[0].read.name not in portable.CONTEXTUAL else "wide"


def _is_plain(read: Attribute) -> bool:
    """Return whether `re` finds the same as the package `regex`."""
    return not isinstance(read, Expression) or bool(_PORTABLE.fullmatch(read.pattern))


def _features(nlp: Language, pipe: SparseCRFPipe, order: Sequence[int]) -> dict[str, Any]:
    """Return the fields of attributes, templates and weights. order: of labels."""
    model, _ = Temperature(pipe.settings.decoding.temperature).prepare(pipe.model, None)
    features: Any = pipe.features
    names = pipe.named()
    sources = ReaderSources(nlp, pipe, words=_words(names))
    attributes = _Attributes(sources)
    templates: dict[str, list[Any]] = {"near": [], "wide": [], "bigrams": []}
    for table, is_pair in ((model.unigram, False), (model.bigram, True)):
        blocks = _blocks(table, names, order)
        for template in features.parsed:
            if (block := blocks.get(template.key)) and "ub"[is_pair] in template.kinds:
                placed = template.attributes
                kind = "bigrams" if is_pair else _kind(placed)
                reads = [
                    [attributes.number(x.read, template.key, kind), x.offset, +x.absolute]
                    for x in placed
                ]
                templates[kind].append([template.key or ALWAYS, reads, dict(sorted(block.items()))])
    offsets = [abs(o) for of in templates.values() for _, x, _ in of for _, o, _ in x]
    return {
        "attributes": attributes.fields,
        "edges": features.plan.templates.conjunctions.n_edges,
        "margin": max(offsets, default=0),
        "unseen": "".join(map(chr, UNSEEN)),
        "lists": sources.lists,
        **templates,
        "type": "d" if model.dtype == "float64" else "f",
    }


def _words(names: Names) -> set[str]:
    """Return the words in names of features."""
    parts = (part for name in names.by_hash().values() for part in read_name(name))
    return {str(x) for text, x in parts if text.startswith(("orth", "lower"))}


def _blocks(table: WeightTable, names: Names, order: Sequence[int]) -> dict[str, dict[str, str]]:
    """Return the weights of features by the key of their template and their values."""
    position = {y: i for i, y in enumerate([*order, len(order)])}
    blocks: dict[str, dict[str, str]] = {}
    for key, entries in groupby(table.entries(), lambda entry: entry[0][0]):
        parts = read_name(names[key])
        values = [_value(x) for _, x in parts]
        weights = sorted(
            (position[y] + position.get(a, 0) * len(order), str(weight))
            for (_, a, y), weight in entries
        )
        block = blocks.setdefault("|".join(text for text, _ in parts), {})
        block["\t".join(values)] = " ".join(f"{y} {weight}" for y, weight in weights)
    return blocks


def _value(value: Any) -> str:
    """Return a value as the reader compares it. No word has a space in it."""
    if isinstance(value, Outside):
        return f" {'^' if value.distance < 0 else '$'}{abs(value.distance)}"
    return str(value)
