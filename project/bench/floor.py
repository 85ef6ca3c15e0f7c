"""Benchmark 11: the package's recursion over a chain beside the same one in plain C, on one thread.

Sequences of 24 tokens with one test each, and one matrix of pair potentials, or one for each of
many contexts, in float64. `floor.c` is given the scores and the potentials; the package looks up
one row of weights for each token, and makes the potentials. Both compute forward and backward
vectors, marginals and log Z, which must be the same. The C side is compiled here, for this machine
and this number of labels; without gcc the package runs alone.

Then the gradient of all weights of a real corpus beside the same in plain C, of which the weights
of tests must be the same: how far a program that does nothing else is ahead of the peers here.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from wasabi import msg

from spacy_sparsecrf.corpus.encoded import CorpusBuilder, Observations
from spacy_sparsecrf.loss.lattice import Csr
from spacy_sparsecrf.loss.working import WorkingLoss

from .data import Problem, load
from .measurements import OURS, Record
from .options import Corpora, Output, Quick, Repeats
from .ours import chain_loss, small_weights
from .timing import Cost, alternate, measured

Floats = NDArray[np.float64]

SOURCE = Path(__file__).with_name("floor.c")
COMPILER = "gcc"
FLAGS = ("-O3", "-march=native", "-ffast-math")
FLOOR, WHAT, WHOLE = "C", "forward-backward", "gradient of all weights"
# Labels, and contexts of pairs of labels.
CASES = ((22, 1), (51, 1), (51, 1000))
LENGTH = 24
_SEQUENCES, _QUICK_SEQUENCES = 8000, 200
_TESTS = 1000


@dataclass
class Chains:
    """Sequences with weights, as arrays that C reads.

    offsets: [S + 1] int64; scores: [N, Yp]; context: [N] int32; pairs: [C, Y, Yp], psi(y', y),
    transposed: the same of psi(y, y'), padding 0; evidence, alpha, marginals: [N, Yp] and log_z:
    [S], to be filled. All others are float64.
    """

    offsets: NDArray[np.int64]
    scores: Floats
    context: NDArray[np.int32]
    pairs: Floats
    transposed: Floats
    log_z: Floats
    evidence: Floats = field(init=False)
    alpha: Floats = field(init=False)
    marginals: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.evidence, self.alpha, self.marginals = (np.zeros_like(self.scores) for _ in range(3))


def make_problem(n_labels: int, n_contexts: int, n_sequences: int) -> Problem:
    """Random sequences: each token has one of many tests, and one of some for pairs of labels."""
    rng, n_tokens = np.random.default_rng(0), n_sequences * LENGTH
    tests = rng.integers(1, _TESTS + 1, n_tokens, dtype=np.uint64)
    contexts = rng.integers(_TESTS + 1, _TESTS + 1 + n_contexts, n_tokens, dtype=np.uint64)
    hashes = np.stack([tests, contexts], axis=1)
    offsets = np.arange(0, n_tokens + 1, LENGTH, dtype=np.int64)
    unigram, bigram = np.array([[0], [1]], np.int32)
    builder = CorpusBuilder()
    builder.add(
        Observations(hashes, offsets, unigram, bigram, start_label=False),
        rng.integers(0, n_labels, n_tokens, dtype=np.int32),
    )
    name = f"{n_labels} labels" + (f", {n_contexts:,} contexts" if n_contexts > 1 else "")
    return Problem(name, builder.build(), tuple(map(str, range(n_labels))))


def padded(n_labels: int) -> int:
    """The next multiple of 8."""
    return -(-n_labels // 8) * 8


def make_chains(problem: Problem, theta: Floats) -> Chains:
    """What C is given of tokens with one test each; theta: all weights, those of tests first."""
    corpus, n = problem.corpus, problem.n_labels
    chains = without_scores(problem, theta)
    chains.scores[:, :n] = theta.reshape(-1, n)[corpus.uni_indices]
    return chains


def without_scores(problem: Problem, theta: Floats) -> Chains:
    """What C is given, but scores, which are 0; see `make_chains`."""
    corpus, n = problem.corpus, problem.n_labels
    weights = theta.reshape(-1, n)
    scores = np.zeros((corpus.n_tokens, padded(n)))
    potentials = np.exp(weights[len(corpus.unigram_keys) :]).reshape(-1, n, n)
    pairs, transposed = np.zeros((2, len(potentials), n, padded(n)))
    pairs[..., :n], transposed[..., :n] = potentials, potentials.transpose(0, 2, 1)
    # A context is one test, or none where a sequence begins, which nobody reads.
    tests = np.append(corpus.ctx_indices, 0)[corpus.ctx_indptr[corpus.context]].astype(np.int32)
    given = corpus.offsets, scores, tests, pairs, transposed
    return Chains(*given, np.zeros(corpus.n_sequences))


def compile_floor(n_labels: int, directory: Path) -> ctypes.CDLL | None:
    """The C side for a number of labels; None, and a word of it, where gcc is not on PATH."""
    compiler = shutil.which(COMPILER)
    if compiler is None:
        msg.warn(f"{COMPILER} is not on PATH: {FLOOR} is left out")
        return None
    path = directory / f"floor-{n_labels}.so"
    sizes = f"-DLABELS={n_labels}", f"-DPADDED={padded(n_labels)}"
    compiled = path.with_suffix(".o")
    subprocess.run([compiler, *FLAGS, "-fPIC", *sizes, "-c", SOURCE, "-o", compiled], check=True)
    # gcc links -ffast-math with code that switches subnormal numbers off in the whole process.
    subprocess.run([compiler, "-shared", compiled, "-o", path, "-lm"], check=True)
    return ctypes.CDLL(str(path))


def call(function: Any, n: int, *arrays: NDArray[Any]) -> None:
    """Call a function of `floor.c`."""
    function.restype = None
    function(ctypes.c_int64(n), *(ctypes.c_void_p(array.ctypes.data) for array in arrays))


def run_floor(code: ctypes.CDLL, chains: Chains) -> None:
    """Do in C what `run_chain` does."""
    given = chains.offsets, chains.scores, chains.context, chains.pairs, chains.transposed
    filled = chains.evidence, chains.alpha, chains.marginals, chains.log_z
    call(code.forward_backward, len(chains.log_z), *given, *filled)


@dataclass
class Gradient:
    """The gradient of all weights in C, of a corpus with one test for pairs and no start label.

    theta: all potential weights, those of the tests first. unigram: [O, Y], gradient of the
    weights of tests; pairs: [Y, Yp], expected pairs of labels.
    """

    problem: Problem
    theta: Floats

    def __post_init__(self) -> None:
        corpus, n = self.problem.corpus, self.problem.n_labels
        self.tests = Csr(corpus.uni_indptr, corpus.uni_indices)
        self.tokens = self.tests.transposed(len(corpus.unigram_keys))
        self.chains = without_scores(self.problem, self.theta)
        self.unigram = np.zeros(len(corpus.unigram_keys) * n)
        self.pairs = np.zeros((n, padded(n)))

    def run(self, code: ctypes.CDLL) -> None:
        """Evaluate it."""
        corpus, chains = self.problem.corpus, self.chains
        tests, tokens = self.tests, self.tokens
        call(code.sum_weights, len(tests), tests.indptr, tests.indices, self.theta, chains.scores)
        run_floor(code, chains)
        pairs = chains.offsets, chains.alpha, chains.evidence, chains.pairs, self.pairs
        call(code.sum_pairs, corpus.n_sequences, *pairs)
        call(code.subtract_gold, corpus.n_tokens, corpus.labels, chains.marginals)
        sums = tokens.indptr, tokens.indices, chains.marginals, self.unigram
        call(code.sum_residuals, len(tokens), *sums)


def run_chain(working: WorkingLoss, theta: Floats) -> Floats:
    """The package's evidence, recursion and residuals of all sequences, before any gradient.

    working: a loss that was evaluated at theta, [K] float64. RETURNS: log Z of the sequences, whose
    order is the package's, [S] float64, ascending.
    """
    for i in range(len(working.space.shards)):
        working.infer(theta, i)
    return np.sort(working.space.log_z)


def timed(run: Callable[[], object]) -> Cost:
    """What a call takes."""
    with measured() as cost:
        run()
    return cost


def compare(record: Record, problem: Problem, repeats: int) -> None:
    """Add both sides for a problem. RAISES: ValueError where they do not agree."""
    loss = chain_loss(problem)
    working = loss.restrict(loss.all_coordinates())
    theta = np.random.default_rng(1).normal(size=len(working.coordinates))
    chains = make_chains(problem, theta)
    working.value_and_grad(theta)
    sides: dict[str, Callable[[], object]] = {OURS: lambda: run_chain(working, theta)}
    with TemporaryDirectory() as directory:
        code = compile_floor(problem.n_labels, Path(directory))
        if code is not None:
            run_floor(code, chains)
            found = run_chain(working, theta)
            if not np.allclose(found, np.sort(chains.log_z), rtol=1e-10, atol=0.0):
                raise ValueError(f"{problem.name}: log Z in {FLOOR} is not the package's.")
            sides[FLOOR] = lambda: run_floor(code, chains)
        add(record, problem, WHAT, sides, repeats)


def compare_gradients(record: Record, problem: Problem, repeats: int) -> None:
    """Add both sides for a whole gradient. RAISES: ValueError where they do not agree."""
    loss = chain_loss(problem)
    working = loss.restrict(loss.all_coordinates())
    theta = small_weights(len(working.coordinates))
    # The gradient itself goes, as a solver's does.
    sides: dict[str, Callable[[], object]] = {OURS: lambda: working.value_and_grad(theta)[0]}
    with TemporaryDirectory() as directory:
        code = compile_floor(problem.n_labels, Path(directory))
        if code is not None:
            plain = Gradient(problem, theta)
            plain.run(code)
            found = working.value_and_grad(theta)[1][: len(plain.unigram)]
            if not np.allclose(found, plain.unigram, rtol=1e-8, atol=1e-8):
                raise ValueError(f"{problem.name}: the gradient in {FLOOR} is not the package's.")
            sides[FLOOR] = lambda: plain.run(code)
        add(record, problem, WHOLE, sides, repeats)


def add(
    record: Record,
    problem: Problem,
    what: str,
    sides: dict[str, Callable[[], object]],
    repeats: int,
) -> None:
    """Time sides in turn, and add them."""
    runs = {tool: lambda side=side: timed(side) for tool, side in sides.items()}
    costs = alternate(repeats, runs)
    record.add(problem.name, what, costs, items=problem.corpus.n_tokens)


def main(output: Output, corpora: Corpora, repeats: Repeats = 7, quick: Quick = False) -> None:
    """Time both sides in turn."""
    corpus = "conll2000-sample" if quick else "conll2000"
    repeats, n_sequences = (1, _QUICK_SEQUENCES) if quick else (repeats, _SEQUENCES)
    settings = {"repeats": repeats, "sequences": n_sequences, "tokens each": LENGTH}
    record = Record("floor", quick, settings)
    for n_labels, n_contexts in CASES:
        compare(record, make_problem(n_labels, n_contexts, n_sequences), repeats)
    compare_gradients(record, load(corpora / f"{corpus}.npz"), repeats)
    if shutil.which(COMPILER) is None:
        record.remarks.append(f"{COMPILER} was not on PATH: {FLOOR} was left out.")
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
