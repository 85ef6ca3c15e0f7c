"""Where the loss goes over from one way of computing to another.

Whichever way is taken, results are the same but for rounding: only time and memory change.
"""

from typing import NamedTuple

import numpy as np


class Limits(NamedTuple):
    """What is held or worked on at a time, and what the rule for pair potentials weighs.

    shard_bytes: of forward and of backward vectors each; more are computed in shards.
    n_chunks: into how many parts work is cut, whatever the number of threads, so that sums do not
    depend on that. span: tokens of one matrix whose pair products one thread sums. together: how
    many sequences go in a wave (see `walks`). table_bytes: of the heads' weights, which, as each
    chunk's sums of their gradient, stay in a cache. sums_bytes: of the sums of real values of all
    chunks, which are held at once. held_sums, held_pairs: numbers that screening holds at once,
    where the corpus is in files and anywhere: 512 MB each. merged: keys that are merged at once, at
    the least. least_tokens: that a thread descends over.
    shares: a test belongs to matrices where it occurs at one of these shares of the tokens, at
    least. entry, entry_exp: what an entry costs, and to exponentiate it, in units of one matrix
    element's three products (forward, backward, expectation), which took 0.35 ns. With one context,
    entries win where about 97 % of the pairs are zero (49 labels) or 95 % (443). matrix_bytes: that
    matrices may take; beyond, tests become entries whatever it costs; entry_bytes: so may entries.
    """

    shard_bytes: int = 1 << 27
    n_chunks: int = 64
    span: int = 4096
    together: int = 8
    table_bytes: int = 1 << 18
    sums_bytes: int = 1 << 27
    held_sums: int = 1 << 26
    held_pairs: int = 1 << 26
    merged: int = 1 << 20
    least_tokens: int = 256
    shares: tuple[float, ...] = (np.inf, 1.0, 1 / 16, 1 / 128, 1 / 1024, 0.0)
    entry: float = 20.0
    entry_exp: float = 40.0
    matrix_bytes: int = 1 << 30
    entry_bytes: int = 3 << 30


LIMITS = Limits()
