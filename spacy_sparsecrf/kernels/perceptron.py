"""The averaged perceptron (Collins 2002): decode, and move weights towards the gold labels."""

import numpy as np

from .compiled import inner, kernel
from .memory import fill
from .potentials import add_pairs, add_scores


@inner
def _best_labels(
    n: int, n_labels: int, best: np.ndarray, back: np.ndarray, labels: np.ndarray
) -> None:
    """Follow back pointers [T, Yp] from the best last label; the lowest label wins a tie."""
    y = 0
    for i in range(1, n_labels):
        if best[i] > best[y]:
            y = i
    for t in range(n - 1, -1, -1):
        labels[t] = y
        y = back[t, y]


@inner
def _advance(
    begins: bool,
    n_labels: int,
    pairs: np.ndarray,
    scores: np.ndarray,
    best: np.ndarray,
    back: np.ndarray,
    result: np.ndarray,
) -> None:
    """One step of Viterbi: best [Yp], of the token before, becomes that of the present token.

    pairs: [Y + 1, Yp] scores of pairs, row Y = start label; scores, back, result: [Yp], the last
    two out and a workspace.
    """
    for y in range(n_labels):
        result[y] = pairs[n_labels, y] if begins else best[0] + pairs[0, y]
        back[y] = 0
    if not begins:
        for i in range(1, n_labels):
            for y in range(n_labels):
                candidate = best[i] + pairs[i, y]
                if candidate > result[y]:
                    result[y] = candidate
                    back[y] = i
    for y in range(n_labels):
        best[y] = result[y] + scores[y]


@inner
def _move(
    step: float,
    count: float,
    rows: np.ndarray,
    row_ptr: np.ndarray,
    places: np.ndarray,
    place: int,
    theta: np.ndarray,
    moves: np.ndarray,
) -> None:
    """Add a step to the weights of rows that are at a place, and count * step to their moves."""
    for row in rows:
        begin, end = row_ptr[row], row_ptr[row + 1]
        k = begin + np.searchsorted(places[begin:end], np.uint32(place))
        if k < end and places[k] == place:
            theta[k] += step
            moves[k] += count * step


@inner
def _decode(
    begin: int,
    end: int,
    n_labels: int,
    n_previous: int,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    token_context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    split: int,
    theta: np.ndarray,
    pairs: np.ndarray,
    vectors: np.ndarray,
    back: np.ndarray,
    guess: np.ndarray,
) -> None:
    """Find the best labels of the tokens begin:end; guess: [T], out; see `perceptron_pass`."""
    padded = pairs.shape[1]
    scores, best, result = vectors[0], vectors[1], vectors[2]
    first = begin - begin  # a literal 0 would compile `add_pairs` once more
    loaded = -1
    for t in range(begin, end):
        fill(scores, 0, padded, 0.0)
        add_scores(
            scores,
            tok_rows,
            tok_ptr[t],
            tok_ptr[t + 1],
            n_labels,
            row_ptr,
            row_labels,
            theta[:split],
        )
        c = token_context[t]
        if c != loaded:
            loaded = c
            rows = ctx_rows[ctx_ptr[c] : ctx_ptr[c + 1]]
            fill(pairs.reshape(-1), 0, pairs.size, 0.0)
            add_pairs(
                pairs,
                rows,
                first,
                len(rows),
                n_labels,
                n_previous,
                pair_ptr,
                pair_places,
                theta[split:],
            )
        _advance(t == begin, n_labels, pairs, scores, best, back[t - begin], result)
    _best_labels(end - begin, n_labels, best, back, guess)


@inner
def _learn(
    begin: int,
    end: int,
    step: float,
    count: float,
    n_labels: int,
    padded: int,
    labels: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    token_context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    split: int,
    theta: np.ndarray,
    moves: np.ndarray,
    guess: np.ndarray,
) -> int:
    """Move the weights of the tokens begin:end from a guess [T] to the gold labels.

    step: of each weight; count: of visits before. RETURNS: tokens whose label was guessed wrong.
    """
    pair_theta, pair_moves = theta[split:], moves[split:]
    n_wrong = 0
    for t in range(begin, end):
        gold, mine = labels[t], guess[t - begin]
        gold_before = n_labels if t == begin else labels[t - 1]
        before = n_labels if t == begin else guess[t - begin - 1]
        if gold != mine:
            n_wrong += 1
            rows = tok_rows[tok_ptr[t] : tok_ptr[t + 1]]
            _move(step, count, rows, row_ptr, row_labels, gold, theta, moves)
            _move(-step, count, rows, row_ptr, row_labels, mine, theta, moves)
        if gold != mine or gold_before != before:
            c = token_context[t]
            rows = ctx_rows[ctx_ptr[c] : ctx_ptr[c + 1]]
            place = gold_before * padded + gold
            _move(step, count, rows, pair_ptr, pair_places, place, pair_theta, pair_moves)
            place = before * padded + mine
            _move(-step, count, rows, pair_ptr, pair_places, place, pair_theta, pair_moves)
    return n_wrong


@kernel
def perceptron_pass(
    order: np.ndarray,
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    labels: np.ndarray,
    sequence_weights: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    token_context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    split: int,
    theta: np.ndarray,
    moves: np.ndarray,
    count: int,
    pairs: np.ndarray,
    vectors: np.ndarray,
    back: np.ndarray,
    guess: np.ndarray,
) -> int:
    """Pass over complete sequences once: theta += w (F(x, gold) - F(x, best labels)).

    order: [n] int64; theta: [K], in and out; moves: [K], in and out, sum of the changes, each
    times the number of visits before it, of which `count` are before this pass: the mean of the
    weights after each of m visits is theta - moves / m. Workspaces: pairs [Y + 1, Yp], vectors
    [3, Yp], back [T, Yp] int64, guess [T] int64. The rest: see `forward_backward` and
    `collect_rows`.
    RETURNS: tokens whose best label was not gold.
    """
    n_wrong = 0
    for visit in range(len(order)):
        s = order[visit]
        begin, end = offsets[s], offsets[s + 1]
        _decode(
            begin,
            end,
            n_labels,
            n_previous,
            tok_ptr,
            tok_rows,
            row_ptr,
            row_labels,
            token_context,
            ctx_ptr,
            ctx_rows,
            pair_ptr,
            pair_places,
            split,
            theta,
            pairs,
            vectors,
            back,
            guess,
        )
        n_wrong += _learn(
            begin,
            end,
            sequence_weights[s],
            float(count + visit),
            n_labels,
            pairs.shape[1],
            labels,
            tok_ptr,
            tok_rows,
            row_ptr,
            row_labels,
            token_context,
            ctx_ptr,
            ctx_rows,
            pair_ptr,
            pair_places,
            split,
            theta,
            moves,
            guess,
        )
    return n_wrong
