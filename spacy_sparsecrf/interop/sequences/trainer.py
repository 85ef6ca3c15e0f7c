"""Training with the interface of `pycrfsuite.Trainer`."""

import sys
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ...errors import Errors, SparseCRFError
from .items import check_lengths
from .tagger import ItemSequence

if TYPE_CHECKING:
    from os import PathLike

    from ...training_log import Iteration

_NAMES = {
    "feature.minfreq": "min_freq",
    "feature.possible_states": "all_possible_states",
    "feature.possible_transitions": "all_possible_transitions",
    "type": "pa_type",
}
"""Parameters with other names in the estimator."""

_ALL = ("lbfgs", "l2sgd", "ap", "pa", "arow")
_ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}


class Parameter(NamedTuple):
    """A parameter of training. algorithms: that have it."""

    default: Any
    algorithms: tuple[str, ...]
    help: str


_PARAMETERS = {
    "feature.minfreq": Parameter(0, _ALL, "Features of fewer tokens are removed."),
    "feature.possible_states": Parameter(False, _ALL, "All features with all labels may weigh."),
    "feature.possible_transitions": Parameter(False, _ALL, "All pairs of labels may weigh."),
    "c1": Parameter(0.0, _ALL[:1], "Factor of the L1 penalty."),
    "c2": Parameter(1.0, _ALL[:2], "Factor of the L2 penalty."),
    "max_iterations": Parameter(2**31 - 1, _ALL, "Largest number of iterations."),
    "num_memories": Parameter(6, _ALL[:1], "Number of pairs that L-BFGS keeps."),
    "epsilon": Parameter(1e-3, _ALL, "Largest violation of optimality at the end."),
    "period": Parameter(10, _ALL, "Iterations between two tests of `delta`."),
    "delta": Parameter(1e-5, _ALL, "Training ends if the loss falls by a smaller part."),
    "max_linesearch": Parameter(20, _ALL[:1], "Largest number of evaluations in a line search."),
}
_LIMITS = {"l2sgd": 1000, "ap": 100, "pa": 100, "arow": 100}
"""Other defaults of max_iterations."""

_IDLE = ("linesearch", "type", "c", "error_sensitive", "averaging", "variance", "gamma")
"""Parameters of CRFsuite that are accepted without effect, like those of calibration."""

_REPORTED = ("num", "loss", "active_features", "time", "item_accuracy_float")
"""Names of the values of an `Iteration` in python-crfsuite."""


class Trainer:
    """Trains models on sequences that are appended, with the interface of `pycrfsuite.Trainer`.

    It minimises the objective of `sklearn.CRF`.

    Parameters
    ----------
    algorithm : str, default "lbfgs"
        See `select`.
    params : mapping of str, optional
        Parameters by name, see `set`.
    verbose : bool, default True
        Whether `message` writes to the standard output.

    Attributes
    ----------
    logparser : object
        Reports of the last training: `iterations`, a list of dicts, one for each period, and
        `last_iteration`, the last of them.

    Examples
    --------
    >>> trainer = Trainer("lbfgs", {"c1": 0.1}, verbose=False)
    >>> trainer.append([["12"], ["Oak"], ["Lane"]], ["NUMBER", "NAME", "TYPE"])
    >>> trainer
    Trainer('lbfgs', 1 sequences)
    >>> trainer.train("streets.crfsuite")
    >>> trainer.logparser.last_iteration["active_features"]
    5
    """

    logparser: Any = None
    # Subclasses need not call `__init__`.
    verbose = True
    _algorithm = "lbfgs"

    @cached_property
    def _params(self) -> dict[str, Any]:
        """Parameters that were set."""
        return {}

    @cached_property
    def _data(self) -> list[tuple[int, ItemSequence, list[str]]]:
        """The sequences that were appended: group, tokens and labels."""
        return []

    def __init__(
        self,
        algorithm: str | None = None,
        params: Mapping[str, Any] | None = None,
        verbose: bool = True,
    ) -> None:
        self.verbose = verbose
        self.select(algorithm or "lbfgs")
        self.set_params(params or {})

    def __repr__(self) -> str:
        return f"Trainer({self._algorithm!r}, {len(self._data):,} sequences)"

    def append(self, xseq: Iterable[Any], yseq: Iterable[str], group: int = 0) -> None:
        """Append a sequence and its labels.

        Parameters
        ----------
        xseq : iterable of tokens
            The tokens.
        yseq : iterable of str
            A label for each token.
        group : int, default 0
            Group of the sequence, see `train`.

        Raises
        ------
        SparseCRFError
            If the numbers of tokens and labels differ.
        """
        sequence, labels = ItemSequence(xseq), [*yseq]
        check_lengths([len(sequence)], [labels])
        self._data.append((group, sequence, labels))

    def clear(self) -> None:
        """Remove all sequences."""
        self._data.clear()

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose an algorithm; parameters keep their values.

        Parameters
        ----------
        algorithm : str
            "lbfgs", "l2sgd", "ap", "pa" or "arow".
        type : str, default "crf1d"
            Type of model; there is one.

        Raises
        ------
        SparseCRFError
            If the name is another one.
        """
        name = _ALIASES.get(algorithm.lower(), algorithm.lower())
        if name not in _ALL or type != "crf1d":
            reason = f"choose one of {', '.join(_ALL)}, of type crf1d"
            message = Errors.SC809.format(name="algorithm", value=algorithm, reason=reason)
            raise SparseCRFError(message)
        self._algorithm = name

    def params(self) -> list[str]:
        """Return the names of the algorithm's parameters."""
        return [x for x, meant in _PARAMETERS.items() if self._algorithm in meant.algorithms]

    def help(self, name: str) -> str:
        """Describe a parameter.

        Parameters
        ----------
        name : str
            Name of the parameter.

        Returns
        -------
        str
            A sentence.

        Raises
        ------
        SparseCRFError
            If the name is unknown.
        """
        return self._parameter(name).help

    def get(self, name: str) -> float | str:
        """Return the value of a parameter.

        Parameters
        ----------
        name : str
            Name of the parameter.

        Returns
        -------
        float or str
            Its value; by default a number or a bool.

        Raises
        ------
        SparseCRFError
            If the name is unknown.
        """
        return cast("float | str", self._params.get(name, self._parameter(name).default))

    def get_params(self) -> dict[str, float | str]:
        """Return the values of all parameters of the algorithm."""
        return {name: self.get(name) for name in self.params()}

    def set(self, name: str, value: float | str) -> None:
        """Set a parameter.

        Parameters
        ----------
        name : str
            Name of the parameter, see `params`.
        value : float or str
            Its value.

        Raises
        ------
        SparseCRFError
            If the name is unknown, or the value invalid.
        """
        if name in _IDLE or name.startswith("calibration."):
            self._params[name] = value
            return
        kind = type(self._parameter(name).default)
        try:
            self._params[name] = kind(float(value)) if kind in (bool, int) else kind(value)
        except (TypeError, ValueError, OverflowError) as error:
            message = Errors.SC809.format(name=name, value=value, reason=error)
            raise SparseCRFError(message) from error

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set several parameters.

        Parameters
        ----------
        params : mapping of str
            Values by name.

        Raises
        ------
        SparseCRFError
            As `set`.
        """
        for name, value in params.items():
            self.set(name, value)

    def _parameter(self, name: str) -> Parameter:
        if name not in self.params():
            reason = f"choose one of {', '.join(self.params())}"
            raise SparseCRFError(Errors.SC809.format(name="parameter", value=name, reason=reason))
        parameter = _PARAMETERS[name]
        if name == "max_iterations":
            default = _LIMITS.get(self._algorithm, parameter.default)
            return parameter._replace(default=default)
        return parameter

    def message(self, message: str) -> None:
        """Receive lines about training, with their ends; by default write them if `verbose`.

        Parameters
        ----------
        message : str
            The lines.
        """
        if self.verbose:
            sys.stdout.write(message)

    def train(self, model: "str | PathLike[str]", holdout: int = -1) -> None:
        """Train, and write the model to a file.

        Parameters
        ----------
        model : str or path
            Path of the file, "" for none.
        holdout : int, default -1
            Group of sequences that are left out and labelled after each period, -1 for none.

        Raises
        ------
        SparseCRFError
            If there are no sequences, or the file cannot be written.
        """
        from .learner import Learner  # imports numpy
        from .opened_model import write_file

        self.logparser = SimpleNamespace(iterations=[], last_iteration=None)
        params = self.get_params()
        shown = (f"{name}: {value}" for name, value in params.items())
        for line in ("Feature generation", "type: CRF1d", *shown):
            self.message(f"{line}\n")
        changed = {
            _NAMES.get(x, x.replace(".", "_")): value
            for x, value in self._params.items()
            if x not in _PARAMETERS or (x in params and value != self._parameter(x).default)
        }
        learner = Learner(self._algorithm, **changed)
        held_out = [row for row in self._data if row[0] == holdout != -1]
        training = [row for row in self._data if not row[0] == holdout != -1]
        X, X_dev = ([sequence for _, sequence, _ in rows] for rows in (training, held_out))
        y, y_dev = ([labels for _, _, labels in rows] for rows in (training, held_out))
        weights = learner.learn(X, y, (X_dev, y_dev), callback=self._report)
        if model:
            write_file(model, weights.to_bytes())

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Receive a report of training; only if `verbose`.

        Parameters
        ----------
        log : str
            The report as text.
        info : dict of str
            The report as in `logparser`.
        """
        self.message(log)

    def _report(self, iteration: "Iteration") -> None:
        """Report progress to `logparser`, and to `on_iteration` or `message`."""
        row = {x: value for x, value in zip(_REPORTED, iteration, strict=True) if value is not None}
        self.logparser.last_iteration = row
        self.logparser.iterations.append(row)
        lines = [f"{name}: {value:g}\n" for name, value in [*row.items()][1:]]
        log = f"***** Iteration #{iteration.number} *****\n" + "".join(lines)
        if self.verbose:
            self.on_iteration(log, row)
        else:
            self.message(log)
