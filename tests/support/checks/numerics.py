"""Checks of losses and solvers, on small random corpora."""

import tempfile
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from spacy_sparsecrf import compatible
from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.crf.corpus.numbering import Floats
from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.per_token import local_corpus
from spacy_sparsecrf.crf.loss.protocols import Function, WorkingLoss
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.solver import BatchSolver, evaluate
from spacy_sparsecrf.crf.training.run import laid_out
from spacy_sparsecrf.crf.training.training import Problem, Training
from spacy_sparsecrf.errors import SparseCRFError

from .facts import is_refused, require_same

_PENALTIES = [(0.3, 0.1), (0.0, 0.5)]
_NONE = (0.0, 0.0)
_N_LABELS = 4
_LENGTHS = [9, 8, 10, 3] * 5
_TOO_LOW = {"inner_iterations": 0, "tolerance": -1.0, "seed": -1}
# Maximum outer iterations to convergence of an exact solver, its tolerance, and OWL-QN's.
_MOST, _TOLERANCE, _PRECISE = 300, 1e-4, 1e-7


@cache
def _problem(n_labels: int) -> tuple[EncodedCorpus, Observations]:
    """Return sequences whose labels depend on one feature, except for a tenth at random."""
    rng, builder = np.random.default_rng(n_labels), CorpusBuilder()
    hashes = rng.integers(1, 9, (sum(_LENGTHS), 4)).astype(np.uint64)
    hashes += np.arange(4, dtype=np.uint64) * np.uint64(1000)
    hashes[rng.random(hashes.shape) < 0.2] = 0
    hashes[:, -1] = 99
    columns, offsets = np.arange(4, dtype=np.int32), np.cumsum([0, *_LENGTHS])
    observations = Observations(hashes, offsets, columns[:2], columns[2:])
    labels = observations.hashes[:, 0] % np.uint64(n_labels)
    other = rng.random(len(labels)) < 0.1
    labels[other] = rng.integers(0, n_labels, int(other.sum()))
    builder.add(observations, labels.astype(np.int32))
    return builder.build(), observations


def check_loss(loss: Function, theta: Floats, rtol: float = 1e-6, atol: float = 1e-8) -> None:
    """Check the gradient of a loss by finite differences, and that evaluation is deterministic.

    `l(theta + d) - l(theta - d) = 2 grad l(theta)' d` is checked for five random directions d.
    If the loss has `curvature`, it must return numbers >= 0.

    Parameters
    ----------
    loss : Function
        A function of K weights, see `crf.solvers.solver.Loss`.
    theta : array [K] float64
        The point.
    rtol : float, default 1e-6
        Relative tolerance.
    atol : float, default 1e-8
        Absolute tolerance.

    Raises
    ------
    AssertionError
        If a check fails; the message has the reason.
    """
    before = theta.copy()
    value, gradient = loss.value_and_grad(theta)
    require_same("it changes the weights", theta, before)
    assert gradient.shape == theta.shape, "the gradient is not [K] float64"
    assert gradient.dtype == np.float64, "the gradient is not [K] float64"
    assert np.isfinite([value, *gradient]).all(), "value or gradient is not finite"
    kept, rng = gradient.copy(), np.random.default_rng(0)
    if (curvature := getattr(loss, "curvature", None)) is not None:
        fact = curvature(gradient)
        assert fact.shape == theta.shape and np.isfinite(fact).all() and (fact >= 0.0).all(), (
            "the curvature is not [K] numbers >= 0"
        )
    for _ in range(5):
        direction = rng.normal(size=len(theta))
        step = 1e-5 * direction / max(float(np.linalg.norm(direction)), 1.0)
        ahead, behind = (loss.value_and_grad(theta + s)[0] for s in (step, -step))
        slope, found = 2.0 * float(kept @ step), ahead - behind
        assert abs(slope - found) <= max(rtol * abs(slope), atol), (
            f"the gradient is not the slope: {slope:.9g} where the loss changes by {found:.9g}"
        )
    again = loss.value_and_grad(theta)
    require_same("it is another at the same weights", [*again], [value, kept])


def check_solver(solver: BatchSolver[Any]) -> None:
    """Check a solver on several problems, skipping unsupported ones.

    It must refuse settings out of range and non-finite start weights. A saved run must resume
    with bit-identical results on any number of threads. The state must be transferable to
    another working set, and the reported objective must match the weights. An `exact` solver
    must reach the minimum of the full problem with a certificate, in at most 300 outer
    iterations, with no weights if l1 is large. Other solvers must learn to label the training
    data.

    Parameters
    ----------
    solver : BatchSolver
        The solver with the settings to check; `tolerance` and `window` are replaced.

    Raises
    ------
    AssertionError
        If a check fails; the message has the reason.
    """
    for key in (field.name for field in fields(solver) if field.init and field.name in _TOO_LOW):
        value = _TOO_LOW[key]
        assert is_refused(replace, solver, **{key: value}), f"it takes {key} = {value}"
    kind = "memm" if "single tokens" in solver.requires else "chain"
    tried = [p for p in _PENALTIES if _check_start(solver, ElasticNet(*p), kind)] or [_NONE]
    taken = tried != [_NONE] or _check_start(solver, ElasticNet(*_NONE), kind)
    assert taken, "it refuses all problems"
    for l1, l2 in tried:
        options = {"l1": l1, "l2": l2, "kind": kind}
        _check_going_on(solver, options)
        (_check_minimum if solver.exact else _check_learning)(solver, options)
        alone = _run(solver, options, n_labels=1)
        alone.step()
        require_same("of one label it learns something", alone.model().n_active, 0)


def _run(solver: BatchSolver[Any], options: dict[str, Any], n_labels: int = _N_LABELS) -> Training:
    corpus, names = _problem(n_labels)[0], [f"L{y}" for y in range(n_labels)]
    settings = {"n_threads": 1, "dtype": "float64", **options}
    problem = Problem(kind=settings.pop("kind"))
    return Training(corpus, names, solver, problem=problem, **settings)


def _full_loss(kind: str) -> ChainLoss:
    corpus = _problem(_N_LABELS)[0]
    if kind != "chain":
        corpus = local_corpus(corpus, _N_LABELS, pairs=kind == "memm")
    return ChainLoss(corpus, _N_LABELS, Workers(1))


def _check_start(solver: BatchSolver[Any], penalty: ElasticNet, kind: str) -> bool:
    """Check `start`. RETURNS: whether the solver supports the penalty."""
    full = _full_loss(kind)
    working = laid_out(full, full.coordinates("all"), solver)
    theta = np.zeros(len(working.coordinates))
    try:
        facts = compatible.facts_of_run(kind=kind, l1=penalty.l1, l2=penalty.l2, solver=solver)
        compatible.check(facts, solver=solver)
        state = solver.start(working, penalty, theta)
    except SparseCRFError:
        return False
    assert isinstance(state, solver.state_type), "its state is not a state_type"
    for name in solver.columns:
        found = np.asarray(getattr(state, name, 0.0))
        assert found.shape[-1:] == theta.shape, f"its state has no {name} [K]"
    _check_remap(solver, full, working, penalty, state)
    assert is_refused(solver.start, working, penalty, np.full(len(theta), np.nan)), (
        "it starts from weights that are no numbers"
    )
    return True


def _check_remap(
    solver: BatchSolver[Any], full: ChainLoss, working: WorkingLoss, penalty: ElasticNet, state: Any
) -> None:
    """Check that a change of the working set keeps the weights, and that steps continue from it.

    working: the loss on all weights; state: of the start.
    """
    solver.step(working, penalty, state)
    theta = state.theta
    kept = np.flatnonzero((theta != 0.0) | (np.arange(len(theta)) % 2 == 0))
    smaller = laid_out(full, kept, solver)
    _, gradient = evaluate(smaller, penalty, theta[kept])
    moved = solver.remap(smaller, penalty, state, kept, gradient)
    require_same("another working set changes its weights", moved.theta, theta[kept])
    reached = solver.step(smaller, penalty, moved)
    assert np.isfinite(reached.objective), "its objective is not finite"


def _check_going_on(solver: BatchSolver[Any], options: dict[str, Any]) -> None:
    """Check that a run, a resumed run, and runs on more threads are bit-identical."""
    whole, others = _run(solver, options), [_run(solver, options | {"n_threads": 7})]
    with tempfile.TemporaryDirectory(prefix="sparsecrf-") as folder:
        for _ in range(2):
            reached = whole.step()
            require_same("threads change it", others[0].step(), reached)
        whole.save(Path(folder) / "run")
        others.append(_run(solver, options | {"n_threads": 2}))
        others[-1].resume(Path(folder) / "run")
    for _ in range(3):
        reached = whole.step()
        assert np.isfinite(reached.objective), "its objective is not finite"
        found = [other.step() for other in others]
        require_same("a saved run, or one on more threads, differs", found, [reached] * 2)
    weights = [[*other.weights] for other in others]
    expected = [[*whole.weights]] * 2
    require_same("a saved run, or one on more threads, differs", weights, expected)


def _converged(solver: BatchSolver[Any], tolerance: float, options: dict[str, Any]) -> Training:
    run = _run(replace(solver, tolerance=tolerance, window=0.0), options)
    for _ in range(_MOST):
        if run.step().converged:
            return run
    raise AssertionError(f"it has not converged after {_MOST} outer iterations")


@cache
def _least(**options: Any) -> float:
    return _converged(OWLQN(), _PRECISE, options).objective


def _check_objective(solver: BatchSolver[Any], run: Training, options: dict[str, Any]) -> float:
    """Check the reported objective. RETURNS: the weights' distance from the subdifferential."""
    full, penalty = _full_loss(options["kind"]), ElasticNet(options["l1"], options["l2"])
    coordinates, values = run.weights
    theta = np.zeros(full.n_potential)
    theta[coordinates] = values
    value, gradient = full.restrict(full.coordinates("all")).value_and_grad(theta)
    expected = value + penalty.value(theta)
    assert abs(run.objective - expected) <= 1e-8 * value, (
        f"it reports an objective of {run.objective!r}, which is {expected!r}"
    )
    return penalty.distance(theta, gradient)


def _check_minimum(solver: BatchSolver[Any], options: dict[str, Any]) -> None:
    run, least = _converged(solver, _TOLERANCE, options), _least(**options)
    assert run.objective <= least * (1.0 + 1e-6), (
        f"its minimum is {run.objective!r}, that of OWL-QN {least!r}"
    )
    distance = _check_objective(solver, run, options)
    assert distance <= 10.0 * _TOLERANCE, (
        f"it says that it has converged, {distance:.3g} from the subdifferential"
    )
    if options["l1"]:
        options = options | {"l1": 1e6}
        empty = _converged(solver, _TOLERANCE, options)
        require_same("it leaves weights at l1 = 1e6", empty.model().n_active, 0)
        _check_objective(solver, empty, options)


def _check_learning(solver: BatchSolver[Any], options: dict[str, Any]) -> None:
    """Check that after ten steps at most 40 % of labels are wrong; by chance it would be 75 %."""
    run, (corpus, observations) = _run(solver, options), _problem(_N_LABELS)
    for _ in range(10):
        run.step()
    _check_objective(solver, run, options)
    wrong = float((Decoder(run.model()).viterbi(observations) != corpus.labels).mean())
    assert wrong <= 0.4, (
        f"after 10 outer iterations {wrong:.0%} of the labels that it has seen are wrong"
    )
