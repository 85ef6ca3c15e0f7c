"""The package's chain recursion and gradient, compared with the same in plain C.

Both sides must return the same log Z, and the same gradient of the unigram weights. The C code is
compiled here, for this machine and a number of labels; without gcc only the package runs.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from measure.data import Problem
from measure.processes import Cost, alternate, timed
from measure.results import Row
from measure.tables import shown, table
from numpy.typing import NDArray

from spacy_sparsecrf.corpus.csr import Csr
from spacy_sparsecrf.corpus.encoded import CorpusBuilder, Observations
from spacy_sparsecrf.loss.working import WorkingLoss

from .ours import whole_loss
from .record import OURS, Options, Record, find, measurements, middle

Floats = NDArray[np.float64]

SOURCE = Path(__file__).with_name("floor.c")
COMPILER = "gcc"
FLAGS = ("-O3", "-march=native", "-ffast-math")
FLOOR, WHAT, WHOLE = "C", "forward-backward", "gradient of all weights"
# Numbers of labels, and of contexts of label pairs.
CASES = ((22, 1), (51, 1), (51, 1000))
LENGTH = 24
_SEQUENCES, _QUICK_SEQUENCES = 8000, 200
_ATTRIBUTES = 1000


def make_problem(n_labels: int, n_contexts: int, n_sequences: int) -> Problem:
    """Draw sequences of tokens with one random attribute each, and one random pair context."""
    rng, n_tokens = np.random.default_rng(0), n_sequences * LENGTH
    first = _ATTRIBUTES + 1
    own = rng.integers(1, first, n_tokens, dtype=np.uint64)
    contexts = rng.integers(first, first + n_contexts, n_tokens, dtype=np.uint64)
    hashes = np.stack([own, contexts], axis=1)
    offsets = np.arange(0, n_tokens + 1, LENGTH, dtype=np.int64)
    unigram, bigram = np.array([[0], [1]], np.int32)
    builder = CorpusBuilder()
    builder.add(
        Observations(hashes, offsets, unigram, bigram, start_label=False),
        rng.integers(0, n_labels, n_tokens, dtype=np.int32),
    )
    name = f"{n_labels} labels" + (f", {n_contexts:,} contexts" if n_contexts > 1 else "")
    return Problem(name, builder.build(), tuple(map(str, range(n_labels))))


class Chains:
    """Sequences and weights as arrays for the C code, and its results.

    scores: [N, Yp] float64, 0 until filled; context: [N] int32; pairs: [C, Y, Yp], psi(y', y), and
    transposed: psi(y, y'), with padding 0; evidence, alpha, marginals: [N, Yp] and log_z: [S],
    computed by `infer`; unigram: [O Y], gradient of the unigram weights, and counts: [Y, Yp],
    expected label pairs, computed by `differentiate`, which requires a single context. theta: all
    weights, unigram weights first.
    """

    def __init__(self, problem: Problem, theta: Floats, directory: Path) -> None:
        corpus, n = problem.corpus, problem.n_labels
        padded = -(-n // 8) * 8
        self.corpus, self.theta, weights = corpus, theta, theta.reshape(-1, n)
        self.code = compile_floor(n, padded, directory)
        self.scores, self.evidence, self.alpha, self.marginals = np.zeros(
            (4, corpus.n_tokens, padded)
        )
        self.log_z = np.zeros(corpus.n_sequences)
        potentials = np.exp(weights[len(corpus.unigram_keys) :]).reshape(-1, n, n)
        self.pairs, self.transposed = np.zeros((2, len(potentials), n, padded))
        self.pairs[..., :n], self.transposed[..., :n] = potentials, potentials.transpose(0, 2, 1)
        # A context is one attribute, or none at the start of a sequence, where it is never read.
        found = np.append(corpus.ctx_indices, 0)[corpus.ctx_indptr[corpus.context]]
        self.context = found.astype(np.int32)
        self.own = Csr(corpus.uni_indptr, corpus.uni_indices)
        self.tokens = self.own.transposed(len(corpus.unigram_keys))
        self.unigram = np.zeros(len(corpus.unigram_keys) * n)
        self.counts = np.zeros((n, padded))

    def fill(self) -> None:
        """Fill the scores of tokens that have one attribute each."""
        n = self.pairs.shape[1]
        self.scores[:, :n] = self.theta.reshape(-1, n)[self.corpus.uni_indices]

    def infer(self) -> None:
        """Compute evidence, forward vectors, marginals and log Z of all sequences."""
        given = self.corpus.offsets, self.scores, self.context, self.pairs, self.transposed
        filled = self.evidence, self.alpha, self.marginals, self.log_z
        self._call("forward_backward", len(self.log_z), *given, *filled)

    def differentiate(self) -> None:
        """Compute the gradient of all weights."""
        own, tokens, corpus = self.own, self.tokens, self.corpus
        self._call("sum_weights", len(own), own.indptr, own.indices, self.theta, self.scores)
        self.infer()
        pairs = corpus.offsets, self.alpha, self.evidence, self.pairs, self.counts
        self._call("sum_pairs", corpus.n_sequences, *pairs)
        self._call("subtract_gold", corpus.n_tokens, corpus.labels, self.marginals)
        sums = tokens.indptr, tokens.indices, self.marginals, self.unigram
        self._call("sum_residuals", len(tokens), *sums)

    def _call(self, name: str, n: int, *arrays: NDArray[Any]) -> None:
        function = getattr(self.code, name)
        function.restype = None
        function(ctypes.c_int64(n), *(ctypes.c_void_p(array.ctypes.data) for array in arrays))


def compile_floor(n_labels: int, padded: int, directory: Path) -> ctypes.CDLL:
    """Compile the C side for a number of labels."""
    path = directory / f"floor-{n_labels}.so"
    sizes, compiled = (f"-DLABELS={n_labels}", f"-DPADDED={padded}"), path.with_suffix(".o")
    subprocess.run([COMPILER, *FLAGS, "-fPIC", *sizes, "-c", SOURCE, "-o", compiled], check=True)
    # With -ffast-math, gcc would link code that flushes subnormals to 0 in the whole process.
    subprocess.run([COMPILER, "-shared", compiled, "-o", path, "-lm"], check=True)
    return ctypes.CDLL(str(path))


def infer_ours(working: WorkingLoss, theta: Floats) -> Floats:
    """Compute the package's evidence, recursion and residuals of all sequences, no gradient.

    working: a loss evaluated at theta, [K] float64. RETURNS: log Z of the sequences, [S] float64,
    sorted, because the package reorders sequences.
    """
    for i in range(len(working.space.shards)):
        working.infer(theta, i)
    return np.sort(working.space.log_z)


def compare(record: Record, problem: Problem, what: str, repeats: int) -> None:
    """Time both sides on a problem. RAISES: ValueError if their results differ."""
    working, theta = whole_loss(problem, 1, 1.0 if what == WHAT else 1e-2)
    infer = partial(infer_ours, working, theta)
    # The gradient is returned for reuse, as a solver does.
    gradient = partial(lambda: working.value_and_grad(theta)[0])
    sides: dict[str, Callable[[], object]] = {OURS: infer if what == WHAT else gradient}
    with TemporaryDirectory() as directory:
        if shutil.which(COMPILER):
            chains = Chains(problem, theta, Path(directory))
            if what == WHAT:
                chains.fill()
                chains.infer()
                sides[FLOOR] = chains.infer
                ours, plain = infer(), np.sort(chains.log_z)
            else:
                chains.differentiate()
                sides[FLOOR] = chains.differentiate
                plain = chains.unigram
                ours = working.value_and_grad(theta)[1][: len(plain)]
            limits = {"rtol": 1e-10, "atol": 0.0} if what == WHAT else {"rtol": 1e-8, "atol": 1e-8}
            if not np.allclose(ours, plain, **limits):
                raise ValueError(f"{problem.name}: {what} in {FLOOR} is not the package's.")
        runs: dict[str, Callable[[], Cost]] = {k: partial(timed, side) for k, side in sides.items()}
        costs = alternate(repeats, runs)
    record.compare(problem.name, what, costs, items=problem.corpus.n_tokens)


def measure(options: Options) -> None:
    """Time both sides alternately."""
    corpus = "conll2000-sample" if options.quick else "conll2000"
    n_sequences = _QUICK_SEQUENCES if options.quick else _SEQUENCES
    repeats = options.times(7)
    settings = {"repeats": repeats, "sequences": n_sequences, "tokens each": LENGTH}
    record = options.record("floor", **settings)
    for n_labels, n_contexts in CASES:
        compare(record, make_problem(n_labels, n_contexts, n_sequences), WHAT, repeats)
    compare(record, Problem.load(options.corpus(corpus)), WHOLE, repeats)
    if not shutil.which(COMPILER):
        record.remark(f"{COMPILER} was not on PATH: {FLOOR} was left out.")


def tables(rows: list[Row], absent: list[str]) -> list[str]:
    """Return a table of microseconds per token, and the ratio of our time to that of C."""
    lines = []
    for data, what in dict.fromkeys((row["data"], row["what"]) for row in measurements(rows)):
        sides = [find(rows, data, what, tool) for tool in (OURS, FLOOR)]
        ours, plain = (side and middle(side) / side["items"] * 1e6 for side in sides)
        times = f"{ours / plain:.1f}x" if ours and plain else ""
        name = data if what == WHAT else f"{data}, {what}"
        lines.append([name, shown(ours), shown(plain), times])
    return [table(["us a token", OURS, FLOOR, "ours / C"], lines)]
