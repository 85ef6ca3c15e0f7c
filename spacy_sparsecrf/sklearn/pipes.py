"""Estimators and pipeline components that have the same weights.

A component reads features from Docs by templates, an estimator is given them. Both are the same
model where a feature is a test of a template:

    {"lower[-1]": "the"}               lower[-1]=the
    {"is_title[0]": True}              is_title[0]=1
    ["lower[-1]=the|lower[0]=cat"]     itself
    {"word.lower()": "the"}            lower[0]=the, if told that "word.lower()" is lower[0]
    {"BOS": True}                      lower[-1]=^1, if told that "BOS" is lower[-1]=^1
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import Errors, SparseCRFError
from ..features.attributes import WORD
from ..features.naming import NameRecord
from ..features.templates import Template, parse_template
from ..model import patching
from ..model.model import CRFModel, WeightTable
from ..model.names import ALWAYS, read_hash, read_name, write_name
from ..pipeline.filling import fill
from . import encoding

_SHOWN = 5  # features in a message
_NUMBERS = ("vector[", "value(")  # begin names of real-valued features
_SEPARATOR = re.compile("[:=]")


def make_pipe(
    nlp: Any,
    model: CRFModel,
    attributes: Sequence[str],
    tests: Mapping[str, str],
    factory: str,
    config: Mapping[str, Any],
) -> Any:
    """Add a component with an estimator's weights to a pipeline.

    model, attributes: of the estimator; tests: see `name_of`; factory: of the component; config: of
    its block, without templates. RETURNS: the component.
    RAISES: SparseCRFError for features that are no tests of templates, or the same one.
    """
    found = {text: name_of(text, tests) for text in attributes}
    others = [text for text, name in found.items() if name is None]
    if others:
        shown = ", ".join(map(repr, others[:_SHOWN]))
        raise SparseCRFError(Errors.SC810.format(n=len(others), shown=shown))
    first: dict[str | None, str] = {}
    for text, name in found.items():
        if first.setdefault(name, text) != text:
            raise SparseCRFError(Errors.SC811.format(first=first[name], second=text, name=name))
    own = (name for name in found.values() if name is not None)
    names = {encoding.ALWAYS: ALWAYS, **dict(enumerate(own, start=encoding.ALWAYS + 1))}
    tables = {"u": model.unigram, "b": model.bigram}
    templates = [text for kind, table in tables.items() for text in _templates(kind, table, names)]
    features = {"templates": templates, **config.get("features", {})}
    pipe = nlp.add_pipe(factory, config={**config, "features": features})
    fill(pipe, model.labels, patching.dump(model, names), "the estimator")
    return pipe


def _templates(kind: str, table: WeightTable, names: Mapping[int, str]) -> list[str]:
    """The templates whose tests have weights."""
    keys = ("|".join(test for test, _ in read_name(names[key])) for key in table.keys.tolist())
    return [f"{kind}:{key}" for key in dict.fromkeys(keys)]


def name_of(text: str, tests: Mapping[str, str]) -> str | None:
    """The name of the test that an attribute is, or None.

    tests: by key of a dict, or whole attribute, what a template calls it: a test such as lower[0],
    which reads the value, or a name such as always or lower[-1]=^1.
    """
    name = _name_of(text, None, tests)
    ends = (match.start() for match in _SEPARATOR.finditer(text))
    splits = ((text[:end], text[end + 1 :]) for end in ends)
    found = (_name_of(key, value, tests) for key, value in splits)
    return name or next(filter(None, found), None)


def _name_of(key: str, value: str | None, tests: Mapping[str, str]) -> str | None:
    """The name of the test of a dict's key and value, None for True."""
    called = tests.get(key, key)
    template = _template(called)
    if template is not None:
        if len(template.tests) != 1:
            return None
        reads_number = isinstance(WORD.get(template.tests[0].attribute, str)("a"), int)
        number = int(value) if value and value.isdecimal() and reads_number else value
        return write_name([(template.key, 1 if number is None else number)])
    if value is not None:
        return None
    try:
        parts = read_name(called)
    except ValueError:
        return None
    template = _template("|".join(test for test, _ in parts))
    return None if template is None else called


def _template(key: str) -> Template | None:
    """The template of such tests, or None."""
    try:
        template = parse_template(f"u:{key}")
    except SparseCRFError:
        return None
    return None if template.is_real else template


class Taken(NamedTuple):
    """What an estimator takes from a component.

    model: with keys as `encoding` has them; attributes: names of tests; bigrams: those of them that
    have weights with pairs of labels.
    """

    model: CRFModel
    attributes: list[str]
    bigrams: tuple[str, ...]


def take_weights(pipe: Any) -> Taken:
    """Take the weights of a component, whose tests become features by their names.

    RAISES: SparseCRFError where tests have no names, or weights are of real-valued features.
    """
    lines = [*pipe.dump()]  # which brings the model up to date
    model: CRFModel = pipe.model
    entries = chain(model.unigram.entries(), model.bigram.entries())
    pairs = zip(lines, entries, strict=True)
    names = {entry[0][0]: line.split("\t")[1] for line, entry in pairs}
    for name in names.values():
        if read_hash(name) is not None or name.startswith(_NUMBERS):
            raise SparseCRFError(Errors.SC812.format(name=pipe.name))
    tests = [[names[key] for key in t.keys.tolist()] for t in (model.unigram, model.bigram)]
    bigrams = tuple(name for name in tests[1] if name != ALWAYS)
    attributes = [*dict.fromkeys((*tests[0], *bigrams))]
    numbers = {name: n for n, name in enumerate(attributes, start=encoding.ALWAYS + 1)}
    unigram = _renamed(model.unigram, [numbers[name] for name in tests[0]])
    numbers[ALWAYS] = encoding.ALWAYS
    bigram = _renamed(model.bigram, [numbers[name] for name in tests[1]])
    model = CRFModel(model.labels, model.dtype, unigram, bigram, model.kind, model.bounds)
    return Taken(model, attributes, bigrams)


def _renamed(table: WeightTable, keys: Sequence[int]) -> WeightTable:
    """The table with other keys."""
    own = np.repeat(np.array(keys, np.uint64), np.diff(table.indptr))
    previous = table.previous if len(table.previous) else None
    return WeightTable.of(own, previous, table.labels, table.values)


def read_docs(pipe: Any, docs: Iterable[Any]) -> list[list[list[str]]]:
    """Read from Docs what a component does: its sequences, with the names of each token's tests.

    RAISES: SparseCRFError for features of a kind that has no names, or numbers.
    """
    record = NameRecord.of(pipe.features)
    if record is None:
        raise SparseCRFError(Errors.SC812.format(name=pipe.name))
    found = record(list(docs), pipe.settings.sequences)
    if len(found.value_keys):
        raise SparseCRFError(Errors.SC812.format(name=pipe.name))
    names = record.names(np.setdiff1d(found.hashes, [0]))
    unigrams, bigrams = found.unigram_hashes.tolist(), found.bigram_hashes.tolist()
    tokens = []
    for own, pairs in zip(unigrams, bigrams, strict=True):
        # What is conjoined with labels and pairs is one feature; all pairs have one by themselves.
        more = [names[key] for key in pairs if key and key not in own]
        tokens.append([names[key] for key in own if key] + [n for n in more if n != ALWAYS])
    return [tokens[a:b] for a, b in pairwise(found.offsets.tolist())]
