"""The averaged perceptron (Collins 2002): decode, and move weights towards the gold labels."""

from typing import NamedTuple

import numpy as np

from .layout import Floats, Ints, Scored, Search, Tables, Unigrams, Values
from .numba_support import inlined, kernel
from .pairs import score_pairs
from .scores import score_token
from .small import fill, position
from .viterbi import best_path


class Guess(NamedTuple):
    """Workspaces for decoding a sequence of T tokens, whose contexts change R times at most.

    scored: of the sequence, scores [T, Yp], context [T], pairs [R, Y + 1, Yp]; slack: [R, Yp],
    infinite; search: exhaustive; best: [Yp] float64; labels: [T] int32, decoded labels.
    """

    scored: Scored
    slack: Floats
    search: Search
    best: Floats
    labels: Ints


class Averaged(NamedTuple):
    """Weights [K], and the sum of their changes, each times the number of visits before it."""

    theta: Floats
    moves: Floats


class ValueBlocks(NamedTuple):
    """Real-valued features, and the feature block of each of their columns: blocks [R] int64."""

    features: Values
    blocks: Ints


@inlined
def _add_values(
    t: int, values: ValueBlocks, unigrams: Unigrams, theta: Floats, scores: Floats
) -> None:
    """Add the real-valued features of token t: scores[y] += sum_v x_t[v] W[v, y]."""
    x, rows, columns = values.features
    block_ptr, block_labels = unigrams.block_ptr, unigrams.block_labels
    for r in range(len(columns)):
        value, row = np.float64(x[rows[t], columns[r]]), values.blocks[r]
        for k in range(block_ptr[row], block_ptr[row + 1]):
            scores[block_labels[k]] += value * theta[k]


@inlined
def _decode(
    begin: int, end: int, tables: Tables, values: ValueBlocks, theta: Floats, guess: Guess
) -> None:
    """Find the best labels of the tokens begin:end."""
    unigrams, context_blocks, scored = tables.unigrams, tables.context_blocks, guess.scored
    n_labels, split = tables.sequences.n_labels, unigrams.split
    loaded, n = -1, 0
    for t in range(begin, end):
        scores = scored.scores[t - begin]
        fill(scores, 0, len(scores), 0.0)
        score_token(t, n_labels, unigrams, theta, scores)
        _add_values(t, values, unigrams, theta, scores)
        c = context_blocks.context[t]
        # Successive tokens mostly have the same context.
        if c != loaded:
            loaded = c
            pairs = scored.pairs[n]
            n += 1
            rows = context_blocks.blocks[context_blocks.ptr[c] : context_blocks.ptr[c + 1]]
            fill(pairs.reshape(-1), 0, pairs.size, 0.0)
            score_pairs(pairs, rows, n_labels, tables.bigrams, theta[split:])
        scored.context[t - begin] = n - 1
    origin = begin - begin
    best_path(origin, end - begin, scored, guess.slack, guess.search, guess.best, guess.labels)


@inlined
def _move(
    step: float,
    count: float,
    rows: Ints,
    block_ptr: Ints,
    places: Ints,
    place: int,
    weights: Averaged,
) -> None:
    """Add a step to the weights of blocks `rows` at a position, and count * step to their moves."""
    for row in rows:
        begin, end = block_ptr[row], block_ptr[row + 1]
        k = begin + position(places[begin:end], place)
        if k < end and places[k] == place:
            weights.theta[k] += step
            weights.moves[k] += count * step


@inlined
def _learn(
    s: int, count: float, tables: Tables, values: ValueBlocks, weights: Averaged, guess: Guess
) -> int:
    """Move the weights of sequence s from the decoded labels to the gold labels.

    count: number of visits before. RETURNS: number of tokens with a wrong label.
    """
    sequences, unigrams, bigrams = tables.sequences, tables.unigrams, tables.bigrams
    context_blocks, n_wrong = tables.context_blocks, 0
    begin, end, step = sequences.offsets[s], sequences.offsets[s + 1], sequences.weights[s]
    n_labels, labels, padded = sequences.n_labels, sequences.labels, len(guess.best)
    pairs = Averaged(weights.theta[unigrams.split :], weights.moves[unigrams.split :])
    x, value_rows, columns = values.features
    for t in range(begin, end):
        gold, guessed = labels[t], guess.labels[t - begin]
        gold_before = n_labels if t == begin else labels[t - 1]
        guessed_before = n_labels if t == begin else guess.labels[t - begin - 1]
        if gold != guessed:
            n_wrong += 1
            rows = unigrams.site_blocks[unigrams.site_ptr[t] : unigrams.site_ptr[t + 1]]
            block_ptr, block_labels = unigrams.block_ptr, unigrams.block_labels
            _move(step, count, rows, block_ptr, block_labels, gold, weights)
            _move(-step, count, rows, block_ptr, block_labels, guessed, weights)
            for r in range(len(columns)):
                by = step * np.float64(x[value_rows[t], columns[r]])
                rows = values.blocks[r : r + 1]
                _move(by, count, rows, block_ptr, block_labels, gold, weights)
                _move(-by, count, rows, block_ptr, block_labels, guessed, weights)
        if gold != guessed or gold_before != guessed_before:
            c = context_blocks.context[t]
            rows = context_blocks.blocks[context_blocks.ptr[c] : context_blocks.ptr[c + 1]]
            pair_ptr, pair_places = bigrams.block_ptr, bigrams.block_places
            gold_pair, guessed_pair = gold_before * padded + gold, guessed_before * padded + guessed
            _move(step, count, rows, pair_ptr, pair_places, gold_pair, pairs)
            _move(-step, count, rows, pair_ptr, pair_places, guessed_pair, pairs)
    return n_wrong


@kernel
def perceptron_pass(
    order: Ints, tables: Tables, values: ValueBlocks, weights: Averaged, count: int, guess: Guess
) -> int:
    """Pass over complete sequences once: theta += w (F(x, gold) - F(x, best labels)).

    order: [n] int64; weights: in and out; count: number of visits before this pass. The mean of the
    weights after each of m visits is theta - moves / m.
    RETURNS: number of tokens with a wrong label.
    """
    n_wrong, offsets = 0, tables.sequences.offsets
    for visit in range(len(order)):
        s = order[visit]
        _decode(offsets[s], offsets[s + 1], tables, values, weights.theta, guess)
        n_wrong += _learn(s, float(count + visit), tables, values, weights, guess)
    return n_wrong
