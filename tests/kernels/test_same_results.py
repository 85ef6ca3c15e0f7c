"""Results are the same compiled and in Python, and on different CPUs.

A `Recorder` replaces a kernel everywhere in the package, also in other kernels. It passes calls of
training and prediction to a check, which repeats them with equal arguments.
"""

import json
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding
from numba import types
from numba.extending import typeof_impl

from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus
from spacy_sparsecrf.crf.kernels import viterbi
from spacy_sparsecrf.crf.kernels.minibatch import SGD
from spacy_sparsecrf.crf.kernels.numba_support import Bound
from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.examples import MinibatchDescent
from spacy_sparsecrf.crf.loss.hessian_products import HessianProduct
from spacy_sparsecrf.crf.loss.wrappers import observed_only
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.pipeline.targets.scheme import span_kernels
from spacy_sparsecrf.tools.cli.warmup import all_kinds, train_and_predict

from ..reference import lattice_edges, random_graph, random_problem
from ..support.compiled_cases import all_kernels
from ..support.layouts import LAYOUTS
from ..support.processes import run_python
from ..support.processors import NATIVE, imitating
from ..support.reference_values import random_value_problem
from ..support.runs import training_of

ROOT = Path(__file__).parents[2]
Check = Callable[[str, Any, tuple[Any, ...]], Any]


class Recorder:
    """A kernel whose calls from Python are passed to a check."""

    def __init__(self, name: str, kernel: Any, check: Check) -> None:
        self.name, self.kernel, self.check = name, kernel, check

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def compile(self, signature: Any) -> Any:
        """Return the recorder itself, for `bind`."""
        return self

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        bound = signature(self.kernel.py_func).bind(*arguments, **named)
        return self.check(self.name, self.kernel, bound.args)


@typeof_impl.register(Recorder)
def _typeof(recorder: Recorder, _: Any) -> types.Dispatcher:
    return types.Dispatcher(recorder.kernel)  # for kernels that call this one


@contextmanager
def recording(check: Check) -> Iterator[None]:
    """Pass each call of a kernel to a check, which must return the kernel's result."""
    recorders = {id(kernel): Recorder(name, kernel, check) for name, kernel in all_kernels()}
    patched = [
        (module, name, value)
        for title, module in list(sys.modules.items())
        if title.startswith("spacy_sparsecrf")
        for name, value in list(vars(module).items())
        if id(value) in recorders
    ]
    bounds = {
        value: value.kernel
        for title, module in list(sys.modules.items())
        if title.startswith("spacy_sparsecrf")
        for value in list(vars(module).values())
        if isinstance(value, Bound)
    }
    for module, name, value in patched:
        setattr(module, name, recorders[id(value)])
    for value, kernel in bounds.items():
        value.kernel, value.code = recorders[id(kernel)], None
    span_kernels.cache_clear()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", SparseCRFWarning)
            yield
    finally:
        for module, name, value in patched:
            setattr(module, name, value)
        for value, kernel in bounds.items():
            value.kernel, value.code = kernel, None
        span_kernels.cache_clear()


class Copies:
    """Copies arguments; arrays that share memory still do in the copies."""

    def __init__(self) -> None:
        self.roots: dict[int, np.ndarray] = {}

    def of(self, value: Any) -> Any:
        """Return a copy of arguments."""
        if isinstance(value, np.ndarray):
            root = value
            while isinstance(root.base, np.ndarray):
                root = root.base
            buffer = self.roots.get(id(root))
            if buffer is None:
                self.roots[id(root)] = buffer = root.copy(order="K")
            begin = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
            return np.ndarray(value.shape, value.dtype, buffer, begin, value.strides)
        if isinstance(value, tuple):
            parts = map(self.of, value)
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value


def arrays_of(value: Any) -> Iterator[np.ndarray]:
    """Yield the arrays and numbers in arguments or results, at any depth."""
    if isinstance(value, tuple):
        for part in value:
            yield from arrays_of(part)
    elif value is not None:
        yield np.asarray(value)


def _chains(corpus: EncodedCorpus, n_labels: int, theta: np.ndarray, precision: str) -> None:
    """Call all methods of a loss, and train."""
    for is_limited in (False, True):
        loss = ChainLoss(corpus, n_labels, Workers(1), precision=precision)
        if is_limited:
            loss = observed_only(loss)
        loss.coordinates("observed")
        working = loss.restrict(loss.coordinates("all"))
        theta = theta[: len(working.coordinates)]
        _, gradient = working.value_and_grad(theta)
        working.curvature(gradient)
        loss.screen(working, theta, 0.3, 10**6)
        product = HessianProduct(working)
        product.prepare(theta)
        product.product(gradient)
    names = [str(y) for y in range(n_labels)]
    training_of(corpus, names, OWLQN(), l1=0.1, l2=0.1, precision=precision).step()


def _graphs() -> None:
    """Evaluate the loss of lattices, of all graphs and of one, by each method of inference."""
    # Imported while kernels are recorded, since a table of methods holds kernels.
    from spacy_sparsecrf.crf.graphs.graph_inference import METHODS, Inference
    from spacy_sparsecrf.crf.graphs.graph_loss import GraphLoss

    from ..support.graph_cases import encoded

    graphs = encoded([random_graph(np.random.default_rng(0), 9, lattice_edges(3, 3), 2)])
    for method in METHODS:
        loss = GraphLoss(graphs, 2, Workers(1), Inference(method=method))
        theta = np.full(loss.n_weights, 0.1)
        _, gradient = loss.value_and_grad(theta)
        loss.curvature(gradient)
        loss.add(loss.sequences, theta, gradient)
        loss.add_product(loss.sequences, theta, theta, gradient, np.zeros_like(theta))
        descent = MinibatchDescent(loss, ElasticNet(0.0, 0.1), 1, SGD, theta, np.zeros_like(theta))
        descent.run(loss.sequences, np.full(len(loss.sequences), 0.1))
    loss.field.infer_all(theta, Workers(1), best=True)


def run_all(precision: str) -> None:
    """Call every kernel that is called from Python."""
    for kind in all_kinds():
        config = {**kind, "learning": {"precision": precision}}
        train_and_predict(config)
    _graphs()
    values, _ = random_value_problem(0, 3, [4, 0, 3], n_real=9)
    _chains(values.corpus, 3, values.theta, precision)
    problem, _ = random_problem(0, 9, [6, 1, 0, 9], missing=0.1, weighted=True, n_values=4)
    _chains(problem.corpus, 9, problem.theta, precision)
    for limits in LAYOUTS.values():
        layout = limits._replace(span=3)
        loss = ChainLoss(problem.corpus, 9, Workers(1), precision=precision, limits=layout)
        loss.restrict(loss.coordinates("all")).value_and_grad(problem.theta)
    rng = np.random.default_rng(0)
    valid, permitted, ends = rng.random((4, 4)) < 0.5, rng.random((9, 3)) < 0.5, np.ones(3, bool)
    viterbi.find_possible(np.array([0, 4, 4, 9]), permitted, valid, ends, np.empty(3, bool))


class InPython:
    """Records the first calls of each kernel, and repeats them compiled and in Python.

    n_kept: number of recorded calls; repeating a kernel also records calls of inner kernels.
    """

    def __init__(self, n_kept: int) -> None:
        self.n_kept = n_kept
        self.kept: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
        self.calls: Counter[str] = Counter()
        self.different: Counter[str] = Counter()
        self._repeats = False

    def __call__(self, name: str, kernel: Any, arguments: tuple[Any, ...]) -> Any:
        """Run a kernel, and record its arguments first."""
        if len(self.kept[name]) < self.n_kept:
            self.kept[name].append((kernel, Copies().of(arguments)))
        # While repeating in Python, inner kernels run in Python too.
        return (kernel.py_func if self._repeats else kernel)(*arguments)

    def repeat(self) -> None:
        """Repeat the calls, and those of inner kernels that repeats record."""
        self._repeats, done = True, -1
        while done < self.calls.total():
            done = self.calls.total()
            for name in list(self.kept):
                for kernel, arguments in self.kept[name][self.calls[name] :]:
                    self._repeat(name, kernel, arguments)

    def _repeat(self, name: str, kernel: Any, arguments: tuple[Any, ...]) -> None:
        given, again = (Copies().of(arguments) for _ in range(2))
        both = (kernel(*given), given), (kernel.py_func(*again), again)
        self.calls[name] += 1
        pairs = zip(*map(arrays_of, both), strict=True)
        self.different[name] += not all(map(has_same_bits, *zip(*pairs, strict=True)))


def has_same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether numbers are the same, including the sign of zero; NaNs are equal."""
    first, second = (np.signbit(x) | np.isnan(x) if x.dtype.kind == "f" else x for x in (a, b))
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(first, second)


def check(precision: str, n_kept: int) -> None:
    in_python = InPython(n_kept)
    with recording(in_python):
        run_all(precision)
        in_python.repeat()
    calls, seconds = in_python.calls, time.process_time()
    sys.stdout.write(f"{precision}: {len(calls)} kernels, {calls.total()} calls, {seconds:.0f} s\n")
    assert [name for name, _ in all_kernels() if not calls[name]] == []
    assert +in_python.different == Counter()


@pytest.mark.usefixtures("everything_compiled")
@pytest.mark.parametrize(
    ("precision", "n_kept"),
    [
        ("float64", 2),
        *(pytest.param(p, 16, marks=pytest.mark.slow) for p in ("float64", "float32")),
    ],
)
def test_kernels_leave_the_same_numbers_compiled_and_in_python(precision, n_kept) -> None:
    # In a new process, because code that is bound to a kernel is kept until the process ends.
    call = f"check({precision!r}, {n_kept})"
    code = f"from tests.kernels.test_same_results import check; {call}"
    sys.stdout.write(run_python("-c", code, cwd=ROOT).stdout)


@pytest.mark.slow
@pytest.mark.skipif(not binding.get_host_cpu_features().get("avx2"), reason="no x86-64-v3")
def test_all_solvers_train_the_same_models_for_processors(tmp_path):
    newest = "skylake-avx512" if binding.get_host_cpu_features().get("avx512vl") else NATIVE
    found = []
    for cpu in ("x86-64-v3", newest):
        done = run_python("-m", "tests.support.processors", env=imitating(cpu, tmp_path))
        found.append(json.loads(done.stdout))
    assert len(found[0]) > 10
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []
