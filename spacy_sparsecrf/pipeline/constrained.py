"""Which labels may follow which in training, where sequences that are not legal are left out."""

import warnings
from bisect import bisect_right
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from ..errors import SparseCRFError, SparseCRFWarning, Warnings
from ..legality import describe, find_illegal
from .compiling import Compiled

Mask = NDArray[np.bool_]


def check_legal(name: str, legal: Mask | None, compiled: Compiled) -> None:
    """Check that training on legal sequences makes sense.

    name: of the component; legal: [Y + 1, Y + 1], see `legality`, None = all, of which is warned;
    compiled: has the labels, and a corpus.
    RAISES: SparseCRFError where its gold labels are not legal.
    """
    if legal is None:
        message = Warnings.SCW350.format(name=name)
        warnings.warn(message, SparseCRFWarning, stacklevel=2)
    else:
        _check_gold(compiled, legal)


def _check_gold(compiled: Compiled, legal: Mask) -> None:
    found = None if compiled.corpus is None else find_illegal(compiled.corpus, legal)
    if found is None:
        return
    number = bisect_right(compiled.docs, found.token, key=itemgetter(0))
    first = compiled.docs[number - 1][0] if number else 0
    place = f"the training Doc that begins {compiled.docs[number][1]!r}"
    raise SparseCRFError(describe(found, found.token - first, compiled.labels, place))
