"""Pipelines as models of `spacy_sparsecrf.portable`: the fields of model.json."""

import hashlib
import json
import re
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import spacy
from spacy.language import Language

from .. import portable
from ..crf.corpus.blanks import UNSEEN
from ..crf.decoding.steps import Temperature
from ..crf.model.model import WeightTable
from ..crf.model.names import Names, escape, read_name, write_value
from ..pipeline.component import SparseCRFPipe
from ..pipeline.features.attributes.attribute import Attribute
from ..pipeline.features.attributes.clusters import OF_WORDS, Cluster, LabelsOfWord
from ..pipeline.features.attributes.expressions import Expression
from ..pipeline.features.featurizer import Featurizer
from ..pipeline.targets.entities import Entities
from ..pipeline.targets.spans import SpanGroups, SpanTarget
from ..pipeline.targets.token_attribute import TokenTarget
from .portable_sources import source_fields
from .portable_tokenizer import refused, tokenizer_fields

_ESCAPES = {chr(i): escape(chr(i)) for i in range(0x2100) if escape(chr(i)) != chr(i)}
_ESCAPES |= {"|": "\\|", "=": "\\="}
NAMES = {*portable.SIMPLE, *portable.CONTEXTUAL, "like_num", "like_url", "prefix", "suffix"}
NAMES |= {"ngrams", "regex", "match", "cluster", "word_labels"}
"""The attributes that the reader computes."""
# Expressions that `regex`, `re` and JavaScript read alike.
_ATOM = (
    r"(?:[^\\\[\](){}*+?|^$.]|\\[][.^$*+?(){}|\\/d-]|\[\^?(?:[^\\\[\]&~|-]|\\[]\[\\^d-]|-(?=\]))"
)
_ATOM += r"+(?:-[^\\\[\]])?\]|\(\?:|[()|^$.])"
_PORTABLE = re.compile(rf"(?:{_ATOM}(?:(?:[*+?]|\{{\d+(?:,\d*)?\}})\??(?![*+?{{]))?)*")
_SETS = ("doc.ents", "token.ent_iob", "token.ent_type", "doc.spans", "token.tag", "token.pos")
_SENTENCES = ("token.is_sent_start", "doc.sents")


def portable_model(nlp: Language, pipe: SparseCRFPipe) -> bytes:
    """Return model.json of a component of a pipeline.

    RAISES: SparseCRFError that names a setting or template that the reader lacks.
    """
    _check(nlp, pipe)
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
    fields: dict[str, Any] = {
        "lang": nlp.lang,
        "component": pipe.name,
        "made_with": f"spaCy {spacy.about.__version__}, Unicode of Python {sys.version.split()[0]}",
        "labels": labels,
        "blank": labels[blank] if blank >= 0 else "",
        **_spans(target, labels),
        "valid": ["".join("01"[int(ok)] for ok in row) for row in valid],
        "threshold": pipe.settings.threshold,
        "thresholds": decoding.thresholds,
        "outside_weight": weight / decoding.temperature,
        "once": pipe.setup.once(labels).begun if decoding.once else [],
        "tokenizer": tokenizer_fields(nlp, pipe),
        **_features(nlp, pipe, order),
    }
    lines = (f"{json.dumps(key)}: {_written(value)}" for key, value in fields.items())
    return with_head(",\n".join(lines).encode() + b"}\n")


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _spans(target: Any, labels: Sequence[str]) -> dict[str, Any]:
    """Return how labels encode spans. target: of spans, or of tokens."""
    if not isinstance(target, SpanTarget):
        return {"kinds": [["", ""]] * len(labels), "begins": "1" * len(labels), "longer": {}}
    continued = (f"I-{name}" for name in target.names_of(labels) if target.scheme.name == "IOB2")
    begins = target.valid_transitions(labels)[-1, :-1]
    return {
        "kinds": [[label[0], label.partition("-")[2]] for label in labels],
        "begins": "".join("01"[int(ok)] for ok in begins),
        "longer": {label[2:]: labels.index(label) for label in continued if label in labels},
    }


def with_head(body: bytes) -> bytes:
    """Put the line with format, version and digest before the other fields of model.json."""
    head = {"format": portable.FORMAT, "version": portable.VERSION}
    line = json.dumps(head | {"digest": hashlib.sha256(body).hexdigest()})
    return line[:-1].encode() + b",\n" + body


def _check(nlp: Language, pipe: SparseCRFPipe) -> None:
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

    def __init__(self, pipe: SparseCRFPipe) -> None:
        self._pipe = pipe
        self._numbers: dict[Attribute, int] = {}
        self.fields: list[list[Any]] = []

    def number(self, read: Attribute) -> int:
        """Return the number of an attribute. RAISES: SparseCRFError if the reader lacks it."""
        if read not in self._numbers:
            self._numbers[read] = len(self.fields)
            arguments = [x for x in read.arguments if x]
            if isinstance(read, Cluster):
                arguments = [read.key, read.bits]
            elif isinstance(read, LabelsOfWord):
                arguments = [OF_WORDS]
            elif read.name not in NAMES or not _is_portable(read):
                features: Any = self._pipe.features
                raise refused(
                    self._pipe,
                    "template {number}, {template!r}, reads {read}".format(
                        **features.where(read), read=read
                    ),
                    "Train without this template, or with another config, such as ner_classes",
                )
            self.fields.append([str(read), read.name, *arguments])
        return self._numbers[read]

    def kind(self, reads: Sequence[Sequence[int]]) -> str:
        """Return "near" for features that depend on one word at an offset alone, else "wide"."""
        is_wide = len(reads) > 1
        for number, _, is_place in reads:
            is_wide |= bool(is_place) or self.fields[number][1] in portable.CONTEXTUAL
        return "wide" if is_wide else "near"

    def always(self) -> list[list[int]]:
        """Return the read of a feature of every word: an attribute without a name, which is 1."""
        self.fields.append(["", "always"])
        return [[len(self.fields) - 1, 0, 0]]


def _is_portable(read: Attribute) -> bool:
    """Return whether `re` finds the same as the package `regex`."""
    return not isinstance(read, Expression) or bool(_PORTABLE.fullmatch(read.pattern))


Block: TypeAlias = dict[str, list[tuple[int, float]]]
"""Numbers of labels or label pairs, and weights, of features by their values."""


def _features(nlp: Language, pipe: SparseCRFPipe, order: Sequence[int]) -> dict[str, Any]:
    """Return the fields of attributes, templates and weights. order: of labels."""
    model, _ = Temperature(pipe.settings.decoding.temperature).prepare(pipe.model, None)
    features: Any = pipe.features
    attributes = _Attributes(pipe)
    templates: dict[str, list[Any]] = {"near": [], "wide": [], "bigrams": []}
    weights: dict[str, list[list[tuple[int, float]]]] = {kind: [] for kind in templates}
    words: set[str] = set()
    for table, is_pair in ((model.unigram, False), (model.bigram, True)):
        blocks = _blocks(table, pipe.named(), order, words)
        for template in features.parsed:
            block = blocks.get(template.key, {})
            if not block or "ub"[is_pair] not in template.kinds:
                continue
            placed = template.attributes
            reads = [[attributes.number(x.read), x.offset, +x.absolute] for x in placed]
            kind = "bigrams" if is_pair else attributes.kind(reads)
            if not reads and kind == "near":
                reads, block = attributes.always(), {"1": block[""]}
            templates[kind].append([reads, "\n".join(sorted(block))])
            weights[kind] += [block[values] for values in sorted(block)]
    rows = [row for of_kind in weights.values() for row in of_kind]
    offsets = [abs(o) for of in templates.values() for x, _ in of for _, o, at in x if not at]
    return {
        "attributes": attributes.fields,
        "edges": features.plan.templates.conjunctions.n_edges,
        "margin": max(offsets, default=0),
        "escapes": _ESCAPES,
        "unseen": "".join(map(chr, UNSEEN)),
        **source_fields(nlp, pipe, {name for _, name, *_ in attributes.fields}, words),
        **templates,
        "is_double": model.dtype == "float64",
        "counts": [*map(len, rows)],
        "weighted": [label for row in rows for label, _ in row],
        "weights": [weight for row in rows for _, weight in row],
    }


def _blocks(
    table: WeightTable, names: Names, order: Sequence[int], words: set[str]
) -> dict[str, Block]:
    """Return the weights of features by the key of their template. words: in and out."""
    position = {y: i for i, y in enumerate([*order, len(order)])}
    blocks: dict[str, Block] = {}
    for key, entries in groupby(table.entries(), lambda entry: entry[0][0]):
        parts = read_name(names[key])
        words.update(str(x) for text, x in parts if text.startswith(("orth", "lower")))
        block = blocks.setdefault("|".join(text for text, _ in parts), {})
        block["|".join(map(_value, parts))] = sorted(
            (position[y] + position.get(a, 0) * len(order), float(str(weight)))
            for (_, a, y), weight in entries
        )
    return blocks


def _value(part: tuple[str, Any]) -> str:
    """Return a value as in names. part: the text of its attribute, and the value."""
    text, value = part
    return write_value(value, text.startswith(("cluster(", "word_labels[")))
