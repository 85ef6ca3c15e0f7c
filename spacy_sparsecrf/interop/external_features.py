"""Names of other programs' features, translated to names of template features.

A feature is a text as in CRFsuite: a key, or a key and a value after a colon or `=`. It is a
template feature if the key is in template notation, or if the user gives its name there:

    lower[-1]:the                  lower[-1]=the
    is_title[0]                    is_title[0]=1
    lower[-1]=the|lower[0]=cat     itself
    word.lower():the               lower[0]=the, given that word.lower() is lower[0]
    BOS                            lower[-1]=^1, given that BOS is lower[-1]=^1
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ..crf.model.model import CRFModel
from ..crf.model.names import ALWAYS, read_name, write_name
from ..errors import Errors, SparseCRFError
from ..pipeline.features.attributes.words import FUNCTIONS
from ..pipeline.features.templates import Template, parse_template

_SHOWN = 5  # features in a message
_SEPARATOR = re.compile("[:=]")


_TRUE = (None, "1", "True", "true")


def names_of(features: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Return the template names of features.

    names: template names by key or whole feature: an attribute such as lower[0], which has the
    feature's value, or a name such as always or lower[-1]=^1.
    RAISES: SparseCRFError if templates cannot express a feature, or two features have one name.
    """
    name_by_text = {text: name_of(text, names) for text in features}
    others = [text for text, name in name_by_text.items() if name is None]
    if others:
        shown = ", ".join(map(repr, others[:_SHOWN]))
        raise SparseCRFError(Errors.SC810.format(n=len(others), shown=shown))
    text_by_name: dict[str | None, str] = {}
    for text, name in name_by_text.items():
        if (other := text_by_name.setdefault(name, text)) != text:
            raise SparseCRFError(Errors.SC811.format(first=other, second=text, name=name))
    return [name for name in name_by_text.values() if name is not None]


def templates_of(model: CRFModel, names: Mapping[int, str]) -> list[str]:
    """Return the templates of features with weights. names: of features, by the model's keys."""
    templates = []
    for kind, table in (("u", model.unigram), ("b", model.bigram)):
        parts_of = (read_name(names[key]) for key in table.keys.tolist())
        keys = dict.fromkeys("|".join(attribute for attribute, _ in parts) for parts in parts_of)
        templates += [f"{kind}:{key}" for key in keys]
    return templates


def name_of(text: str, names: Mapping[str, str]) -> str | None:
    """Return the template name of a feature, or None; see `names_of`."""
    name = _name_of(text, None, names)
    if name == "":
        return None
    ends = (match.start() for match in _SEPARATOR.finditer(text))
    splits = ((text[:end], text[end + 1 :]) for end in ends)
    of_splits = (_name_of(key, value, names) for key, value in splits)
    return name or next(filter(None, of_splits), None)


def _name_of(key: str, value: str | None, names: Mapping[str, str]) -> str | None:
    """Return the template name of a dict's key and value, or None. value: None for True.

    The result is "" for a template feature that only a trained component can read.
    """
    called = names.get(key, key)
    if "]" not in called and called != ALWAYS:
        return None  # the common case, without parsing
    template = _template(called)
    if template is not None:
        if len(template.attributes) != 1 or template.attributes[0].read.needs_labels:
            return None
        made = FUNCTIONS.get(template.attributes[0].read.name)
        example = "" if made is None else made("a")
        if isinstance(example, bool):
            return write_name([(template.key, 1)]) if value in _TRUE else None
        if value is None and made is not None:
            return None  # such as a length as a number
        is_number = isinstance(example, int) and value is not None and value.isdecimal()
        number = int(value) if is_number and value else value
        return write_name([(template.key, 1 if number is None else number)])
    if value is not None:
        return None
    try:
        parts = read_name(called)
    except ValueError:
        return None
    template = _template("|".join(attribute for attribute, _ in parts))
    if template is None:
        return None
    return "" if any(x.read.needs_labels for x in template.attributes) else called


@lru_cache(maxsize=1 << 12)
def _template(key: str) -> Template | None:
    """Return the template of a key, or None if there is none or it is real-valued."""
    try:
        template = parse_template(f"u:{key}")
    except SparseCRFError:
        return None
    return None if template.is_real else template
