r"""Export components to other programs: name their features, and write them as columns.

Each program gets the same weights, of features that are texts:

- A component with the program's own patterns keeps them, and the columns that they read.
- For CRFsuite, the text of a feature is its name, as in `crf.model.names`.
- Otherwise patterns `u:%x[0,0]`, `u:%x[0,1]`, ..., `b:%x[0,k]`, ... read the features from columns,
  each of which has the name of a feature, or `_`.

A blank in a text becomes \u0020, since it separates columns, and so do tabs and line ends; for
CRFsuite, only the latter. MARKS are further features: what the programs lack becomes their weights.

    __BOS__         first token: labels that cannot begin; for CRFsuite weights of the start label
    __BOS__|NAME    first token: weights of the start label with feature NAME
    __EOS__         last token: labels that cannot end
    __LINE__        token behind an empty line: labels that go on
    __ALL__         all tokens: weight of the outside label
"""

from collections.abc import Iterable, Iterator
from itertools import groupby, zip_longest
from typing import Any, cast

import numpy as np
from spacy.training import Example
from spacy.util import minibatch

from ..crf.model.names import read_pattern_name
from ..errors import brief, refused_option
from ..pipeline.component import SparseCRFPipe
from ..pipeline.features.naming import NameRecord, constant_features
from ..pipeline.targets.spans import SpanTarget
from .crfsuite_file import ExternalWeights
from .exporters import EXPORTERS, Exporter
from .external_models import TrainedModel
from .sequences.opened_model import START

INVALID = -1e4
"""Weight of labels and label pairs that are not valid."""
NOTHING = "_"
"""Column without a feature, and missing label."""
END, LINE, ALL = "__EOS__", "__LINE__", "__ALL__"
MARKS = START, END, LINE, ALL
_ESCAPES = str.maketrans({":": "\\:", "\\": "\\\\"})  # in CRFsuite's files


def export(pipe: SparseCRFPipe, program: str) -> TrainedModel:
    """Convert the model of a component.

    RAISES: SparseCRFError if the program lacks what the component needs.
    """
    exporter = EXPORTERS[program]
    _check(pipe, exporter)
    features: Any = pipe.features
    weights, named = _weights(pipe, exporter)
    lines, n = list[str](), 0
    texts = [*dict.fromkeys(text for text, _, _ in weights if text)]
    if not exporter.has_patterns:
        texts.append("")
    else:
        of = features.plan.first_templates
        kinds = "u" * (len(MARKS) + len(of.bigram_columns))
        if not _has_patterns_of(pipe, program):
            kinds = "u" * len(of.unigram_columns) + kinds + "b" * len(of.bigram_columns)
        else:
            contents = map(features.dialect.content, features.learnt["patterns"].split("\n"))
            lines, n = [x[0].lower() + x[1:] for x in contents if x], len(features.columns)
            # Features of an imported model may begin with a mark; its columns have them already.
            kinds *= any(text[2:].startswith(MARKS) for text in {*texts} - named)
        lines += [f"{kind}:%x[0,{k}]" for k, kind in enumerate(kinds, n)]
        lines += {"b"} & {*texts} - {*lines}
        n += len(kinds)
    numbers = {text: i for i, text in enumerate(texts)}
    favourite, _ = pipe.setup.preference(pipe.model.labels) or (0, 0.0)
    # Of equal scores, the first label wins there, and the outside label here.
    order = sorted(range(len(pipe.model.labels)), key=lambda y: y != favourite)
    ids = {-1: -1, **{y: i for i, y in enumerate(order)}}
    scale = pipe.settings.decoding.temperature
    rows = [(numbers[x], ids[a], ids[y], value / scale) for (x, a, y), value in weights.items()]
    labels = [exporter.field(pipe.model.labels[y]) for y in order]
    table, patterns = ExternalWeights.of(rows), "\n".join(lines)
    return TrainedModel(
        program=program,
        kind=pipe.model.kind,
        labels=labels,
        patterns=patterns,
        features=texts,
        weights=table,
        n_columns=n,
    )


def _check(pipe: SparseCRFPipe, exporter: Exporter) -> None:
    """Refuse what a program lacks. RAISES: SparseCRFError."""
    model, decoding = pipe.model, pipe.settings.decoding
    plan = getattr(pipe.features, "plan", None)
    valid = pipe.setup.transitions_of(model.labels)
    is_plain = exporter.has_memm and valid is None and not decoding.outside_weight
    has_pairs = plan and plan.first_templates.constant_pairs is None
    refused = {
        "no weights": not model.n_active,
        "features without names": len(pipe.named().missing(np.concatenate(model.keys))),
        "two stages": model.first,
        "clusters of labels": model.bounds,
        'model = "memm", or with it invalid transitions': model.kind == "memm" and not is_plain,
        'method = "posterior"': decoding.method == "posterior",
        "a setting `once`": decoding.once,
        "a threshold": pipe.settings.threshold or decoding.thresholds,
        "real-valued features": exporter.has_patterns and plan and plan.real.attributes,
        "features of label pairs and observations": not exporter.has_patterns and has_pairs,
    }
    for what, holds in refused.items():
        if holds:
            reason = f"the component has {what}"
            raise refused_option("format", exporter.program.lower(), reason)


def _weights(
    pipe: SparseCRFPipe, exporter: Exporter
) -> tuple[dict[tuple[str, int, int], float], set[str]]:
    """Return weights by feature, label before or -1, and label; before the temperature.

    RETURNS: the weights, and the texts of the features that the model has.
    RAISES: SparseCRFError for different features with one text.
    """
    model, decoding, weights = pipe.model, pipe.settings.decoding, dict[Any, float]()
    n, names, constants = len(model.labels), pipe.named(), constant_features(pipe.features)
    unigram, bigram = exporter.prefixes
    has_own_patterns, named = _has_patterns_of(pipe, exporter.program), set[str]()
    for kind, table in ((unigram, model.unigram), (bigram, model.bigram)):
        blocks: dict[str, Any] = {}
        for key, entries in groupby(table.entries(), lambda entry: entry[0][0]):
            is_transition = table is model.bigram and key in constants
            is_plain = is_transition and not exporter.has_patterns
            text = "" if is_plain else exporter.field(names[key])
            start, text = unigram + (START if is_plain else f"{START}|{text}"), kind + text
            if has_own_patterns:
                literals, values = read_pattern_name(names[key])
                parts = zip_longest(literals, values, fillvalue="")
                text = "".join(literal + exporter.field(value) for literal, value in parts)
            block = [(previous, label, float(value)) for (_, previous, label), value in entries]
            if text in blocks and not (has_own_patterns and blocks[text] == block):
                what = f"the component has several features that are {brief(text)} there"
                raise refused_option("format", exporter.program.lower(), what)
            blocks[text] = block
            named.add(text)
            for previous, label, value in block:
                is_start = previous == n
                weights[(start, -1, label) if is_start else (text, previous, label)] = value
    invalid, valid = INVALID * decoding.temperature, pipe.setup.transitions_of(model.labels)
    for a, y in () if valid is None else np.argwhere(~valid).tolist():
        mark, label = (START, y) if a == n else (END, a)
        pair = (unigram + mark, -1, label) if n in (a, y) else (bigram[:1], a, y)
        weights[pair] = weights.get(pair, 0.0) + invalid
    if isinstance(pipe.target, SpanTarget):
        begins = pipe.target.valid_transitions(model.labels)[n, :n]
        weights |= {(unigram + LINE, -1, y): invalid for y in np.flatnonzero(~begins).tolist()}
    favourite, bias = pipe.setup.preference(model.labels) or (0, 0.0)
    return weights | ({(unigram + ALL, -1, favourite): bias} if bias else {}), named


def sequences(
    pipe: SparseCRFPipe, model: TrainedModel, examples: Iterable[Example]
) -> Iterator[str]:
    """Yield sequences: the columns of each token in a line, and an empty line.

    The last column is the gold label, for CRFsuite the first. model: of `export`; examples: of one
    vocab.
    """
    features, used = cast("Any", pipe.features), {*model.features}
    exporter = EXPORTERS[model.program]
    names = {key: exporter.field(name) for key, name in pipe.named().by_hash().items()}
    reading = _reading_columns(features) if _has_patterns_of(pipe, model.program) else None
    for batch in minibatch(examples, 128):  # type: ignore[no-untyped-call]
        docs = [example.predicted for example in batch]
        gold = [label for example in batch for label in pipe.target.gold(example)]
        for read in features.readings(docs, pipe.settings.sequences):
            observed, shown = features.observe([read]), names
            keys, pairs = observed.unigram_hashes, observed.bigram_hashes
            if reading is not None:
                record = NameRecord(reading)
                keys = record(docs, pipe.settings.sequences).hashes
                cells = record.names(np.unique(keys)).items()
                shown = {x: exporter.field(read_pattern_name(name)[1][0]) for x, name in cells}
            starts, ends = {*read.offsets.tolist()}, {*(read.offsets - 1).tolist()}
            for t, token in enumerate(read.division.tokens.tolist()):
                has_mark = t in starts, t in ends, t in read.division.apart, True
                row = [shown.get(key) or NOTHING for key in keys[t].tolist()]
                row += [x if has else NOTHING for x, has in zip(MARKS, has_mark, strict=True)]
                bigrams = [names.get(key, NOTHING) for key in pairs[t].tolist()]
                row += [f"{START}|{name}" if t in starts else NOTHING for name in bigrams]
                label = gold[token] if isinstance(gold[token], str) else ""
                fields = [*(row + bigrams)[: model.n_columns], exporter.field(label) or NOTHING]
                if not exporter.has_patterns:
                    texts = fields[-1], *(text for text in row if text in used)
                    fields = [text.translate(_ESCAPES) for text in texts]
                    for i, key in enumerate(observed.value_keys.tolist()):
                        if name := names.get(key):
                            fields.append(f"{name.translate(_ESCAPES)}:{observed.values[t, i]}")
                yield "\t".join(fields) + "\n" * (1 + (t in ends))


def _reading_columns(features: Any) -> Any:
    """Return patterns that read each column of others, alone."""
    patterns = (f"U{k}:%x[0,{k}]" for k in range(len(features.columns)))
    return type(features)(text="\n".join(patterns), columns=features.columns)


def _has_patterns_of(pipe: SparseCRFPipe, program: str) -> bool:
    """Return whether the features are those of the program's own patterns."""
    return getattr(getattr(pipe.features, "dialect", None), "name", "") == program
