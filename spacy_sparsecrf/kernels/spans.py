"""Spans that labels encode, and their values in Docs."""

import numpy as np

from .layout import Flags, Ints
from .numba_support import kernel

_OUT, _BEGIN, _INSIDE = np.uint64(2), np.uint64(3), np.uint64(1)  # values of ENT_IOB


@kernel(nogil=False)
def find_spans(
    labels: Ints,
    ends: Ints,
    types: Ints,
    is_open: Flags,
    continues: Flags,
    first_tokens: Ints,
    ends_of: Ints,
    found: Ints,
) -> int:
    """Find the spans of labels, see `targets.scheme.Scheme.decode`.

    labels: [N] int32, -1 for a blank; ends: [D] int64, end of each Doc; types: [Y] int64, type of a
    label, -1 outside of spans; is_open, continues: [Y] bool, whether a span may go on behind a
    label, and with it; first_tokens, ends_of, found: [N] int64, out: first token, end (exclusive)
    and type of each span. RETURNS: the number of spans.
    """
    n = 0
    first = 0
    for d in range(len(ends)):
        before = -1
        for t in range(first, ends[d]):
            y = labels[t]
            if y < 0:
                continue
            if types[y] >= 0:
                goes_on = before >= 0 and is_open[before] and types[before] == types[y]
                if not (goes_on and continues[y]):
                    first_tokens[n] = t
                    found[n] = types[y]
                    n += 1
                ends_of[n - 1] = t + 1
            before = y
        first = ends[d]
    return n


@kernel(nogil=False)
def fill_entities(
    starts: Ints, ends: Ints, types: Ints, ids: Ints, values: Ints, is_free: Flags
) -> None:
    """Write entities that overlap no other entity as values of tokens.

    starts, ends, types: [K] int64, spans that do not overlap; ids: [T] uint64, spaCy's ids of
    types; values: [N, A] uint64, in and out, ENT_IOB and ENT_TYPE of tokens, and others; is_free:
    [K] bool, out, whether no token of a span is in another entity.
    """
    for k in range(len(starts)):
        is_free[k] = True
        for t in range(starts[k], ends[k]):
            is_free[k] &= values[t, 0] == _OUT
        if is_free[k]:
            for t in range(starts[k], ends[k]):
                values[t, 0] = _BEGIN if t == starts[k] else _INSIDE
                values[t, 1] = ids[types[k]]
