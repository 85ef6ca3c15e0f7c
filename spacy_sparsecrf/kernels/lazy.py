"""Lazy updates: weights that an example does not have are brought up to date when needed next.

A step moves all weights, by the penalty or by a stored direction, but only those of the example by
a new gradient. What the other weights miss has a closed form for each method:

    SGD-L1       `sgd.apply_due`: cumulative l1 penalty and l2 decay
    SGD          `minibatch.shrink_sgd`: powers of 1 / (1 + eta l2)
    AdaGrad      `minibatch.shrink_adagrad`: the proximal map, n times
    SAG, SAGA    `sag_updates.repeat_steps`: steps along a constant direction
"""

from typing import Any

from .layout import Floats, Ints
from .numba_support import inlined


@inlined
def advance(
    rows: Any, now: Any, reached: Floats, block_ptr: Ints, update: Any, values: Any
) -> None:
    """Bring the weights of feature blocks up to date, and note how far they are.

    rows: [n], or a range; now, reached: [blocks] number of the step, or cumulated rate, that is to
    be reached and that each block has reached, in and out; block_ptr: [blocks + 1], weights of a
    block; update(begin, end, past, now, values): does it for the weights begin:end.
    """
    for row in rows:
        update(block_ptr[row], block_ptr[row + 1], reached[row], now, values)
        reached[row] = now
