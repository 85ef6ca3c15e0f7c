r"""Export components to other programs: name their features, and write them as columns.

Each program gets the same weights, of features that are texts:

- A component with the program's own patterns keeps them, and the columns that they read.
- For CRFsuite, the text of a feature is its name, as in `model.names`.
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

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, zip_longest
from typing import Any, cast

import numpy as np
from spacy.training import Example
from spacy.util import minibatch

from ..errors import refused_option
from ..features.naming import NameRecord, constant_features
from ..model.names import read_pattern_name
from ..pipeline.component import SparseCRFPipe
from ..targets.spans import SpanTarget
from .crfsuite_file import ExternalWeights
from .external_models import CRFSUITE, WAPITI, TrainedModel
from .sequences.trained import START

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
    _check(pipe, program)
    features: Any = pipe.features
    weights, lines, n = _weights(pipe, program), list[str](), 0
    texts = [*dict.fromkeys(text for text, _, _ in weights if text)]
    if program == CRFSUITE:
        texts.append("")
    else:
        of = features.plan.first_templates
        kinds = "u" * (len(MARKS) + len(of.bigram_columns))
        if not _is_own(pipe, program):
            kinds = "u" * len(of.unigram_columns) + kinds + "b" * len(of.bigram_columns)
        else:
            contents = map(features.dialect.content, features.learnt["patterns"].split("\n"))
            lines, n = [x[0].lower() + x[1:] for x in contents if x], len(features.columns)
            kinds *= any(text[2:].startswith(MARKS) for text in texts)
        lines += [f"{kind}:%x[0,{k}]" for k, kind in enumerate(kinds, n)]
        lines += {"b"} & {*texts} - {*lines}
        n += len(kinds)
    numbers = {text: i for i, text in enumerate(texts)}
    favourite, _ = pipe.settings.decoding.preference(pipe.model.labels) or (0, 0.0)
    # Of equal scores, the first label wins there, and the outside label here.
    order = sorted(range(len(pipe.model.labels)), key=lambda y: y != favourite)
    ids = {-1: -1, **{y: i for i, y in enumerate(order)}}
    scale = pipe.settings.decoding.temperature
    rows = [(numbers[x], ids[a], ids[y], value / scale) for (x, a, y), value in weights.items()]
    labels = [_field(pipe.model.labels[y], program) for y in order]
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


def _check(pipe: SparseCRFPipe, program: str) -> None:
    """Refuse what a program lacks. RAISES: SparseCRFError."""
    model, own, plan = pipe.model, pipe.settings.decoding, getattr(pipe.features, "plan", None)
    valid = pipe.setup.transitions_of(model.labels)
    is_plain = program == WAPITI and valid is None and not own.outside_weight
    has_pairs = plan and plan.first_templates.constant_pairs is None
    refused = {
        "no weights": not model.n_active,
        "features without names": len(pipe.named().missing(np.concatenate(model.keys))),
        "two stages": model.first,
        "clusters of labels": model.bounds,
        'model = "memm", or with it invalid transitions': model.kind == "memm" and not is_plain,
        'method = "posterior"': own.method == "posterior",
        "a setting `once`": own.once,
        "a threshold": pipe.settings.threshold or own.thresholds,
        "real-valued features": program != CRFSUITE and plan and plan.real.attributes,
        "features of label pairs and observations": program == CRFSUITE and has_pairs,
    }
    for what, holds in refused.items():
        if holds:
            raise refused_option("format", program.lower(), f"the component has {what}")


def _weights(pipe: SparseCRFPipe, program: str) -> dict[tuple[str, int, int], float]:
    """Return weights by feature, label before or -1, and label; before the temperature.

    RAISES: SparseCRFError for different features with one text.
    """
    model, decoding, weights = pipe.model, pipe.settings.decoding, dict[Any, float]()
    n, names, constants = len(model.labels), pipe.named(), constant_features(pipe.features)
    unigram, bigram = ("", "") if program == CRFSUITE else ("u:", "b:")
    for kind, table in ((unigram, model.unigram), (bigram, model.bigram)):
        blocks: dict[str, Any] = {}
        for key, entries in groupby(table.entries(), lambda entry: entry[0][0]):
            is_plain = program == CRFSUITE and table is model.bigram and key in constants
            text, own = "" if is_plain else _field(names[key], program), _is_own(pipe, program)
            start, text = unigram + (START if is_plain else f"{START}|{text}"), kind + text
            if own:
                parts = zip_longest(*read_pattern_name(names[key]), fillvalue="")
                text = "".join(literal + _field(value, program) for literal, value in parts)
            block = [(*place[1:], float(value)) for place, value in entries]
            if text in blocks and not (own and blocks[text] == block):
                what = f"the component has several features that are {text!r} there"
                raise refused_option("format", program.lower(), what)
            blocks[text] = block
            for before, label, value in block:
                weights[(start, -1, label) if before == n else (text, before, label)] = value
    invalid, valid = INVALID * decoding.temperature, pipe.setup.transitions_of(model.labels)
    for a, y in () if valid is None else np.argwhere(~valid).tolist():
        mark, label = (START, y) if a == n else (END, a)
        place = (unigram + mark, -1, label) if n in (a, y) else (bigram[:1], a, y)
        weights[place] = weights.get(place, 0.0) + invalid
    if isinstance(pipe.target, SpanTarget):
        begins = pipe.target.valid_transitions(model.labels)[n, :n]
        weights |= {(unigram + LINE, -1, y): invalid for y in np.flatnonzero(~begins).tolist()}
    favourite, bias = decoding.preference(model.labels) or (0, 0.0)
    return weights | ({(unigram + ALL, -1, favourite): bias} if bias else {})


def sequences(
    pipe: SparseCRFPipe, model: TrainedModel, examples: Iterable[Example]
) -> Iterator[str]:
    """Yield sequences: the columns of each token in a line, and an empty line.

    The last column is the gold label, for CRFsuite the first. model: of `export`; examples: of one
    vocab.
    """
    features, program, used = cast("Any", pipe.features), model.program, {*model.features}
    names = {key: _field(name, program) for key, name in pipe.named().by_hash().items()}
    reading = _reading_columns(features) if _is_own(pipe, program) else None
    for batch in minibatch(examples, 128):  # type: ignore[no-untyped-call]
        docs = [each.predicted for each in batch]
        gold = [label for each in batch for label in pipe.target.gold(each)]
        for read in features.readings(docs, pipe.settings.sequences):
            found, shown = features.observe([read]), names
            keys, pairs = found.unigram_hashes, found.bigram_hashes
            if reading is not None:
                record = NameRecord(reading)
                keys = record(docs, pipe.settings.sequences).hashes
                cells = record.names(np.unique(keys)).items()
                shown = {x: _field(read_pattern_name(name)[1][0], program) for x, name in cells}
            first, last = {*read.offsets.tolist()}, {*(read.offsets - 1).tolist()}
            for t, token in enumerate(read.division.tokens.tolist()):
                holds = t in first, t in last, t in read.division.apart, True
                row = [shown.get(key) or NOTHING for key in keys[t].tolist()]
                row += [x if own else NOTHING for x, own in zip(MARKS, holds, strict=True)]
                bigrams = [names.get(key, NOTHING) for key in pairs[t].tolist()]
                row += [f"{START}|{name}" if t in first else NOTHING for name in bigrams]
                label = gold[token] if isinstance(gold[token], str) else ""
                fields = [*(row + bigrams)[: model.n_columns], _field(label, program) or NOTHING]
                if program == CRFSUITE:
                    texts = fields[-1], *(text for text in row if text in used)
                    fields = [text.translate(_ESCAPES) for text in texts]
                    for i, key in enumerate(found.value_keys.tolist()):
                        if name := names.get(key):
                            fields.append(f"{name.translate(_ESCAPES)}:{found.values[t, i]}")
                yield "\t".join(fields) + "\n" * (1 + (t in last))


def _reading_columns(features: Any) -> Any:
    """Return patterns that read each column of others, alone."""
    patterns = (f"U{k}:%x[0,{k}]" for k in range(len(features.columns)))
    return type(features)(text="\n".join(patterns), columns=features.columns)


def _is_own(pipe: SparseCRFPipe, program: str) -> bool:
    """Return whether the features are those of the program's own patterns."""
    return getattr(getattr(pipe.features, "dialect", None), "name", "") == program


def _field(text: str, program: str) -> str:
    """Return a text as one field of a program's files."""
    space = r"[\0\t-\r]" if program == CRFSUITE else r"[\0\t-\r ]"
    return re.sub(space, lambda found: f"\\u{ord(found[0]):04x}", text)
