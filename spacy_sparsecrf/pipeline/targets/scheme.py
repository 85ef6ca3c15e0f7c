"""Labelling schemes that encode spans as token labels: BILUO and IOB2.

A label is "O", outside of all spans, or a letter, a hyphen and the type of a span. In BILUO, U-X is
a span of one token, and B-X, I-X, L-X are the first, the inner and the last tokens of a longer
span. In IOB2, B-X is the first token of a span and I-X is any other token.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ...crf.corpus.numbering import Ints, Longs, Mask
from ...crf.kernels.layout import SpanLabels
from ...errors import Errors, SparseCRFError

OUTSIDE = "O"
LETTERS = {"BILUO": "BILU", "IOB2": "BI"}
OPEN = "BI"  # letters after which a span may continue
CONTINUING = "IL"  # letters that continue a span
_REMEMBERED = 16  # label sets cached


@dataclass(slots=True)
class LabelledSpans:
    """Spans in a batch of Docs. Spans of one chain ascend and do not overlap.

    starts, ends: [K] int64, first token and end (exclusive), counted over all Docs.
    types: [K] int64, positions in `names`, the span types.
    """

    starts: Longs
    ends: Longs
    types: Longs
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.starts)

    def named(self) -> list[tuple[int, int, str]]:
        """Return the first token, the end (exclusive) and the type of each span."""
        types = [self.names[i] for i in self.types.tolist()]
        return list(zip(self.starts.tolist(), self.ends.tolist(), types, strict=True))

    def tokens(self) -> Longs:
        """Return the tokens of all spans, span by span: [sum of lengths] int64."""
        lengths = self.ends - self.starts
        firsts = np.cumsum(lengths) - lengths
        return np.repeat(self.starts - firsts, lengths) + np.arange(lengths.sum())

    def where(self, chosen: Mask | Longs) -> "LabelledSpans":
        """Return the chosen spans. chosen: [K] bool, or positions of spans."""
        return LabelledSpans(self.starts[chosen], self.ends[chosen], self.types[chosen], self.names)


class Scheme:
    """A labelling scheme for spans.

    name: "BILUO" or "IOB2".
    RAISES: SparseCRFError for another name.
    """

    def __init__(self, name: str = "BILUO") -> None:
        if name not in LETTERS:
            raise SparseCRFError(Errors.SC501.format(value=name, known=", ".join(LETTERS)))
        self.name = name
        self.letters = LETTERS[name]

    def is_label(self, label: str) -> bool:
        """Return whether a string is a label of the scheme."""
        letter, hyphen, name = label.partition("-")
        return label == OUTSIDE or (letter in tuple(self.letters) and bool(hyphen and name))

    def labels_of(self, name: str) -> tuple[str, ...]:
        """Return the labels of spans of a type."""
        return tuple(f"{letter}-{name}" for letter in self.letters)

    def names_of(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the span types of labels, each once, in the order of the labels."""
        return types_of(tuple(labels))[0]

    def labels_for(self, n_tokens: int, name: str) -> list[str]:
        """Return the labels of a span's tokens. n_tokens: length of the span; name: its type."""
        inner = [f"I-{name}"] * (n_tokens - 1)
        if self.name == "IOB2":
            return [f"B-{name}", *inner][:n_tokens]
        return [f"B-{name}", *inner[1:], f"L-{name}"] if inner else [f"U-{name}"][:n_tokens]

    def decode(self, label_ids: Ints, ends: Longs, labels: Sequence[str]) -> LabelledSpans:
        """Decode labels into spans that do not overlap. Invalid label sequences are decoded too.

        A token whose label is I or L continues the previous span if the previous label is B or I of
        the same type. Any other token not labelled "O" begins a span. Inverts `labels_for`.

        label_ids: [N] int32, positions in `labels`, -1 for tokens that are no words, which are
            only inside of spans; ends: [D] int64, end offsets of Docs, ascending, the last one is
            N; labels: [Y] labels of the scheme.
        """
        names, of = types_of(tuple(labels))
        ids, n = np.ascontiguousarray(label_ids, np.int32), 0
        spans = np.empty((3, len(ids)), np.int64)
        if len(ids):
            n = check_found(span_kernels()[0](ids, ends, of, spans), len(labels))
        return LabelledSpans(spans[0, :n], spans[1, :n], spans[2, :n], names)

    def valid_transitions(self, labels: Sequence[str]) -> Mask:
        """Return the valid transitions between labels, see `Target.valid_transitions`."""
        _, of = types_of(tuple(labels))
        # The boundary of a sequence is outside of all spans.
        types = np.append(of.types, -1)
        is_open, continues = np.append(of.is_open, False), np.append(of.continues, False)
        goes_on = is_open[:, None] & continues & (types[:, None] == types)
        must_go_on = is_open & (self.name == "BILUO")
        valid: Mask = goes_on | ~(continues | must_go_on[:, None])
        return valid


def check_found(n: int, n_labels: int) -> int:
    """Return the number of spans that a kernel has found. RAISES: SparseCRFError for -1."""
    if n < 0:
        raise SparseCRFError(Errors.SC510.format(n=n_labels))
    return n


@cache
def span_kernels() -> tuple[Any, Any]:
    """Import the kernels of spans, with numba, only once; their arguments have the same types."""
    from ...crf.kernels.numba_support import Bound
    from ...crf.kernels.span_events import find_entities, find_spans

    return Bound(find_spans), Bound(find_entities)


def typed_labels(labels: Iterable[object]) -> list[str]:
    """Return labels of tokens in spans, such as B-PER, if all labels are such or outside."""
    named = {label for label in labels if label} - {OUTSIDE}
    typed = [
        x for x in named if isinstance(x, str) and x[0] in "BIELSU" and x[1:2] == "-" and x[2:]
    ]
    return sorted(typed) if len(typed) == len(named) else []


@lru_cache(maxsize=_REMEMBERED)
def types_of(labels: tuple[str, ...]) -> tuple[tuple[str, ...], SpanLabels]:
    """Return the span types of labels, each once, and how labels continue spans."""
    types = [label.partition("-")[2] for label in labels]
    names = tuple(dict.fromkeys(name for name in types if name))
    position = {"": -1, **{name: i for i, name in enumerate(names)}}
    return names, SpanLabels(
        np.array([position[name] for name in types], dtype=np.int64),
        np.array([label[0] in OPEN for label in labels], dtype=np.bool_),
        np.array([label[0] in CONTINUING for label in labels], dtype=np.bool_),
    )
