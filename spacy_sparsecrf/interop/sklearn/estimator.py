"""The scikit-learn estimator of a sparse CRF, with the interface of `sklearn_crfsuite.CRF`."""

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import tqdm
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ...errors import Errors, SparseCRFError, Warnings, warn
from ...registry import crf_solvers
from .encoding import ALWAYS, SHOWN, Encoded, read_corpus
from .labels import accuracy, read_pairs, read_weights
from .tagger import Tagger, read_tagger, write_tagger

if TYPE_CHECKING:
    from spacy.pipeline import TrainablePipe
    from typing_extensions import Self

    from ...solvers.base import BatchSolver
    from ...solvers.warm_start import WarmStart
    from ...training.training import Training

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
# The smallest value of whole numbers, and of numbers.
_WHOLE = {"min_freq": 0, "max_iterations": 1, "num_memories": 1, "period": 1, "max_linesearch": 1}
_WHOLE["n_threads"] = 0
_NUMBERS = {"c1": 0, "c2": 0, "epsilon": 0, "delta": 0}


class Iteration(NamedTuple):
    """Progress of training after some iterations.

    number: of iterations so far; loss: the objective; n_active: non-zero weights; seconds: since
    the start of training; accuracy: share of correct labels of held-out tokens, None without them.
    """

    number: int
    loss: float
    n_active: int
    seconds: float
    accuracy: float | None


@dataclass(eq=False, repr=False)
class CRF(BaseEstimator):  # type: ignore[misc]
    """A linear-chain CRF for sequences of features, with the interface of `sklearn_crfsuite.CRF`.

    Minimises CRFsuite's objective, the sum over sequences of w_i (log Z(x_i) - sum_k theta_k
    F_k(x_i, y_i)), plus c1 |theta|_1 + c2 |theta|_2^2: c1 is l1 of a component, and c2 half of l2.
    X is a list of sequences, each a list of tokens, each a dict or an iterable of features (see
    `attributes`); y is a list of lists of labels, with None for missing labels. None as a parameter
    is CRFsuite's default. A parameter that has no effect raises warning SCW802 if it is set.

    algorithm: "lbfgs" and "l2sgd" reach the minimum with OWL-QN; "ap" is the averaged perceptron,
        which has no penalty and also replaces "pa" and "arow", with warning SCW803.
    min_freq: features of fewer tokens are removed, whatever their labels, except for real-valued
        features.
    all_possible_states: whether every pair of a feature and a label may have a weight; False: only
        pairs that occur in training.
    all_possible_transitions: whether every transition may have a weight; False: only transitions
        that occur in training. If all_possible_states is true too, this includes features in
        `bigrams`.
    c1, c2: penalties; by default 0 and 1.
    max_iterations: maximum number of iterations, each about one pass over the sequences. With
        c1 > 0, the first iterations (at most 4) are passes of a warm start.
    num_memories, max_linesearch: history size of L-BFGS, and maximum number of evaluations in a
        line search.
    period, delta: stop when `period` iterations lower the objective by less than the fraction
        `delta`, twice in a row; 10 and 1e-5 by default.
    epsilon: stop when no weight violates the optimality conditions by more than this; 1e-3 by
        default. If 0 < c1 < 0.1, it is multiplied by c1 / 0.1.
    verbose: whether to print a line after each `period` to the standard output.
    model_filename: file to which `fit` writes the weights. An estimator that is not fitted reads
        it, and also reads CRFsuite's models.
    solver: a batch solver, or its name, such as "BCD", instead of `algorithm`.
    bigrams: features that are also conjoined with pairs of labels, as keys of dicts or as
        attributes; True for all. Transitions always have weights.
    start_label: whether the first token of a sequence has a transition from a start label.
    n_threads: of training; 0 = one per core.
    dtype: of stored weights, "float32" or "float64".

    Attributes: n_iter_, objective_, optimality_: iterations, and objective and violation of the
    optimality conditions at the end of training; converged_: whether training has converged. The
    others are None before `fit`.
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
    _: KW_ONLY
    solver: "str | BatchSolver | None" = None
    bigrams: Sequence[str] | bool = ()
    start_label: bool = False
    n_threads: int = 0
    dtype: str = "float32"
    model_: Tagger | None = field(default=None, init=False)

    # Training

    def fit(
        self,
        X: Sequences,
        y: Sequences,
        X_dev: Sequences | None = None,
        y_dev: Sequences | None = None,
        sample_weight: ArrayLike | None = None,
        callback: Callable[[Iteration], object] | None = None,
    ) -> "Self":
        """Train on sequences.

        X: sequences of tokens; y: their labels; X_dev, y_dev: held-out sequences, for `callback`;
        sample_weight: [S], >= 0, of sequences; callback: called after each `period` iterations.
        RETURNS: itself. RAISES: SparseCRFError for invalid features, labels or settings.
        """
        self._check()
        solver, limit = self._make_solver()
        held_out = [() if each is None else each for each in (X_dev, y_dev)]
        tokens, labels = read_pairs(held_out[0], held_out[1], "_dev")
        own = self.bigrams, self.start_label, self.min_freq or 1
        encoded = read_corpus(X, y, sample_weight, *own)
        start = solver.warm_start
        if limit is not None and self.c1:
            start = replace(start, epochs=min(start.epochs, limit // 2))
        training = self._make_training(encoded, solver, start)
        called = [each for each in (callback, _write if self.verbose else None) if each]
        begin = time.perf_counter()
        for n in _iterate(training, solver, limit, start.epochs if self.c1 else 0):
            self.n_iter_, report, share = n, training.report, None
            if called and tokens:
                predicted = _tagger(training, encoded).predict(tokens)
                share = accuracy(predicted, labels, np.ones(len(labels)))
            values = report.objective, report.n_active, time.perf_counter() - begin, share
            for each in called:
                each(Iteration(n, *values))
        self.objective_, self.optimality_ = report.objective, report.optimality
        self.converged_ = report.converged
        if self.verbose and report.end:
            tqdm.tqdm.write(report.outcome)
        self.model_ = _tagger(training, encoded)
        training.close()
        if self.model_filename is not None:
            write_tagger(self.model_, Path(self.model_filename))
        return self

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

    def _make_solver(self) -> tuple["BatchSolver", int | None]:
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
        params, known = self.get_params(deep=False), {own.name for own in fields(solver)}
        given = {name for name, value in params.items() if value is not None}
        idle = {name for name in given & _SETTINGS.keys() if _SETTINGS[name] not in known}
        settings = {_SETTINGS[name]: params[name] for name in given & _SETTINGS.keys() - idle}
        idle |= given & (_IDLE if self.solver is None else {"algorithm", *_IDLE})
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
        self, encoded: Encoded, solver: "BatchSolver", start: "WarmStart"
    ) -> "Training":
        from ...training.training import Problem, Training

        states, transitions = bool(self.all_possible_states), bool(self.all_possible_transitions)
        l1, l2 = (0.0, 0.0) if "no l2" in solver.requires else self._penalty
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
            n_threads=self.n_threads,
            dtype=self.dtype,
        )

    # Prediction

    def predict(self, X: Iterable[Any]) -> NDArray[np.object_]:
        """Predict the most probable labels of each sequence. RETURNS: [S] object array of lists."""
        return np.fromiter(self._fitted.predict(X), np.object_)

    def predict_single(self, xseq: Iterable[Any]) -> list[str]:
        """Predict the most probable labels of one sequence."""
        return self._fitted.predict([xseq])[0]

    def predict_marginals(self, X: Iterable[Any]) -> NDArray[np.object_]:
        """Compute p(y_t = y | x). RETURNS: [S] of lists with one dict by label for each token."""
        return np.fromiter(self._fitted.predict_marginals(X), np.object_)

    def predict_marginals_single(self, xseq: Iterable[Any]) -> list[dict[str, float]]:
        """Compute p(y_t = y | x) for one sequence. RETURNS: for each token, a dict by label."""
        return self._fitted.predict_marginals([xseq])[0]

    def predict_log_probability(self, X: Sequences, y: Sequences) -> NDArray[np.float64]:
        """Compute log p(y | x) of each sequence: [S]; -inf for unknown labels.

        RAISES: SparseCRFError if X and y differ in length.
        """
        tagger, pairs = self._fitted, zip(*read_pairs(X, y), strict=True)
        return np.array([tagger.log_probability(*pair) for pair in pairs], np.float64)

    def score(self, X: Sequences, y: Sequences, sample_weight: ArrayLike | None = None) -> float:
        """Return the token accuracy; tokens without a gold label are ignored.

        sample_weight: [S], of sequences. RAISES: SparseCRFError if X and y differ in length.
        """
        tokens, labels = read_pairs(X, y)
        weights = read_weights(sample_weight, len(tokens))
        return accuracy(self._fitted.predict(tokens), labels, weights)

    # Weights

    @property
    def tagger_(self) -> Tagger | None:
        """The trained model with the methods of `pycrfsuite.Tagger`."""
        path = self.model_filename
        if self.model_ is None and path is not None and Path(path).is_file():
            self.model_ = read_tagger(Path(path))
        return self.model_

    @property
    def _fitted(self) -> Tagger:
        if (tagger := self.tagger_) is None:
            raise NotFittedError(Errors.SC805.format(name=type(self).__name__))
        return tagger

    @property
    def classes_(self) -> list[str] | None:
        """The labels, sorted."""
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def attributes_(self) -> list[str] | None:
        """The features with weights."""
        return None if self.tagger_ is None else self.tagger_.attributes

    @property
    def num_attributes_(self) -> int | None:
        """Number of features with weights."""
        return None if self.tagger_ is None else len(self.tagger_.attributes)

    @property
    def size_(self) -> int | None:
        """Size of the pickled weights in bytes."""
        return None if self.tagger_ is None else len(pickle.dumps(self.tagger_))

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """The non-zero weights of features with labels, by (feature, label)."""
        return None if self.tagger_ is None else self.tagger_.info().state_features

    @property
    def transition_features_(self) -> dict[tuple[str | None, str], float] | None:
        """The non-zero weights of transitions, by (label before, label); see `WeightSummary`."""
        return None if self.tagger_ is None else self.tagger_.info().transitions

    @property
    def bigram_features_(self) -> dict[tuple[str, str | None, str], float] | None:
        """The non-zero weights of features with pairs, by (feature, label before, label)."""
        return None if self.tagger_ is None else self.tagger_.info().bigram_features

    # Components

    def to_pipe(
        self,
        nlp: Any,
        features: Mapping[str, str] | None = None,
        factory: str = "sparse_crf",
        config: Mapping[str, Any] | None = None,
    ) -> "TrainablePipe":
        """Add a component with these weights to a pipeline; its templates generate the features.

        Each feature with weights must be a template feature (see `pipes`). The component predicts
        the same labels if its templates read the same values.

        nlp: the pipeline; features: template names by feature, or by key of a dict, as in
        {"word.lower()": "lower[0]"}; factory: "sparse_crf" for labels as tags, or another; config:
        of the component's block. RETURNS: the component.
        RAISES: SparseCRFError if templates cannot express a feature, or two features have one name.
        """
        from .pipes import make_pipe

        tagger = self._fitted
        if tagger.real:
            raise SparseCRFError(Errors.SC820.format(names=", ".join(tagger.real[:SHOWN])))
        l1, l2 = self._penalty
        own = {"l1": l1, "l2": l2, **(config or {})}
        own["learning"] = {"dtype": tagger.model.dtype, **own.get("learning", {})}
        own["features"] = {"start_label": tagger.has_start, **own.get("features", {})}
        return make_pipe(nlp, tagger.model, tagger.attributes, features or {}, factory, own)

    def __sklearn_is_fitted__(self) -> bool:
        return self.tagger_ is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags


def _tagger(training: "Training", encoded: Encoded) -> Tagger:
    names = dict(enumerate(encoded.texts, start=ALWAYS + 1))
    return Tagger.of(training.model(), names, real=encoded.real)


def _iterate(
    training: "Training", solver: "BatchSolver", limit: int | None, warm: int
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


def find_solver(solver: "str | BatchSolver") -> "BatchSolver":
    """Return a solver, or create one by its name. RAISES: SparseCRFError for an unknown name."""
    if not isinstance(solver, str):
        return solver
    for name in (solver, f"spacy_sparsecrf.{solver}.v1"):
        if name in crf_solvers:
            made: BatchSolver = crf_solvers.get(name)()
            return made
    known = ", ".join(sorted(name.split(".")[1] for name in crf_solvers.get_all()))
    reason = f"give a solver, or a name such as {known}"
    raise SparseCRFError(Errors.SC809.format(name="solver", value=solver, reason=reason))


def _write(iteration: Iteration) -> None:
    """Write a line to the standard output."""
    number, loss, n_active, seconds, share = iteration
    line = f"Iter {number:<4} time={seconds:<7.2f} loss={loss:<10.2f} active={n_active:<7}"
    tqdm.tqdm.write(line if share is None else f"{line} Acc={share:.3f}")
