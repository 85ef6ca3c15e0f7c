"""Lazy updates: weights of features absent from an example are updated when they are next used.

A step changes all weights by the penalty or by a stored direction, but only the weights of the
example by a new gradient. The missed updates of all other weights have a closed form:

    SGD          `minibatch.shrink_sgd`: powers of 1 / (1 + eta l2)
    SGD-L1       `minibatch.step_sgd_l1`: cumulative l1 penalty and l2 decay
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
    """Bring the weights of feature blocks up to date, and record that in `reached`.

    rows: [n], or a range; now: step number, or cumulated rate, to reach; reached: [blocks], in and
    out, number or rate that each block has reached; block_ptr: [blocks + 1], weights of a block;
    update(begin, end, past, now, values): updates the weights begin:end.
    """
    for row in rows:
        past = reached[row]
        if past != now:
            update(block_ptr[row], block_ptr[row + 1], past, now, values)
            reached[row] = now
