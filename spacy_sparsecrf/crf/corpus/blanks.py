"""Words and blanks: which tokens take part in sequences; and the values that users set at tokens.

Tokens of white space, or of characters without width, are blanks: no part of a sequence, so that
texts with other blanks have the same features, labels and probabilities.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BREAKS = 2  # line breaks that are counted; no span crosses so many
_RANGES = (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x2064), (0x2066, 0x206F)
UNSEEN = dict.fromkeys([0xAD, 0xFEFF, *(i for low, high in _RANGES for i in range(low, high + 1))])
"""Characters that readers do not see: soft hyphens, joiners, directions; for `str.translate`."""


def count_lines(blanks: str) -> int:
    """Return 1 plus the number of line breaks in blanks; CR LF is one."""
    # Without an added character, a break at the end would not count.
    return len(f"{blanks}.".splitlines())


def words_of(doc: Any) -> NDArray[np.int64]:
    """Return the positions of the tokens of a Doc that are words: [N]."""
    texts = [*map(doc.vocab.strings.__getitem__, doc.to_array("ORTH").tolist())]
    # Of the characters of blanks, only the space is printable.
    if (joined := "".join(texts)).isprintable() and " " not in joined:
        return np.arange(len(texts))
    return np.flatnonzero([bool(text.translate(UNSEEN).strip()) for text in texts])


def extension_values(doc: Any, name: str, extension: tuple[Any, ...]) -> list[Any]:
    """Return `token._.NAME` of each token, mostly from spaCy's storage, the dict `doc.user_data`.

    `token._.get` takes many times as long as labelling. extension: of `Token.get_extension`.
    """
    default, method, getter, _ = extension
    user_data: dict[Any, Any] = doc.user_data
    if method is not None or getter is not None:
        return [token._.get(name) for token in doc]
    return [user_data.get(("._.", name, token.idx, None), default) for token in doc]
