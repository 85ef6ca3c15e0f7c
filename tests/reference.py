"""Slow reference implementations: enumeration of label sequences, and the plain decoder.

Weights are dense: `mu` [O, Y] and `lam` [O, P, Y], with P = Y + 1 if there is a start label.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy.special import logsumexp

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.crf.penalty import ElasticNet

from .support.plain_chain import PlainChain

Path = tuple[int, ...]
ProblemT = TypeVar("ProblemT", bound="Problem")
VALUE_KEYS = np.arange(1, 100, dtype=np.uint64) << np.uint64(40)


def overlap_groups(
    gold: Sequence[tuple[int, int, str]], predicted: Sequence[tuple[int, int, str]]
) -> list[tuple[tuple[tuple[int, int, str], ...], ...]]:
    """Return the gold and predicted spans connected by shared tokens: merge until none share one.

    Spans: (first token, end, label), ascending.
    """
    groups = [{(side, span)} for side, spans in enumerate((gold, predicted)) for span in spans]

    def tokens(group: set[tuple[int, tuple[int, int, str]]]) -> set[int]:
        return {t for _, (start, end, _) in group for t in range(start, end)}

    while pairs := [(a, b) for a, b in itertools.combinations(groups, 2) if tokens(a) & tokens(b)]:
        a, b = pairs[0]
        groups = [group for group in groups if group not in (a, b)] + [a | b]
    return [
        tuple(tuple(sorted(span for own, span in group if own == side)) for side in (0, 1))
        for group in sorted(groups, key=lambda group: min(tokens(group)))
    ]


def random_observations(
    rng: np.random.Generator,
    lengths: Sequence[int],
    *,
    n_values: int = 3,
    n_unigram: int = 2,
    n_bigram: int = 2,
    start_label: bool = True,
) -> Observations:
    """Return random features; a fifth is missing, and the last bigram column is always active.

    The first two columns are a family.
    """
    n = sum(lengths)
    width = n_unigram + n_bigram
    hashes = rng.integers(1, n_values + 1, (n, width)).astype(np.uint64)
    hashes += np.arange(width, dtype=np.uint64) * np.uint64(1000)
    hashes[rng.random((n, width)) < 0.2] = 0
    if n_bigram:
        hashes[:, -1] = 99
    return Observations(
        hashes=hashes,
        offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        unigram_columns=np.arange(n_unigram, dtype=np.int32),
        bigram_columns=np.arange(n_unigram, width, dtype=np.int32),
        start_label=start_label,
        families=(np.arange(width) < 2).astype(np.uint8),
    )


@dataclass
class Problem:
    """A corpus with dense weights for every potential coordinate; valid: mask, see `is_valid`."""

    corpus: EncodedCorpus
    n_labels: int
    theta: np.ndarray
    valid: np.ndarray | None = None

    @property
    def n_previous(self) -> int:
        return self.n_labels + int(self.corpus.start_label)

    @property
    def mu(self) -> np.ndarray:
        n = len(self.corpus.unigram_keys) * self.n_labels
        return self.theta[:n].reshape(-1, self.n_labels)

    @property
    def lam(self) -> np.ndarray:
        n = len(self.corpus.unigram_keys) * self.n_labels
        return self.theta[n:].reshape(-1, self.n_previous, self.n_labels)

    def sequences(self) -> list[range]:
        offsets = self.corpus.offsets
        return [range(a, b) for a, b in itertools.pairwise(offsets)]

    def weighted_sequences(self) -> Iterator[tuple[range, float]]:
        return zip(self.sequences(), self.corpus.weights, strict=True)

    def unigram_tests(self, t: int) -> np.ndarray:
        return self.corpus.uni_indices[self.corpus.uni_indptr[t] : self.corpus.uni_indptr[t + 1]]

    def bigram_tests(self, t: int) -> np.ndarray:
        c = self.corpus.context[t]
        return self.corpus.ctx_indices[self.corpus.ctx_indptr[c] : self.corpus.ctx_indptr[c + 1]]

    def log_potential(self, t: int, previous: int, label: int) -> float:
        """Return log psi_t(y', y); y' = Y is the start label."""
        total = sum(self.mu[o, label] for o in self.unigram_tests(t))
        if previous < self.n_previous:
            total += sum(self.lam[o, previous, label] for o in self.bigram_tests(t))
        return total

    def score(self, tokens: range, path: tuple[int, ...]) -> float:
        previous = (self.n_labels, *path[:-1])
        return sum(
            self.log_potential(t, a, b) for t, a, b in zip(tokens, previous, path, strict=True)
        )

    def counts(self, tokens: range, path: tuple[int, ...]) -> np.ndarray:
        """Return F(x, y), dense over all coordinates."""
        total = Problem(self.corpus, self.n_labels, np.zeros_like(self.theta))
        previous = (self.n_labels, *path[:-1])
        for t, a, b in zip(tokens, previous, path, strict=True):
            self.count(t, a, b, 1.0, total)
        return total.theta

    def count(self, t: int, previous: int, label: int, weight: float, total: Problem) -> None:
        """Add a weight to the coordinates of the active features of a token, given its labels."""
        for o in self.unigram_tests(t):
            total.mu[o, label] += weight
        if previous < self.n_previous:
            for o in self.bigram_tests(t):
                total.lam[o, previous, label] += weight

    def weights_of(self, tokens: range) -> np.ndarray:
        """Return whether weights are of features of these tokens, dense over all coordinates."""
        total = Problem(self.corpus, self.n_labels, np.zeros_like(self.theta))
        for t in tokens:
            total.mu[self.unigram_tests(t)] = total.lam[self.bigram_tests(t)] = 1.0
        return total.theta != 0.0

    def paths(self, tokens: range, agree: bool = False) -> list[tuple[int, ...]]:
        """Return all valid label sequences; if `agree`, only those that agree with gold labels."""
        choices = [self.gold(t) if agree else range(self.n_labels) for t in tokens]
        return [path for path in itertools.product(*choices) if self.is_valid(path)]

    def gold(self, t: int) -> Sequence[int]:
        """Return the labels that the gold annotation of a token allows."""
        label = int(self.corpus.labels[t])
        if label >= 0:
            return [label]
        if label == -1:
            return range(self.n_labels)
        return np.flatnonzero(self.corpus.sets[-2 - label]).tolist()

    def is_valid(self, path: tuple[int, ...]) -> bool:
        around = (self.n_labels, *path, self.n_labels)
        return self.valid is None or all(self.valid[a, b] for a, b in itertools.pairwise(around))

    def pair_marginals(self, tokens: range, agree: bool = False) -> tuple[float, np.ndarray]:
        """Return log Z, and p(y', y) of each token, [T, Y + 1, Y], by enumeration of all paths."""
        n, steps = self.n_labels, np.arange(len(tokens))
        table = [
            [[self.log_potential(t, a, b) for b in range(n)] for a in range(n + 1)] for t in tokens
        ]
        paths = np.array(self.paths(tokens, agree)).reshape(-1, len(tokens))
        taken = steps, np.column_stack((np.full(len(paths), n), paths[:, :-1])), paths
        scores = np.array(table)[taken].sum(axis=1)
        log_z = float(logsumexp(scores))
        pairs = np.zeros((len(tokens), n + 1, n))
        np.add.at(pairs, taken, np.exp(scores - log_z)[:, None])
        return log_z, pairs

    def log_z(self, tokens: range, agree: bool = False) -> float:
        return self.pair_marginals(tokens, agree)[0]

    def expected(self, tokens: range, agree: bool = False) -> np.ndarray:
        """Return E F(x, y), a sum over tokens."""
        total = Problem(self.corpus, self.n_labels, np.zeros_like(self.theta))
        pairs = self.pair_marginals(tokens, agree)[1]
        for i, a, b in np.argwhere(pairs):
            self.count(tokens[i], a, b, pairs[i, a, b], total)
        return total.theta

    def contents(self) -> tuple[Hashable, ...]:
        """Return a hashable key of all arrays of this problem."""
        arrays = {**self.corpus.arrays, "theta": self.theta, "valid": np.asarray(self.valid)}
        own = [(name, array.dtype.str, array.tobytes()) for name, array in arrays.items()]
        return type(self), self.n_labels, *own

    def loss(self) -> tuple[float, np.ndarray]:
        """Return weighted negative log-likelihood and gradient, marginalising missing labels."""
        value, gradient = 0.0, np.zeros_like(self.theta)
        for tokens, weight in zip(self.sequences(), self.corpus.weights, strict=True):
            if len(tokens):
                value += weight * (self.log_z(tokens) - self.log_z(tokens, agree=True))
                gradient += weight * (self.expected(tokens) - self.expected(tokens, agree=True))
        return value, gradient

    def marginals(self, tokens: range) -> np.ndarray:
        return self.pair_marginals(tokens)[1].sum(axis=1)

    def chain(self, tokens: range) -> PlainChain:
        """Return the plain decoder of a sequence, for long ones; all labels are valid."""
        unary = [self.mu[self.unigram_tests(t)].sum(axis=0).tolist() for t in tokens]
        start = np.zeros((self.n_labels + 1 - self.n_previous, self.n_labels))
        pairs = [
            np.concatenate((self.lam[self.bigram_tests(t)].sum(axis=0), start)).tolist()
            for t in tokens
        ]
        return PlainChain(unary, pairs)


def local_log_probabilities(problem: Problem, t: int, previous: int, pairs: bool) -> np.ndarray:
    """Return log p(y | y', x, t) of all y."""
    n = problem.n_labels
    scores = [problem.log_potential(t, previous if pairs else n + 1, y) for y in range(n)]
    return np.array(scores - logsumexp(scores))


def with_before(problem: Problem) -> Iterator[tuple[int, int, float]]:
    """Yield tokens with the label before, -1 if it is unknown, and the weight of the sequence."""
    for tokens, weight in problem.weighted_sequences():
        for t in tokens:
            yield t, problem.n_labels if t == tokens[0] else problem.corpus.labels[t - 1], weight


def local_loss(problem: Problem, pairs: bool) -> tuple[float, np.ndarray]:
    """Return the loss and its gradient, dense over the chain's coordinates."""
    value = 0.0
    total = Problem(problem.corpus, problem.n_labels, np.zeros_like(problem.theta))
    for t, previous, weight in with_before(problem):
        gold = problem.corpus.labels[t]
        if gold < 0 or (pairs and previous < 0):
            continue
        log_p = local_log_probabilities(problem, t, previous, pairs)
        value -= weight * log_p[gold]
        residual = weight * (np.exp(log_p) - np.eye(problem.n_labels)[gold])
        for o in problem.unigram_tests(t):
            total.mu[o] += residual
        for o in problem.bigram_tests(t) if pairs else ():
            if previous < problem.n_previous:
                total.lam[o, previous] += residual
    return value, total.theta


def sgd_l1_pass(
    problem: Problem,
    state: tuple[np.ndarray, np.ndarray, float],
    order: np.ndarray,
    etas: np.ndarray,
    penalty: ElasticNet,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Apply Tsuruoka 2009, figure 2, with lazy l2 decay: a step and a clip of each weight a visit.

    state: weights theta, penalty that each has received, and penalty due; order: sequences.
    """
    (theta, received, due), n = state, len(order)
    theta, received = theta.copy(), received.copy()
    shrunk, decayed = np.zeros_like(theta), 0.0
    for i, eta in [*zip(order, etas, strict=True), (None, 0.0)]:
        due, decayed = due + eta * penalty.l1 / n, decayed + eta * penalty.l2 / n
        # In the end, all weights receive what is due.
        used, gradient = np.ones_like(theta, dtype=bool), np.zeros_like(theta)
        if i is not None:
            here, tokens = Problem(problem.corpus, problem.n_labels, theta), problem.sequences()[i]
            gradient = here.expected(tokens) - here.expected(tokens, agree=True)
            used = problem.weights_of(tokens)
        for k in np.flatnonzero(used):
            w = theta[k] - eta * problem.corpus.weights[i or 0] * gradient[k]
            w *= np.exp(shrunk[k] - decayed)
            shrunk[k] = decayed
            theta[k] = w
            if w > 0.0:
                theta[k] = max(0.0, w - (due + received[k]))
            elif w < 0.0:
                theta[k] = min(0.0, w + (due - received[k]))
            received[k] += theta[k] - w
    return theta, received, due


def random_problem(
    seed: int,
    n_labels: int,
    lengths: list[int],
    *,
    missing: float = 0.0,
    weighted: bool = False,
    scale: float = 1.0,
    n_real: int = 0,
    of: type[ProblemT] = Problem,  # type: ignore[assignment]
    **kwargs: object,
) -> tuple[ProblemT, Observations]:
    """Draw a random corpus and weights.

    missing: share of tokens without a gold label; n_real: number of real-valued features; of: the
    class of the problem.
    """
    rng = np.random.default_rng(seed)
    observations = random_observations(rng, lengths, **kwargs)  # type: ignore[arg-type]
    if n_real:
        values = rng.normal(size=(sum(lengths), n_real)).astype(np.float32)
        values[rng.random(values.shape) < 1 / 3] = 0.0
        observations = replace(observations, values=values, value_keys=VALUE_KEYS[:n_real])
    labels = rng.integers(0, n_labels, sum(lengths)).astype(np.int32)
    labels[rng.random(len(labels)) < missing] = -1
    builder = CorpusBuilder()
    weights = rng.uniform(0.5, 2.0, len(lengths)) if weighted else None
    builder.add(observations, labels, weights)
    corpus = builder.build()
    theta = scale * rng.normal(size=corpus.n_potential(n_labels))
    return of(corpus, n_labels, theta), observations


def bfgs_inverse(steps: np.ndarray, changes: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """Return BFGS's inverse Hessian as a matrix, for pairs [m, K], oldest first."""
    pairs = [(s, y) for s, y in zip(steps, changes, strict=True) if s @ y > 1e-10 * (y @ y)]
    inverse = np.diag(metric)
    if pairs:
        s, y = pairs[-1]
        inverse = inverse * (s @ y) / (y @ (metric * y))
    for s, y in pairs:
        left = np.eye(len(s)) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    return inverse


@dataclass
class ToyGraph:
    """A graph with numbers at nodes [n, F] and edges [m, G]; labels: gold labels, -1 = missing."""

    nodes: np.ndarray
    edges: list[tuple[int, int]]
    numbers: np.ndarray
    labels: np.ndarray
    n_labels: int

    @property
    def paths(self) -> np.ndarray:
        """All labellings, [L, n]."""
        return np.array(list(itertools.product(range(self.n_labels), repeat=len(self.nodes))))

    def counts(self, paths: np.ndarray) -> np.ndarray:
        """Return F(x, y) of labellings, [L, K]: of nodes [F, Y], then of edges [G, Y, Y]."""
        labels = np.eye(self.n_labels)[paths]
        unary = np.einsum("if,liy->lfy", self.nodes, labels)
        pairs = np.zeros((len(paths), self.numbers.shape[1], self.n_labels, self.n_labels))
        for (i, j), x in zip(self.edges, self.numbers, strict=True):
            pairs += np.einsum("g,la,lb->lgab", x, labels[:, i], labels[:, j])
        return np.hstack((unary.reshape(len(paths), -1), pairs.reshape(len(paths), -1)))

    def agreeing(self) -> np.ndarray:
        """Return the labellings that agree with the known gold labels."""
        known = self.labels >= 0
        return self.paths[(self.paths[:, known] == self.labels[known]).all(axis=1)]

    def log_z(self, theta: np.ndarray, paths: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log of the sum over labellings, and the expected counts."""
        counts = self.counts(paths)
        log_z = float(logsumexp(counts @ theta))
        return log_z, np.exp(counts @ theta - log_z) @ counts

    def loss(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the negative log-likelihood of the gold labels, and its gradient."""
        (all_z, expected), (gold_z, observed) = (
            self.log_z(theta, paths) for paths in (self.paths, self.agreeing())
        )
        return all_z - gold_z, expected - observed

    def pseudo_loss(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return minus the log pseudo-likelihood (Vishwanathan 2006, eq. 13), and its gradient."""
        value, gradient = 0.0, np.zeros_like(theta)
        gold = self.counts(self.labels[None])[0]
        for i in range(len(self.nodes)):
            others = np.repeat(self.labels[None], self.n_labels, axis=0)
            others[:, i] = np.arange(self.n_labels)
            log_z, expected = self.log_z(theta, others)
            value += log_z - gold @ theta
            gradient += expected - gold
        return value, gradient

    def marginals(self, theta: np.ndarray) -> np.ndarray:
        """Return p(y_i), [n, Y]."""
        scores = self.counts(self.paths) @ theta
        p = np.exp(scores - logsumexp(scores))
        return np.einsum("l,liy->iy", p, np.eye(self.n_labels)[self.paths])


def random_graph(
    rng: np.random.Generator,
    n: int,
    edges: list[tuple[int, int]],
    n_labels: int,
    missing: float = 0,
) -> ToyGraph:
    """Draw a graph with two numbers at each node and edge; about 20 % of edge numbers are zero."""
    labels = np.where(rng.random(n) < missing, -1, rng.integers(0, n_labels, n))
    nodes, numbers = rng.normal(size=(n, 2)), rng.normal(size=(len(edges), 2))
    return ToyGraph(nodes, edges, numbers * (rng.random(numbers.shape) < 0.8), labels, n_labels)


def random_tree(rng: np.random.Generator, n: int) -> list[tuple[int, int]]:
    """Return the edges of a random tree or forest of n nodes."""
    names = rng.permutation(n)
    found = [(names[i], names[rng.integers(0, i)]) for i in range(1, n) if rng.random() < 0.9]
    return [(int(a), int(b)) for a, b in found]


def lattice_edges(height: int, width: int) -> list[tuple[int, int]]:
    """Return the edges of a lattice whose nodes are numbered row by row."""
    place = np.arange(height * width).reshape(height, width)
    across = zip(place[:, :-1].ravel().tolist(), place[:, 1:].ravel().tolist(), strict=True)
    down = zip(place[:-1].ravel().tolist(), place[1:].ravel().tolist(), strict=True)
    return [*across, *down]


def tree_sum(values: dict[int, float], first: int, last: int) -> float | None:
    """Return the sum over leaves first:last, over the binary tree that halves the range."""
    if last - first == 1:
        return values.get(first)
    middle = (first + last) // 2
    left, right = tree_sum(values, first, middle), tree_sum(values, middle, last)
    if left is None or right is None:
        return left if right is None else right
    return left + right


def n_repetitions(
    path: Sequence[int], labels: Sequence[str], once: Sequence[str], only_types: bool = False
) -> int:
    """Count the runs of names in a path after the first of each; a type's run is one span."""
    texts, begun = [labels[y] for y in path], []
    for before, text in itertools.pairwise(["", *texts]):
        letter, _, kind = text.partition("-")
        is_inside = letter in ("I", "L", "E") and before in (f"B-{kind}", f"I-{kind}")
        for name in once:
            is_type = only_types or name not in labels
            if is_type and letter in (*"BILUES",) and kind == name and not is_inside:
                begun.append(name)
            if not is_type and text == name != before:
                begun.append(name)
    return len(begun) - len({*begun})


def obeying(
    scores: Mapping[Path, float],
    once: Callable[[Path], int],
    invalid: Callable[[Path], int] = lambda path: 0,
) -> dict[Path, float]:
    """Return the valid paths that repeat no name, the best first.

    scores: of paths; once, invalid: numbers of repetitions and of invalid transitions. If no path
    is valid, or none repeats nothing: the paths with the fewest.
    """
    if any(not invalid(path) for path in scores):
        scores = {path: score for path, score in scores.items() if not invalid(path)}
    costs = {path: (once(path), invalid(path)) for path in scores}
    kept = [path for path in scores if costs[path] == min(costs.values())]
    return {path: scores[path] for path in sorted(kept, key=scores.__getitem__, reverse=True)}
