"""Pipelines as models of `spacy_sparsecrf.portable`: the fields of model.json."""

import json
import re
import sys
import zlib
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import spacy
from spacy.language import Language

from .. import portable
from ..crf.corpus.blanks import UNSEEN
from ..crf.decoding.once import MOST_STATES, Once
from ..crf.decoding.steps import Temperature
from ..crf.model.model import WeightTable
from ..crf.model.names import ALWAYS, Names, Outside, read_name
from ..pipeline.component import SparseCRFPipe
from ..pipeline.features.attributes.annotation import Annotation
from ..pipeline.features.attributes.attribute import Attribute
from ..pipeline.features.attributes.expressions import Expression
from ..pipeline.features.featurizer import Featurizer
from ..pipeline.features.templates import PlacedAttribute, Template
from ..pipeline.targets.entities import Entities
from ..pipeline.targets.spans import SpanGroups, SpanTarget
from ..pipeline.targets.token_attribute import TokenTarget
from .portable_expressions import portable_expression
from .portable_sources import NAMES, ReaderSources
from .portable_tokenizer import refused, tokenizer_fields

# Expressions that `regex`, `re` and JavaScript read alike.
_ATOM = (
    r"(?:[^\\\[\](){}*+?|^$.]|\\[][.^$*+?(){}|\\/d-]|\[\^?(?:[^\\\[\]&~|-]|\\[]\[\\^d-]|-(?=\]))"
)
_ATOM += r"+(?:-[^\\\[\]])?\]|\(\?:|[()|^$.])"
_PORTABLE = re.compile(rf"(?:{_ATOM}(?:(?:[*+?]|\{{\d+(?:,\d*)?\}})\??(?![*+?{{]))?)*")
_MOST_NAMES = 31  # bits of an integer in JavaScript
_ANY_WORD = PlacedAttribute(0, Expression("match", "^"))  # whose value is empty
_CHARACTERS = {
    "unseen": portable_expression(f"[{''.join(map(chr, UNSEEN))}]"),
    "blank": portable_expression(r"^\s*\Z"),
    "break": portable_expression("\r\n|[\n-\r\x1c-\x1e\x85\u2028\u2029]"),
}
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
    is_iob = isinstance(target, SpanTarget) and target.scheme.name == "IOB2"
    longer = {label[2:]: y for y, label in enumerate(labels) if is_iob and label[:2] == "I-"}
    fields: dict[str, Any] = {
        "lang": nlp.lang,
        "component": pipe.name,
        "made_with": f"spaCy {spacy.about.__version__}, Unicode of Python {sys.version.split()[0]}",
        "labels": labels,
        "blank": labels[blank] if blank >= 0 else "",
        **_steps(target, labels, valid),
        "kinds": kinds,
        "types": {
            kind: [thresholds.get(kind, threshold), longer.get(kind)] for kind in kinds if kind
        },
        "least": [0.0 if is_spans else thresholds.get(x, threshold) for x in labels],
        "outside_weight": weight / decoding.temperature,
        **_once(pipe, labels),
        "tokenizer": tokenizer_fields(nlp, pipe),
        **_features(nlp, pipe, order, _masks(target, labels, valid)),
    }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    # In a page, the text of a script must not have the sign that begins a tag.
    return with_head(text[1:].replace("<", "\\u003c").encode())


class _Used(NamedTuple):
    """A template with weights. weights: by the values that it reads."""

    name: str
    placed: Sequence[PlacedAttribute]
    weights: dict[str, str]


def _masks(target: Any, labels: Sequence[str], valid: Any) -> list[_Used]:
    """Return templates without a name that exclude labels at the end, and behind empty lines."""
    begins = np.ones(len(labels), np.bool_)
    if isinstance(target, SpanTarget):
        begins = target.valid_transitions(labels)[-1, :-1]
    end, empty_line = PlacedAttribute(1, _ANY_WORD.read), PlacedAttribute(0, Annotation("break"))
    cases = ((end, " $1", valid[:-1, -1]), (empty_line, "2", begins))
    return [
        _Used(
            "",
            (placed,),
            {value: " ".join(f"{y} {_NEVER << 30}" for y in np.flatnonzero(~is_valid))},
        )
        for placed, value, is_valid in cases
        if not is_valid.all()
    ]


def _steps(target: Any, labels: Sequence[str], valid: Any) -> dict[str, Any]:
    """Return which steps are valid, and which begin spans. valid: [Y + 1, Y + 1]."""
    kinds = [*target.names_of(labels)] if isinstance(target, SpanTarget) else []
    return {
        "valid": np.where(valid[:, :-1], 0, _NEVER).tolist(),
        "starts": Once(labels, kinds, only_types=True).begun,
    }


def _once(pipe: SparseCRFPipe, labels: Sequence[str]) -> dict[str, Any]:
    """Return the names that steps begin, as bits, and how many of them a search tracks."""
    if not pipe.settings.decoding.once:
        return {"once": [], "most_tracked": 0}
    begun = pipe.setup.once(labels).begun
    bits = {name: 1 << k for k, name in enumerate(sorted({*begun[-1]} - {""}))}
    if len(bits) > _MOST_NAMES:
        reason = f"[decoding] once has more than {_MOST_NAMES} names"
        raise refused(pipe, reason, "List fewer names")
    return {
        "once": [[bits.get(name, 0) for name in row] for row in begun],
        "most_tracked": (MOST_STATES // len(labels)).bit_length() - 1,
    }


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


def _kind(placed: Sequence[PlacedAttribute], is_pair: bool) -> str:
    """Return "near" for features that depend on one word at an offset alone."""
    is_near = len(placed) == 1 and not placed[0].absolute and not _is_contextual(placed[0].read)
    return "bigrams" if is_pair else "near" if is_near else "wide"


def _is_contextual(read: Attribute) -> bool:
    return read.name in portable.CONTEXTUAL


def _check_reads(pipe: SparseCRFPipe, kind: str, template: Template) -> None:
    """Refuse attributes that the reader lacks. RAISES: SparseCRFError."""
    for read in (x.read for x in template.attributes):
        is_plain = not isinstance(read, Expression) or _PORTABLE.fullmatch(read.pattern)
        has_several = read.name == "ngrams" and kind != "near"
        if has_several or read.name not in NAMES or not is_plain:
            reason = f"template {template.key!r} reads {read}"
            remedy = "Train without this template, or with another config, such as ner_classes"
            raise refused(pipe, reason, remedy)


def _features(
    nlp: Language, pipe: SparseCRFPipe, order: Sequence[int], masks: Sequence[_Used]
) -> dict[str, Any]:
    """Return the fields of attributes, templates and weights. order: of labels."""
    model, _ = Temperature(pipe.settings.decoding.temperature).prepare(pipe.model, None)
    features: Any = pipe.features
    names = pipe.named()
    used: dict[str, list[_Used]] = {"near": [], "wide": [], "bigrams": []}
    for mask in masks:
        used[_kind(mask.placed, False)].append(mask)
    for table, is_pair in ((model.unigram, False), (model.bigram, True)):
        blocks = _blocks(table, names, order)
        for template in features.parsed:
            if (block := blocks.get(template.key)) and "ub"[is_pair] in template.kinds:
                placed = template.attributes or (_ANY_WORD,)
                kind = _kind(placed, is_pair)
                _check_reads(pipe, kind, template)
                weights = dict(sorted(block.items()))
                used[kind].append(_Used(template.key or ALWAYS, placed, weights))
    every = [x for templates in used.values() for template in templates for x in template.placed]
    # Attributes of words are the first ones. One at least is read, and one position outside.
    reads = sorted(dict.fromkeys(x.read for x in [_ANY_WORD, *every]), key=_is_contextual)
    margin = max([1, *(abs(x.offset) for x in every)])
    sources = ReaderSources(nlp, pipe, words=_words(names))
    distances = [min(n, features.plan.templates.conjunctions.n_edges) for n in range(1, margin + 1)]

    def fields_of(template: _Used) -> list[Any]:
        placed = [[reads.index(x.read), _place(x, margin), +x.absolute] for x in template.placed]
        return [template.name, placed, template.weights]

    return {
        "characters": _CHARACTERS,
        "outside": [[f" ^{n}" for n in reversed(distances)], [f" ${n}" for n in distances]],
        "attributes": [sources.call(read) for read in reads if not _is_contextual(read)],
        "contexts": [sources.call(read) for read in reads if _is_contextual(read)],
        "lists": sources.lists,
        "places": sorted({margin, *(margin + x.placed[0].offset for x in used["near"])}),
        **{kind: [*map(fields_of, templates)] for kind, templates in used.items()},
    }


def _place(placed: PlacedAttribute, margin: int) -> int:
    """Return where a word's template reads, counted from the margin, or from the end of a text."""
    if not placed.absolute:
        return margin + placed.offset
    return placed.offset + (margin - 1 if placed.offset > 0 else -margin)


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
            (position[y] + position.get(a, 0) * len(order), round(float(weight) / portable.UNIT))
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
