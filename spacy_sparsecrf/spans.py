"""Runs of labels whose probability is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import Errors, SparseCRFError


@dataclass(frozen=True)
class Spans:
    """M events: tokens i..j have given labels, and token j + 1 has a label of a set.

    The set is needed where labels alone do not tell that a span ends (with IOB2, I-PER after
    B-PER goes on with it). After the last token of a sequence it does not matter.

    starts: [M] int64, first tokens; run_ptr: [M + 1] int64, and runs: int32, CSR of label ids;
    after: [M, Y] bool, or None: any label.
    """

    starts: NDArray[np.int64]
    run_ptr: NDArray[np.int64]
    runs: NDArray[np.int32]
    after: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls,
        starts: Sequence[int],
        runs: Sequence[Sequence[int]],
        after: NDArray[np.bool_] | None = None,
    ) -> "Spans":
        """Make them from lists: first tokens, and label ids of the tokens from there on."""
        return cls(
            np.array(starts, dtype=np.int64),
            np.cumsum([0, *map(len, runs)], dtype=np.int64),
            np.array([label for run in runs for label in run], dtype=np.int32),
            after,
        )

    def check(self, n_tokens: int) -> None:
        """Raise `SparseCRFError` for an empty span, or one that is not within the tokens."""
        lengths = np.diff(self.run_ptr)
        wrong = (lengths < 1) | (self.starts < 0) | (self.starts + lengths > n_tokens)
        if wrong.any():
            number = int(wrong.argmax())
            values = {"length": lengths[number], "start": self.starts[number]}
            message = Errors.SC408.format(number=number, n_tokens=n_tokens, **values)
            raise SparseCRFError(message)
