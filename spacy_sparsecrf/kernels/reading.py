"""What `Doc.to_array` gives, made ready for hashing."""

import numpy as np

from .compiled import kernel


@kernel
def cut(ends: np.ndarray, starts: np.ndarray, sentences: bool, offsets: np.ndarray) -> int:
    """Cut the concatenated tokens of Docs into sequences.

    ends: [D] int64, where each Doc ends; an empty Doc gives no sequence.
    starts: [N, A] uint64, SENT_START of tokens in column 1.
    sentences: whether to make sentences, where a Doc has them, or else a Doc a sequence.
    offsets: [N + 1] int64, out: sequence s is the tokens offsets[s]:offsets[s + 1].
    RETURNS: the number of sequences.
    """
    n = 0
    first = 0
    for d in range(len(ends)):
        for t in range(first, ends[d]):
            # As Doc.sents: a sentence begins where the value is 1, not 0 (unknown) or -1 (no).
            if t == first or (sentences and starts[t, 1] == np.uint64(1)):
                offsets[n] = t
                n += 1
        first = ends[d]
    offsets[n] = first
    return n


@kernel
def glue(ends: np.ndarray, spaces: np.ndarray, column: int) -> None:
    """Turn "white space follows" into "glued to the next token of the Doc", in place.

    ends: [D] int64, where each Doc ends; spaces: [N, A] uint64, of which one column counts.
    """
    first = 0
    for d in range(len(ends)):
        for t in range(first, ends[d]):
            # Nothing follows a Doc's last token: whether white space does is not known of all
            # texts.
            spaces[t, column] = np.uint64(t + 1 < ends[d] and spaces[t, column] == np.uint64(0))
        first = ends[d]
