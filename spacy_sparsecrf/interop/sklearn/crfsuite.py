"""An estimator with the parameters, attributes and iterations of sklearn-crfsuite."""

from dataclasses import dataclass, fields
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from ...errors import Errors, SparseCRFError, Warnings, warn
from .estimator import Estimator, EstimatorSettings, Sequences, as_lists, check_lengths
from .iterations import HoldoutScores, TrainingLog
from .tagger import CRFsuiteTagger, ModelFile, read_weights, write_weights

if TYPE_CHECKING:
    from typing_extensions import Self

    from ...solvers.base import BatchSolver
    from ...solvers.warm_start import WarmStart
    from ...training.training import Training

_BATCH, _ONLINE = ("lbfgs", "l2sgd"), ("ap", "pa", "arow")
_LIMITS = {"l2sgd": 1000, **dict.fromkeys(_ONLINE, 100)}  # iterations, by CRFsuite's defaults
_WARM_START = 4  # largest number of SGD passes of the warm start, which count as iterations
_COMMON = {"algorithm", "min_freq", "all_possible_states", "all_possible_transitions"}
_COMMON |= {"max_iterations", "period", "verbose", "model_filename", "keep_tempfiles"}
_OF_BATCH = {"c1", "c2", "num_memories", "epsilon", "delta", "max_linesearch"}
_FITTED = {"model_", "attributes_", "classes_", "legal_"}


@dataclass(eq=False, repr=False)
class CRF(Estimator):
    """A linear-chain CRF with the interface of `sklearn_crfsuite.CRF`.

    Minimises CRFsuite's objective -log p + c1 |theta|_1 + c2 |theta|_2^2 over CRFsuite's features,
    so that l1 = c1 and l2 = 2 c2 in `SparseCRF`. None is CRFsuite's default. A parameter that has
    no effect here raises warning SCW802 if it is set.

    algorithm: "lbfgs" and "l2sgd" reach the minimum with OWL-QN; "ap" is the averaged perceptron,
        which has no penalty and also replaces "pa" and "arow", with warning SCW803.
    min_freq: minimum number of tokens with a feature, whatever their labels.
    all_possible_states, all_possible_transitions: see `SparseCRF`.
    c1, c2: penalties; by default 0 and 1.
    max_iterations: maximum number of iterations, each about one pass over the sequences. With
        c1 > 0, the first iterations (at most 4) are passes of a warm start.
    num_memories, max_linesearch: history size of L-BFGS (20 by default), and maximum number of
        evaluations in a line search.
    period, delta: stop when `period` iterations lower the objective by less than the fraction
        `delta`, twice in a row; 10 and 1e-5 by default.
    epsilon: stop when the norm of the gradient is less than `epsilon` times the norm of the weights
        or 1, whichever is larger; 1e-5 by default.
    verbose: whether to print a line for each iteration to the standard output.
    model_filename: file to which `fit` writes the weights in the format of CRFsuite's dump. An
        estimator that is not fitted reads it, and also reads CRFsuite's binary models.
    keep_tempfiles: whether to keep the temporary file of `modelfile` after deleting the estimator.

    Attributes, in addition to those of `SparseCRF`: training_log_: with `iterations`, a list of
    dicts, and `last_iteration`.
    """

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

    def settings(self) -> EstimatorSettings:
        """Translate the parameters. RAISES: SparseCRFError for another algorithm or bad values."""
        if self._algorithm not in (*_BATCH, *_ONLINE):
            raise SparseCRFError(Errors.SC813.format(value=self.algorithm))
        for name in ("c1", "c2", "num_memories", "epsilon", "period", "delta", "max_linesearch"):
            value = getattr(self, name)
            least = 1 if name in ("num_memories", "period", "max_linesearch") else 0
            if value is not None and not (isinstance(value, Real) and float(value) >= least):
                reason = f"it is not a number >= {least}"
                raise SparseCRFError(Errors.SC809.format(name=name, value=value, reason=reason))
        penalised = self._algorithm in _BATCH
        return EstimatorSettings(
            l1=(self.c1 or 0.0) * penalised,
            l2=2.0 * (1.0 if self.c2 is None else self.c2) * penalised,
            all_possible_states=bool(self.all_possible_states),
            all_possible_transitions=bool(self.all_possible_transitions),
            min_freq=self.min_freq or 1,
            max_iterations=self.max_iterations or _LIMITS.get(self._algorithm),
        )

    @property
    def _algorithm(self) -> str:
        return self.algorithm or _BATCH[0]

    def fit(  # type: ignore[override]  # the third argument is sklearn-crfsuite's
        self,
        X: Sequences,
        y: Sequences,
        X_dev: Sequences | None = None,
        y_dev: Sequences | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "Self":
        """Train on sequences.

        X: sequences of tokens; y: their labels; X_dev, y_dev: sequences to score the model on every
        `period` iterations (see `training_log_`); sample_weight: [S], >= 0, of sequences.
        RETURNS: itself. RAISES: SparseCRFError for invalid features, labels or settings.
        """
        if (X_dev is None) != (y_dev is None):
            raise SparseCRFError(Errors.SC814)
        settings = self.settings()._replace(
            solver=self._make_solver(), warm_start=self._make_warm_start()
        )
        self._warn_of_parameters()
        self._holdout = None
        if X_dev is not None and y_dev is not None:
            read = [tokens if hasattr(tokens, "__len__") else [*tokens] for tokens in X_dev]
            self._holdout = read, as_lists(y_dev)
            check_lengths([*map(len, self._holdout[0])], self._holdout[1], "_dev")
        self._learn_from([*X], [*y], sample_weight, settings)
        self._holdout = None
        if self.model_filename is not None:
            write_weights(self, Path(self.model_filename))
        return self

    def _make_solver(self) -> "BatchSolver":
        from .recording import RecordedOWLQN, RecordedPerceptron  # import numba

        self.training_log_ = log = TrainingLog(self.verbose)
        if self._algorithm in _ONLINE:
            return RecordedPerceptron(log=log)
        chosen: dict[str, Any] = {
            "history": self.num_memories,
            "max_line_search": self.max_linesearch,
        }
        return RecordedOWLQN(
            log=log,
            epsilon=1e-5 if self.epsilon is None else self.epsilon,
            tolerance=0.0,
            window=1e-5 if self.delta is None else self.delta,
            **{name: value for name, value in chosen.items() if value is not None},
        )

    def _make_warm_start(self) -> "WarmStart | None":
        from ...solvers.warm_start import WarmStart

        if self._algorithm in _ONLINE:
            return None
        limit = self.settings().max_iterations
        return WarmStart(epochs=min(_WARM_START, _WARM_START if limit is None else limit // 2))

    def _warn_of_parameters(self) -> None:
        """Warn if the algorithm is replaced, or set parameters have no effect."""
        algorithm = self._algorithm
        if algorithm in _ONLINE[1:]:
            warn(Warnings.SCW803.format(value=algorithm))
        known = _COMMON | (_OF_BATCH if algorithm in _BATCH else set())
        idle = [f.name for f in fields(self) if f.name not in known]
        found = ", ".join(name for name in idle if getattr(self, name) is not None)
        if found:
            warn(Warnings.SCW802.format(names=found, algorithm=algorithm))

    def _run(self, training: "Training", settings: EstimatorSettings, texts: list[str]) -> None:
        """Iterate until a stopping criterion of CRFsuite is met; see the parameters."""
        solver: Any = settings.solver
        log, limit, period = self.training_log_, settings.max_iterations, int(self.period or 10)
        log.featgen_num_features = training.n_potential
        while True:
            left = period if limit is None else limit - log.n_iterations
            solver.inner_iterations = min(period, left)
            log.due = log.n_iterations + solver.inner_iterations
            report = training.step()
            if not log.iterations:  # a warm start only
                log.add(report, training.weights[1], n=int(report.passes))
            if self._holdout is not None:
                self._learn(training.model(), texts)
                found = [*self.predict(self._holdout[0])]
                log.score(HoldoutScores.of(self._holdout[1], found))
            # If screening did not increase the distance, it found no violating weights.
            met = log.is_converged and report.optimality <= log.optimality
            if met or (report.converged and self._algorithm in _BATCH):
                break
            if limit is not None and log.n_iterations >= limit:
                break
        self.n_iter_ = log.n_iterations
        self.objective_, self.optimality_ = report.objective, report.optimality

    def __getattr__(self, name: str) -> Any:
        """Read the weights of `model_filename` if they are needed before `fit`."""
        path = self.__dict__.get("model_filename")
        if name in _FITTED and path is not None and Path(path).is_file():
            model, texts = read_weights(Path(path))
            self._learn(model, texts)
            return self.__dict__[name]
        # Python also calls this for properties that raise, such as `tagger_` before `fit`.
        if name in _FITTED or hasattr(type(self), name):
            raise NotFittedError(Errors.SC805.format(name=type(self).__name__))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def tagger_(self) -> CRFsuiteTagger:
        """The model with the methods of `pycrfsuite.Tagger`, cached until the next `fit`.

        RAISES: NotFittedError.
        """
        self._take_decoder()
        if "_tagger" not in self.__dict__:
            self._tagger = CRFsuiteTagger(self)
        return self._tagger

    @property
    def modelfile(self) -> ModelFile:
        """The file with the weights: `model_filename`, or a temporary file written on access."""
        if "_modelfile" not in self.__dict__:
            file = ModelFile(self.model_filename, self.keep_tempfiles)
            if self.model_filename is None and "model_" in self.__dict__:
                file.refresh()
                write_weights(self, Path(str(file.name)))
            self._modelfile = file
        return self._modelfile

    @property
    def num_attributes_(self) -> int:
        """Number of features with weights."""
        return len(self.attributes_)

    @property
    def size_(self) -> int:
        """Size of the weights and of the features' names in bytes."""
        return len(self.model_.to_bytes()) + sum(len(text.encode()) for text in self.attributes_)
