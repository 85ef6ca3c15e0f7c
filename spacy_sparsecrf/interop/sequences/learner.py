"""Training on sequences of features, with CRFsuite's parameters."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import tqdm
from numpy.typing import ArrayLike

from ...crf.decoding.once import Names, Once
from ...errors import Errors, SparseCRFError, Warnings, warn
from ...registry import crf_solvers
from ...training_log import Iteration, TrainingLog
from .item_encoding import Encoded, read_corpus
from .labels import accuracy, read_pairs
from .opened_model import TrainedWeights
from .predictor import Predictor

if TYPE_CHECKING:
    from ...crf.solvers.solver import BatchSolver
    from ...crf.solvers.warm_start import WarmStart
    from ...crf.training.training import Training

Sequences: TypeAlias = Iterable[Iterable[Any]]
# The solver of an algorithm, and the default of max_iterations, as in CRFsuite.
_ALGORITHMS: dict[str, tuple[str, int | None]] = {
    "lbfgs": ("OWLQN", None),
    "l2sgd": ("OWLQN", 1000),
    **dict.fromkeys(("ap", "pa", "arow"), ("Perceptron", 100)),
}
# Parameters that are settings of solvers, by the setting's name.
_SETTINGS = {
    "period": "inner_iterations",
    "epsilon": "tolerance",
    "delta": "window",
    "num_memories": "history",
    "max_linesearch": "max_line_search",
}
# Parameters of CRFsuite that no solver has.
_IDLE = {"linesearch", "calibration_eta", "calibration_rate", "calibration_samples", "c", "gamma"}
_IDLE |= {"calibration_candidates", "calibration_max_trials", "pa_type", "error_sensitive"}
_IDLE |= {"averaging", "variance", "trainer_cls"}
# Label pairs of tokens, below which threads wait for each other longer than they work.
_LITTLE = 1 << 20
# The smallest value of whole numbers, and of numbers.
_WHOLE = {"min_freq": 0, "max_iterations": 1, "num_memories": 1, "period": 1, "max_linesearch": 1}
_WHOLE["n_threads"] = 0
_NUMBERS = {"c1": 0, "c2": 0, "epsilon": 0, "delta": 0}


@dataclass(eq=False, repr=False)
class Learner:
    """Trains a linear-chain CRF on sequences of features; see `sklearn.CRF` for the parameters."""

    algorithm: str | None = None
    min_freq: int | None = None
    all_possible_states: bool | None = None
    all_possible_transitions: bool | None = None
    c1: float | None = None
    c2: float | None = None
    max_iterations: int | None = None
    num_memories: int | None = None
    epsilon: float | None = None
    period: int | None = None
    delta: float | None = None
    linesearch: str | None = None
    max_linesearch: int | None = None
    calibration_eta: float | None = None
    calibration_rate: float | None = None
    calibration_samples: int | None = None
    calibration_candidates: int | None = None
    calibration_max_trials: int | None = None
    pa_type: int | None = None
    c: float | None = None
    error_sensitive: bool | None = None
    averaging: bool | None = None
    variance: float | None = None
    gamma: float | None = None
    verbose: bool = False
    model_filename: str | None = None
    keep_tempfiles: bool = False
    trainer_cls: Any = None
    _: KW_ONLY
    solver: "str | BatchSolver[Any] | None" = None
    bigrams: Sequence[str] | bool = ()
    start_label: bool = False
    n_threads: int = 0
    dtype: str = "float32"
    once: Names = ()

    def learn(
        self,
        X: Sequences,
        y: Sequences,
        held_out: tuple[Sequences, Sequences],
        sample_weight: ArrayLike | None = None,
        callback: Callable[[Iteration], object] | None = None,
    ) -> TrainedWeights:
        """Train on sequences; for the arguments see `sklearn.CRF.fit`.

        held_out: sequences and labels, for `callback`.
        RAISES: SparseCRFError for invalid features, labels or settings.
        """
        self._check()
        solver, limit = self._make_solver()
        X_dev, y_dev = held_out
        tokens, labels = read_pairs(X_dev, y_dev, "_dev")
        encoded = read_corpus(
            X,
            y,
            sample_weight,
            named=self.bigrams,
            start_label=self.start_label,
            min_freq=self.min_freq or 1,
        )
        Once(encoded.labels, self.once)
        start = solver.warm_start
        if limit is not None and self.c1:
            start = replace(start, epochs=min(start.epochs, limit // 2))
        training = self._make_training(encoded, solver, start)
        self.training_log_ = TrainingLog()
        receivers = [self.training_log_.append, callback, _write if self.verbose else None]
        begin = time.perf_counter()
        for n in _iterate(training, solver, limit, start.epochs if self.c1 else 0):
            self.n_iter_, report = n, training.report
            iteration = Iteration(
                n,
                loss=report.objective,
                n_active=report.n_active,
                score=self._accuracy(training, encoded, tokens, labels) if tokens else None,
                seconds=time.perf_counter() - begin,
            )
            for receive in filter(None, receivers):
                receive(iteration)
        self.objective_, self.optimality_ = report.objective, report.optimality
        self.converged_ = report.converged
        if self.verbose and report.end:
            tqdm.tqdm.write(report.outcome)
        weights = _weights(training, encoded)
        training.close()
        return weights

    def _accuracy(
        self, training: "Training", encoded: Encoded, tokens: Sequences, labels: Sequence[Any]
    ) -> float:
        """Return the share of correct labels of tokens by the current weights."""
        predicted = Predictor(_weights(training, encoded), self.once).labels(tokens)
        return accuracy(predicted, labels, [1.0] * len(labels))

    def _check(self) -> None:
        """Check parameters that no other code validates. RAISES: SparseCRFError."""
        for least, kind, what in ((_WHOLE, Integral, "whole number"), (_NUMBERS, Real, "number")):
            for name, low in least.items():
                value = getattr(self, name)
                if value is not None and not (isinstance(value, kind) and float(value) >= low):
                    self._refuse(name, f"it is not a {what} >= {low}")
        if isinstance(self.bigrams, str) or not isinstance(self.bigrams, bool | Iterable):
            self._refuse("bigrams", "it is not a list of strings, or True")

    def _refuse(self, name: str, reason: str) -> NoReturn:
        values = {"name": name, "value": getattr(self, name), "reason": reason}
        raise SparseCRFError(Errors.SC809.format(**values))

    def _make_solver(self) -> tuple["BatchSolver[Any]", int | None]:
        """Create the solver with the parameters that are its settings; warn of idle parameters.

        RETURNS: the solver; the maximum number of iterations, None for no maximum.
        """
        name, limit = _ALGORITHMS.get(self.algorithm or "lbfgs", ("", None))
        if not name:
            self._refuse("algorithm", f"choose one of {', '.join(_ALGORITHMS)}")
        if self.algorithm in ("pa", "arow"):
            warn(Warnings.SCW803.format(value=self.algorithm))
        solver = find_solver(self.solver or name)
        limit = self.max_iterations or (limit if self.solver is None else None)
        params = {field.name: getattr(self, field.name) for field in fields(self)}
        available = {field.name for field in fields(solver)}
        chosen = {name for name, value in params.items() if value is not None}
        idle = {name for name in chosen & _SETTINGS.keys() if _SETTINGS[name] not in available}
        settings = {_SETTINGS[name]: params[name] for name in chosen & _SETTINGS.keys() - idle}
        idle |= chosen & (_IDLE if self.solver is None else {"algorithm", *_IDLE})
        if "no l2" in solver.requires:
            idle |= {name for name in ("c1", "c2") if params[name]}
        if idle:
            names = ", ".join(sorted(idle))
            warn(Warnings.SCW802.format(names=names, solver=type(solver).__name__))
        return replace(solver, **settings), limit

    @property
    def _penalty(self) -> tuple[float, float]:
        """The penalty l1, l2."""
        return self.c1 or 0.0, 2.0 * (1.0 if self.c2 is None else self.c2)

    def _make_training(
        self, encoded: Encoded, solver: "BatchSolver[Any]", start: "WarmStart"
    ) -> "Training":
        from ...crf.training.training import Problem, Training

        states, transitions = bool(self.all_possible_states), bool(self.all_possible_transitions)
        l1, l2 = (0.0, 0.0) if "no l2" in solver.requires else self._penalty
        work = encoded.corpus.n_tokens * len(encoded.labels) ** 2
        return Training(
            encoded.corpus,
            encoded.labels,
            solver,
            l1=l1,
            l2=l2,
            problem=Problem(
                observed_only=not (states and transitions), also=encoded.also(states, transitions)
            ),
            warm_start=start,
            n_threads=self.n_threads or int(work < _LITTLE),
            dtype=self.dtype,
        )


def _weights(training: "Training", encoded: Encoded) -> TrainedWeights:
    return TrainedWeights.of(training.model(), encoded.texts, encoded.real)


def _iterate(
    training: "Training", solver: "BatchSolver[Any]", limit: int | None, warm: int
) -> Iterator[int]:
    """Train to the end or the limit; yield the number of iterations after each step.

    warm: passes of the warm start, which is the first step; 0 for none.
    """
    period, n = solver.inner_iterations, 0
    while limit is None or n < limit:
        solver.inner_iterations = period if limit is None else min(period, limit - n)
        end = training.step().end
        n += warm if warm and not n else solver.inner_iterations
        yield n
        if end:
            break


def find_solver(solver: "str | BatchSolver[Any]") -> "BatchSolver[Any]":
    """Return a solver, or create one by its name. RAISES: SparseCRFError for an unknown name."""
    if not isinstance(solver, str):
        return solver
    for name in (solver, f"spacy_sparsecrf.{solver}.v1"):
        if name in crf_solvers:
            made: BatchSolver[Any] = crf_solvers.get(name)()
            return made
    names = ", ".join(sorted(name.split(".")[1] for name in crf_solvers.get_all()))
    reason = f"give a solver, or a name such as {names}"
    raise SparseCRFError(Errors.SC809.format(name="solver", value=solver, reason=reason))


def _write(iteration: Iteration) -> None:
    """Write a line to the standard output."""
    number, loss, n_active, seconds, share = iteration
    line = f"Iter {number:<4} time={seconds:<7.2f} loss={loss:<10.2f} active={n_active:<7}"
    tqdm.tqdm.write(line if share is None else f"{line} Acc={share:.3f}")
