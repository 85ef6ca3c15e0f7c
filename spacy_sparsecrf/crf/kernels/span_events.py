"""Spans that labels encode, and their values in Docs."""

import numpy as np

from .layout import Ints, SpanLabels
from .numba_support import inlined, kernel

_OUT, _BEGIN, _INSIDE = np.uint64(2), np.uint64(3), np.uint64(1)  # values of ENT_IOB
FIRST, END, TYPE, FREE = range(4)  # rows of the arrays of spans


@inlined
def _find(labels: Ints, ends: Ints, of: SpanLabels, spans: Ints) -> int:
    """Find the spans of labels; see `find_spans`."""
    n = 0
    start = 0
    if len(ends) and ends[-1] > len(labels):
        return -1
    for d in range(len(ends)):
        previous = -1
        for t in range(start, ends[d]):
            y = labels[t]
            if y < 0:
                continue
            if y >= len(of.types):
                return -1
            if of.types[y] >= 0:
                goes_on = previous >= 0 and of.is_open[previous] and of.continues[y]
                if not (goes_on and of.types[previous] == of.types[y]):
                    spans[FIRST, n] = t
                    spans[TYPE, n] = of.types[y]
                    n += 1
                spans[END, n - 1] = t + 1
            previous = y
        start = ends[d]
    return n


@kernel(nogil=False)
def find_spans(labels: Ints, ends: Ints, of: SpanLabels, spans: Ints) -> int:
    """Find the spans of labels, see `pipeline.targets.scheme.Scheme.decode`.

    labels: [N] int32, -1 for a blank; ends: [D] int64, end of each Doc; spans: [>= 3, N] int64,
    out: first token, end and type of each span. RETURNS: the number of spans; -1 if a label does
    not exist, or labels are missing.
    """
    return _find(labels, ends, of, spans)


@kernel(nogil=False)
def find_entities(
    labels: Ints, ends: Ints, of: SpanLabels, ids: Ints, has_kept: bool, values: Ints, spans: Ints
) -> int:
    """Find the spans of labels, and write free spans, without other entities, as values of tokens.

    ids: [T] uint64, spaCy's ids of types; has_kept: whether values are those of kept entities;
    otherwise they are 0; values: [N, A] uint64, in and out, ENT_IOB and ENT_TYPE of tokens, and
    others; spans: [4, N], out, as in `find_spans`, and whether the span is free.
    RETURNS: as `find_spans`.
    """
    n = _find(labels, ends, of, spans)
    for t in range(0 if has_kept else len(values)):
        values[t, 0] = _OUT
    for k in range(n):
        begin, end = spans[FIRST, k], spans[END, k]
        is_free = True
        for t in range(begin, end):
            is_free &= values[t, 0] == _OUT
        spans[FREE, k] = is_free
        if is_free:
            for t in range(begin, end):
                values[t, 0] = _BEGIN if t == begin else _INSIDE
                values[t, 1] = ids[spans[TYPE, k]]
    return n
