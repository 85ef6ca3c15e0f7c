"""Annotations of gold Docs to copy to predicted Docs, by name, so that features can read them.

`tag`, `pos`, `morph`, `lemma` and `dep` (labels of arcs, no heads) of tokens; `sents`, where
sentences begin; `ents`; `spans`, of all groups, or `spans(key)`, of one; and `_.name`, an extension
attribute of tokens. If both Docs have the same words, everything is copied. Otherwise only aligned
values are copied: the value of a token's gold token, or the value that all of its gold tokens
share, and spans and entities, without ids, that begin and end at boundaries of predicted tokens.
"""

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from ..crf.corpus.blanks import extension_values
from ..errors import Errors, SparseCRFError
from .targets.target import have_same_tokens

OF_TOKENS: tuple[str, ...] = ("tag", "pos", "morph", "lemma", "dep")
SENTS, SENT_START = "sents", "SENT_START"
OF_ENTITIES: tuple[str, ...] = ("ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID")

_GROUP = re.compile(r"""spans\((?P<quote>["']?)(?P<key>.+)(?P=quote)\)""")
_EXTENSION = re.compile(r"_\.(?P<name>\w+)")


@dataclass(frozen=True)
class Annotations:
    """The annotations to copy.

    attributes: spaCy's names of token attributes; ents: whether to copy entities; groups: keys of
    span groups, None for all; extensions: names of extension attributes of tokens.
    """

    attributes: tuple[str, ...] = ()
    ents: bool = False
    groups: tuple[str, ...] | None = ()
    extensions: tuple[str, ...] = ()

    @classmethod
    def parse(cls, names: Iterable[str]) -> "Annotations":
        """Read a list of names. RAISES: SparseCRFError for an unknown name."""
        attributes, groups, extensions = [], [], []
        listed = [names] if isinstance(names, str) else list(names)
        for name in listed:
            if name in OF_TOKENS:
                attributes.append(name.upper())
            elif name == SENTS:
                attributes.append(SENT_START)
            elif group := _GROUP.fullmatch(name):
                groups.append(group["key"])
            elif extension := _EXTENSION.fullmatch(name):
                extensions.append(extension["name"])
            elif name not in ("ents", "spans"):
                message = Errors.SC220.format(name=name, known=", ".join((*OF_TOKENS, SENTS)))
                raise SparseCRFError(message)
        return cls(
            attributes=tuple(attributes),
            ents="ents" in listed,
            groups=None if "spans" in listed else tuple(groups),
            extensions=tuple(extensions),
        )

    def copy_to_predicted(self, example: Example) -> None:
        """Write annotations of the gold Doc to the predicted one.

        RAISES: SparseCRFError for an extension attribute that is not registered.
        """
        if self == Annotations():
            return
        same = have_same_tokens(example)
        self._copy_attributes(example, same)
        if self.ents and not same:
            ents, tags = example.get_aligned_ents_and_ner()
            doc = example.predicted
            outside = [doc[i : i + 1] for i, tag in enumerate(tags) if tag == "O"]
            doc.set_ents(list(ents), outside=outside, default="missing")
        self._copy_spans(example, same)
        for name in self.extensions:
            _copy_extension(example, name, same)

    def _copy_attributes(self, example: Example, same: bool) -> None:
        """Copy token attributes; if words are the same, also entities, which are attributes."""
        entities = OF_ENTITIES if self.ents and same else ()
        attributes: list[int | str] = [*self.attributes, *entities]
        if not attributes:
            return
        if same:
            values: Any = example.reference.to_array(attributes)
        else:
            columns = [_aligned(example, attribute) for attribute in self.attributes]
            values = np.array(columns, dtype=np.uint64).T
        example.predicted.from_array(attributes, values)

    def _copy_spans(self, example: Example, same: bool) -> None:
        predicted, gold = example.predicted, example.reference.spans
        for key in gold if self.groups is None else self.groups:
            if key in gold:
                spans: Sequence[Span] = list(gold[key])
                predicted.spans[key] = (
                    [_copy_of(span, predicted) for span in spans]
                    if same
                    else example.get_aligned_spans_y2x(spans, allow_overlap=True)
                )


def _aligned(example: Example, attribute: str) -> list[int]:
    """Return the aligned gold values of predicted tokens, 0 if there is none."""
    if attribute != SENT_START:
        return [value or 0 for value in example.get_aligned(attribute)]
    starts = example.get_aligned_sent_starts()  # type: ignore[no-untyped-call]
    # spaCy reads a value below zero as: no sentence begins here.
    return [0 if start is None else 1 if start else 2**64 - 1 for start in starts]


def _copy_of(span: Span, doc: Doc) -> Span:
    ids: dict[str, Any] = {"kb_id": span.kb_id, "span_id": span.id}
    return Span(doc, span.start, span.end, label=span.label, **ids)


def _copy_extension(example: Example, name: str, same: bool) -> None:
    """Copy the values of an extension attribute, unless it is computed from the Doc.

    RAISES: SparseCRFError if it is not registered.
    """
    if not Token.has_extension(name):
        raise SparseCRFError(Errors.SC221.format(name=name))
    default, method, getter, _ = extension = Token.get_extension(name)
    if method is not None or getter is not None:
        return
    values = extension_values(example.reference, name, extension)
    for token in example.predicted:
        at = [token.i] if same else example.alignment.x2y[token.i].tolist()
        aligned = [values[i] for i in at]
        if aligned and aligned[0] is not default and all(x == aligned[0] for x in aligned[1:]):
            # A pipe may change a list in place, which must not change the gold value.
            token._.set(name, deepcopy(aligned[0]))
