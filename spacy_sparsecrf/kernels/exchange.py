"""The exchange algorithm for word classes (Kneser & Ney 1993; Martin, Liermann & Ney 1998).

Each word in turn moves to the class that maximises the likelihood of a class bigram model. Up to a
constant the log-likelihood is

    F = sum_{g, h} f(N(g, h)) - 2 sum_g f(N(g)),    f(n) = n log n

with N(g, h) the number of times that a word of class h follows one of class g, and N(g) the number
of words of class g.
"""

from typing import NamedTuple

from .exp import log
from .layout import Floats, Ints
from .numba_support import inlined, kernel


class Neighbours(NamedTuple):
    """Counts of adjacent words.

    ptr: [V + 1] int64, words: int32, counts: int64, CSR: for each word, its neighbours on one side
    and their counts; no word is its own neighbour.
    """

    ptr: Ints
    words: Ints
    counts: Ints


class Classes(NamedTuple):
    """Words in classes.

    of_word: [V] int32; sizes: [C] int64, N(g); after: [C, C] int64, after[g, h] = N(g, h); before:
    [C, C], its transpose.
    """

    of_word: Ints
    sizes: Ints
    after: Ints
    before: Ints


class WordExchange(NamedTuple):
    """Data and workspaces of the algorithm.

    left, right: of words; counts: [V] int64, of words; own: [V] int64, number of times that a word
    follows itself; table: [T] float64, f(0) to f(T - 1). Workspaces: gains: [C] float64;
    sides: [2, C] int64, zeros, neighbours of a word by class; found: [C] int32.
    """

    left: Neighbours
    right: Neighbours
    counts: Ints
    own: Ints
    table: Floats
    gains: Floats
    sides: Ints
    found: Ints


@inlined
def _f(n: int, table: Floats) -> float:
    value: float = table[n] if n < len(table) else n * log(n)
    return value


@kernel
def fill_table(table: Floats) -> None:
    """Set table[n] to n log n; table: [T] float64, zeros."""
    for n in range(1, len(table)):
        table[n] = n * log(n)


@inlined
def _sum_side(word: int, side: Neighbours, of_word: Ints, sums: Ints, found: Ints) -> int:
    """Sum counts of neighbours by class; list the classes in `found`. RETURNS: their number."""
    n = 0
    for i in range(side.ptr[word], side.ptr[word + 1]):
        g = of_word[side.words[i]]
        if sums[g] == 0:
            found[n] = g
            n += 1
        sums[g] += side.counts[i]
    return n


@inlined
def _add(word: int, k: int, sign: int, e: WordExchange, classes: Classes) -> None:
    """Add a word to class k, or remove it with sign = -1."""
    for i in range(e.left.ptr[word], e.left.ptr[word + 1]):
        g, n = classes.of_word[e.left.words[i]], sign * e.left.counts[i]
        classes.after[g, k] += n
        classes.before[k, g] += n
    for i in range(e.right.ptr[word], e.right.ptr[word + 1]):
        g, n = classes.of_word[e.right.words[i]], sign * e.right.counts[i]
        classes.after[k, g] += n
        classes.before[g, k] += n
    n = sign * e.own[word]
    classes.after[k, k] += n
    classes.before[k, k] += n
    classes.sizes[k] += sign * e.counts[word]


@inlined
def _gain_of_side(first: int, sums: Ints, n: int, e: WordExchange, towards: Ints) -> None:
    """Add to the gain of each class the contribution of a word's neighbours on one side.

    first: first class that words may join; sums: [C], neighbours by class; n: number of classes in
    `found`, which have neighbours; towards: [C, C] counts, a row for each class of neighbours.
    """
    gains, table = e.gains, e.table
    for i in range(n):
        g = e.found[i]
        more, row = sums[g], towards[g]
        for k in range(first, len(gains)):
            gains[k] += _f(row[k] + more, table) - _f(row[k], table)


@inlined
def _best(word: int, first: int, e: WordExchange, classes: Classes) -> int:
    """Return the class that maximises F (ties: the first). The word must be in no class."""
    gains, table = e.gains, e.table
    left, right = e.sides[0], e.sides[1]
    for k in range(first, len(gains)):
        size = classes.sizes[k]
        gains[k] = -2.0 * (_f(size + e.counts[word], table) - _f(size, table))
    n = _sum_side(word, e.left, classes.of_word, left, e.found)
    _gain_of_side(first, left, n, e, classes.after)
    n = _sum_side(word, e.right, classes.of_word, right, e.found)
    _gain_of_side(first, right, n, e, classes.before)
    best = first
    for k in range(first, len(gains)):
        # Both sides change the pair of the class with itself.
        own = classes.after[k, k]
        apart = _f(own + left[k], table) + _f(own + right[k], table) - _f(own, table)
        gains[k] += _f(own + left[k] + right[k] + e.own[word], table) - apart
        if gains[k] > gains[best]:
            best = k
    for i in range(len(left)):
        left[i] = right[i] = 0
    return best


@kernel
def exchange(words: Ints, first: int, e: WordExchange, classes: Classes) -> int:
    """Move each word to its best class, in order. RETURNS: number of words that moved.

    words: in this order; first: first class that words may join; each lower class has a fixed word.
    """
    n_moved = 0
    for i in range(len(words)):
        word = words[i]
        old = classes.of_word[word]
        _add(word, old, -1, e, classes)
        best = _best(word, first, e, classes)
        _add(word, best, 1, e, classes)
        classes.of_word[word] = best
        n_moved += best != old
    return n_moved
