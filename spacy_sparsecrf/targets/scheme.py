"""Labelling schemes that encode spans as token labels: BILUO and IOB2.

A label is "O", outside of all spans, or a letter, a hyphen and the type of a span. In BILUO, U-X is
a span of one token, and B-X, I-X, L-X are the first, the inner and the last tokens of a longer
span. In IOB2, B-X is the first token of a span and I-X is any other token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError

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

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    types: NDArray[np.int64]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.starts)

    def named(self) -> list[tuple[int, int, str]]:
        """Return the first token, the end (exclusive) and the type of each span."""
        types = [self.names[i] for i in self.types.tolist()]
        return list(zip(self.starts.tolist(), self.ends.tolist(), types, strict=True))

    def tokens(self) -> NDArray[np.int64]:
        """Return the tokens of all spans, span by span: [sum of lengths] int64."""
        lengths = self.ends - self.starts
        firsts = np.cumsum(lengths) - lengths
        return np.repeat(self.starts - firsts, lengths) + np.arange(lengths.sum())

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "LabelledSpans":
        """Return the chosen spans. chosen: [K] bool, or positions of spans."""
        return LabelledSpans(self.starts[chosen], self.ends[chosen], self.types[chosen], self.names)


@dataclass(frozen=True)
class _Arrays:
    """Labels as arrays. types: [Y] int64, positions in `names`, -1 for "O"; others: [Y] bool."""

    names: tuple[str, ...]
    types: NDArray[np.int64]
    is_open: NDArray[np.bool_]
    continues: NDArray[np.bool_]


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
        return _as_arrays(tuple(labels)).names

    def labels_for(self, n_tokens: int, name: str) -> list[str]:
        """Return the labels of a span's tokens. n_tokens: length of the span; name: its type."""
        rest = [f"I-{name}"] * (n_tokens - 1)
        if self.name == "IOB2":
            return [f"B-{name}", *rest][:n_tokens]
        return [f"B-{name}", *rest[1:], f"L-{name}"] if rest else [f"U-{name}"][:n_tokens]

    def decode(
        self, label_ids: NDArray[np.int32], ends: NDArray[np.int64], labels: Sequence[str]
    ) -> LabelledSpans:
        """Decode labels into spans that do not overlap. Invalid label sequences are decoded too.

        A token whose label is I or L continues the previous span if the previous label is B or I of
        the same type. Any other token not labelled "O" begins a span. Inverts `labels_for`.

        label_ids: [N] int32, positions in `labels`, -1 for tokens that are no words, which are
            only inside of spans; ends: [D] int64, end offsets of Docs, ascending, the last one is
            N; labels: [Y] labels of the scheme.
        """
        of, size = _as_arrays(tuple(labels)), len(label_ids)
        found = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
        arguments = label_ids, ends, of.types, of.is_open, of.continues
        n = _kernel()(*arguments, *found) if size else 0
        starts, stops, types = found
        return LabelledSpans(starts[:n], stops[:n], types[:n], of.names)

    def valid_transitions(self, labels: Sequence[str]) -> NDArray[np.bool_]:
        """Return the valid transitions between labels: [Y + 1, Y + 1], see `Target.legal`."""
        arrays = _as_arrays(tuple(labels))
        # The boundary of a sequence is outside of all spans.
        types = np.append(arrays.types, -1)
        is_open, continues = np.append(arrays.is_open, False), np.append(arrays.continues, False)
        goes_on = is_open[:, None] & continues & (types[:, None] == types)
        must_go_on = is_open & (self.name == "BILUO")
        valid: NDArray[np.bool_] = goes_on | ~(continues | must_go_on[:, None])
        return valid


@cache
def _kernel() -> Callable[..., int]:
    """Import the kernel, with numba, at the first use."""
    from ..kernels.spans import find_spans

    return find_spans


@lru_cache(maxsize=_REMEMBERED)
def _as_arrays(labels: tuple[str, ...]) -> _Arrays:
    types = [label.partition("-")[2] for label in labels]
    names = tuple(dict.fromkeys(name for name in types if name))
    position = {"": -1, **{name: i for i, name in enumerate(names)}}
    return _Arrays(
        names,
        np.array([position[name] for name in types], dtype=np.int64),
        np.array([label[0] in OPEN for label in labels], dtype=np.bool_),
        np.array([label[0] in CONTINUING for label in labels], dtype=np.bool_),
    )
