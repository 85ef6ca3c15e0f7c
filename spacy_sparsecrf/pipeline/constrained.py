"""Which labels may follow which in training, where sequences that are not legal are left out."""

import warnings
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from ..errors import SparseCRFError, SparseCRFWarning, Warnings
from ..legality import IllegalGoldError, describe
from .compiling import Compiled

Mask = NDArray[np.bool_]


def warn_of_freedom(name: str, legal: Mask | None) -> None:
    """Warn where all sequences are legal.

    name: of the component; legal: [Y + 1, Y + 1], see `legality`, None = all.
    """
    if legal is None:
        message = Warnings.SCW350.format(name=name)
        warnings.warn(message, SparseCRFWarning, stacklevel=2)


@contextmanager
def doc_named(compiled: Compiled) -> Iterator[None]:
    """Name the Doc whose gold labels are not legal, not the sequence of the corpus.

    compiled: has the labels, and the corpus. RAISES: SparseCRFError.
    """
    try:
        yield
    except IllegalGoldError as error:
        found = error.found
        number = bisect_right(compiled.docs, found.token, key=itemgetter(0))
        first = compiled.docs[number - 1][0] if number else 0
        place = f"the training Doc that begins {compiled.docs[number][1]!r}"
        message = describe(found, found.token - first, compiled.labels, place)
        raise SparseCRFError(message) from None
