"""Pipelines as models of `spacy_sparsecrf.portable`: the fields of model.json."""

import base64
import hashlib
import json
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import spacy
from spacy.attrs import LIKE_NUM  # type: ignore[import-not-found]
from spacy.lang import lex_attrs
from spacy.lang.tokenizer_exceptions import URL_MATCH
from spacy.language import Language
from spacy.symbols import IDS  # type: ignore[import-not-found]
from spacy.tokenizer import Tokenizer

from .. import portable
from ..crf.corpus.blanks import UNSEEN
from ..crf.decoding.steps import Temperature
from ..crf.model.names import escape, read_name, write_value
from ..errors import Errors, SparseCRFError
from ..pipeline.component import SparseCRFPipe
from ..pipeline.features.attributes.attribute import Attribute
from ..pipeline.features.attributes.clusters import OF_WORDS, Cluster, LabelsOfWord
from ..pipeline.features.attributes.expressions import Expression
from ..pipeline.features.attributes.phrases import ATTRS
from ..pipeline.features.classes import WordClasses
from ..pipeline.features.featurizer import Featurizer
from ..pipeline.targets.entities import Entities
from ..pipeline.targets.spans import SpanGroups, SpanTarget
from ..pipeline.targets.token_attribute import TokenTarget

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
_PHRASE_ATTRIBUTES = {"LOWER": "lower", "ORTH": "orth", "FOLD": "fold"}
_SETS = ("doc.ents", "token.ent_iob", "token.ent_type", "doc.spans", "token.tag", "token.pos")
_SENTENCES = ("token.is_sent_start", "doc.sents")
# Alternatives of a pattern that end with one long class of characters, as in French.
_TAIL = re.compile(r"\^(.*?)((?:\[[^\]]{99,}\][*+]?)+\$)", re.DOTALL)


def refused(pipe: SparseCRFPipe, reason: str, remedy: str) -> SparseCRFError:
    """Return the error about what the reader lacks."""
    return SparseCRFError(Errors.SC638.format(name=pipe.name, reason=reason, remedy=remedy))


def portable_model(nlp: Language, pipe: SparseCRFPipe) -> bytes:
    """Return model.json of a component of a pipeline.

    RAISES: SparseCRFError that names a setting or template that the reader lacks.
    """
    _check(nlp, pipe)
    decoding, target = pipe.settings.decoding, pipe.target
    names = pipe.model.labels
    favourite, weight = decoding.preference(names) or (0, 0.0)
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
        "made_with": f"spaCy {spacy.__version__}, Unicode of Python {sys.version.split()[0]}",
        "labels": labels,
        "blank": labels[blank] if blank >= 0 else "",
        **_spans(target, labels),
        "valid": ["".join("01"[int(ok)] for ok in row) for row in valid],
        "threshold": pipe.settings.threshold,
        "thresholds": decoding.thresholds,
        "outside_weight": weight / decoding.temperature,
        "once": pipe.setup.once(labels).begun if decoding.once else [],
        "tokenizer": _tokenizer(nlp, pipe),
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


# The tokenizer


def _tokenizer(nlp: Language, pipe: SparseCRFPipe) -> dict[str, Any]:
    """Return patterns and special cases. RAISES: SparseCRFError for a custom tokenizer."""
    tokenizer: Any = nlp.tokenizer
    remedy = 'Train with [nlp.tokenizer] @tokenizers = "spacy.Tokenizer.v1"'
    if type(tokenizer) is not Tokenizer:
        kind = f"{type(tokenizer).__module__}.{type(tokenizer).__name__}"
        raise refused(pipe, f"[nlp.tokenizer] is {kind}", remedy)
    methods = {
        "prefix": (tokenizer.prefix_search, "search"),
        "suffix": (tokenizer.suffix_search, "search"),
        "infix": (tokenizer.infix_finditer, "finditer"),
        "token": (tokenizer.token_match, "match"),
        "url": (tokenizer.url_match, "match"),
    }
    patterns: dict[str, str | None] = {}
    for name, (method, wanted) in methods.items():
        pattern = getattr(method, "__self__", None)
        is_plain = isinstance(pattern, re.Pattern) and method.__name__ == wanted
        flags = pattern.flags & ~re.UNICODE if isinstance(pattern, re.Pattern) else 0
        if method is not None and (not is_plain or flags & ~re.IGNORECASE):
            raise refused(pipe, f"the tokenizer has its own function for {name}", remedy)
        patterns[name] = None if method is None else _short(pattern, flags)
    rules = {
        text: [str(part.get(65, part.get("ORTH", ""))) for part in parts]
        for text, parts in tokenizer.rules.items()
    }
    fields = {"patterns": patterns, "rules": rules, "matched": []}
    plain = portable.Tokenizer(fields)
    for text in rules:
        searches = (tokenizer.find_prefix, tokenizer.find_infix, tokenizer.find_suffix)
        has_affix = any(search(text) for search in searches) or " " in text
        if has_affix or not tokenizer.faster_heuristics:
            fields["matched"].append([x.text for x in plain.pieces(text, {})])
    return fields


def _short(pattern: Any, flags: int) -> str:
    """Return a pattern with flags, whose alternatives with the same end are written together."""
    text = re.sub(r"^\(\?[iu]+\)", "", pattern.pattern)
    case = "(?i)" if flags else ""
    alternatives = text[3:-1].split(")|(?:") if text[:3] == "(?:" and text[-1] == ")" else []
    matches = [_TAIL.fullmatch(alternative) for alternative in alternatives]
    if len(matches) < 2 or None in matches:
        return case + text
    tails: dict[str, list[str]] = {}
    for match in filter(None, matches):
        tails.setdefault(match[2], []).append(f"(?:{match[1]})")
    return case + "|".join(f"^(?:{'|'.join(heads)}){tail}" for tail, heads in tails.items())


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


def _features(nlp: Language, pipe: SparseCRFPipe, order: Sequence[int]) -> dict[str, Any]:
    """Return the fields of attributes, templates and weights. order: of labels."""
    model, _ = Temperature(pipe.settings.decoding.temperature).prepare(pipe.model, None)
    features: Any = pipe.features
    attributes = _Attributes(pipe)
    templates: dict[str, list[Any]] = {"near": [], "wide": [], "bigrams": []}
    position = {y: i for i, y in enumerate([*order, len(order)])}
    weights: dict[str, list[list[tuple[int, float]]]] = {kind: [] for kind in templates}
    words: set[str] = set()
    for table, is_pair in ((model.unigram, False), (model.bigram, True)):
        blocks: dict[str, dict[str, list[tuple[int, float]]]] = {}
        for key, entries in groupby(table.entries(), lambda entry: entry[0][0]):
            parts = read_name(pipe.named()[key])
            words.update(str(x) for text, x in parts if text.startswith(("orth", "lower")))
            block = blocks.setdefault("|".join(text for text, _ in parts), {})
            block["|".join(_value(part) for part in parts)] = sorted(
                (position[y] + position.get(a, 0) * len(order), float(str(weight)))
                for (_, a, y), weight in entries
            )
        for template in features.parsed:
            block = blocks.get(template.key, {})
            if not block or "ub"[is_pair] not in template.kinds:
                continue
            reads = [
                [attributes.number(x.read), x.offset, +x.absolute] for x in template.attributes
            ]
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
        **_sources(nlp, pipe, {name for _, name, *_ in attributes.fields}, words),
        **templates,
        "is_double": model.dtype == "float64",
        "counts": [*map(len, rows)],
        "weighted": [label for row in rows for label, _ in row],
        "weights": [weight for row in rows for _, weight in row],
    }


def _value(part: tuple[str, Any]) -> str:
    """Return a value as in names. part: the text of its attribute, and the value."""
    text, value = part
    return write_value(value, text.startswith(("cluster(", "word_labels[")))


def _sources(
    nlp: Language, pipe: SparseCRFPipe, names: Collection[str], words: Collection[str]
) -> dict[str, Any]:
    """Return what attributes read. names: of attributes; words: that the model knows."""
    features: Any = pipe.features
    learnt, fold = features.learnt, ATTRS[features.phrase_attr]
    sources: dict[str, Any] = {"phrase_attribute": _PHRASE_ATTRIBUTES[features.phrase_attr]}
    sources["phrases"] = {
        name: {
            "\t".join(map(fold, phrase.split("\t"))): kind
            for kind, text in reversed(lists.items())
            for phrase in text.split("\n")
        }
        for name, lists in learnt.get("phrases", {}).items()
    }
    sources["classes"] = {key: _classes(x) for key, x in learnt.get("clusters", {}).items()}
    if "like_url" in names:
        domains = sorted(vars(lex_attrs)["_tlds"])
        sources["like_url"] = {"domains": domains, "pattern": URL_MATCH.__self__.pattern}
    if "like_num" in names:
        sources["like_num"] = _like_num(nlp, pipe, words)
    return sources


def _like_num(nlp: Language, pipe: SparseCRFPipe, words: Iterable[str]) -> dict[str, Any]:
    """Return the words and endings of numbers in a language.

    RAISES: SparseCRFError if the reader answers otherwise for words that the model knows.
    """
    function: Any = nlp.vocab.lex_attr_getters[LIKE_NUM]  # type: ignore[attr-defined]
    code = getattr(function, "__code__", None)
    lists = [*vars(sys.modules[function.__module__]).values(), *(code.co_consts if code else ())]
    texts = {
        text
        for listed in lists
        if isinstance(listed, set | frozenset | list | tuple)
        for text in listed
        if isinstance(text, str) and text
    }
    plain = {"words": (), "endings": (), "signs": ""}
    fields = {
        "words": sorted(x for x in texts if function(x) and not portable.like_num(x, **plain)),
        "endings": sorted(x for x in texts if x.isalpha() and function(f"21{x}")),
        "signs": "%" if function("5%") else "",
    }
    others = [x for x in words if bool(function(x)) != bool(portable.like_num(x, **fields))]
    if others:
        reason = f"like_num of language '{nlp.lang}' has rules of its own for {others[:3]}"
        raise refused(pipe, reason, "Train without templates of like_num")
    return fields


def _classes(classes: WordClasses) -> dict[str, Any]:
    """Return word classes: hashes ascending, and numbers of classes, in base64."""
    # spaCy numbers some words, such as `det`, instead of hashing them.
    symbols = {number: portable.string_hash(text) for text, number in IDS.items()}
    code = {1: "B", 2: "H", 4: "I"}[classes.codes.dtype.itemsize]
    fields: dict[str, Any] = {"names": classes.classes, "type": code}
    n = classes.n_lower
    for name, part in (("lower", slice(n)), ("others", slice(n, None))):
        hashes = np.array([symbols.get(x, x) for x in classes.hashes[part].tolist()], "<u8")
        rows = np.argsort(hashes, kind="stable")
        codes = classes.codes[part][rows].astype(f"<u{classes.codes.dtype.itemsize}")
        arrays = hashes[rows], codes
        fields[name] = [base64.b64encode(array.tobytes()).decode() for array in arrays]
    return fields
