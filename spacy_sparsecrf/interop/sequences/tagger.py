"""Labels, probabilities and weights of a trained model, as of `pycrfsuite.Tagger`."""

import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...crf.decoding.once import Names
from ...errors import Errors, SparseCRFError
from ..weight_summary import WeightSummary
from .items import items_of
from .predictor import Predictor, Weights, open_bytes, open_file

if TYPE_CHECKING:
    from os import PathLike

    from .predictor import Sequenced


class ItemSequence(list[dict[str, float]]):
    """The features of a sequence, read once: for each token the values of its attributes.

    Parameters
    ----------
    pyseq : iterable of tokens
        Tokens, each a dict or an iterable of features.

    Examples
    --------
    >>> ItemSequence([["title"], {"word": "a", "near": {"end": 0.5}}])
    ItemSequence(2 tokens)
    >>> ItemSequence([["title"], {"word": "a", "near": {"end": 0.5}}]).items()
    [{'title': 1.0}, {'word:a': 1.0, 'near:end': 0.5}]
    """

    def __init__(self, pyseq: Iterable[Any]) -> None:
        super().__init__(items_of(pyseq))

    def __repr__(self) -> str:
        return f"ItemSequence({len(self)} tokens)"

    def items(self) -> list[dict[str, float]]:
        """Return the values of the attributes of each token."""
        return [*self]


class ClosedError(SparseCRFError, RuntimeError):
    """Report a tagger without a model."""


class Tagger:
    """Labels sequences with a trained model, with the interface of `pycrfsuite.Tagger`.

    A sequence is a list of tokens, and a token a dict or an iterable of features. Without a
    model, methods raise a ClosedError.

    Parameters
    ----------
    once : sequence of str, default ()
        Labels that `tag` gives to at most one run of tokens each; also types, such as LOC of
        the labels B-LOC and I-LOC, for at most one span. Probabilities do not depend on it.
    weights : TrainedWeights or CrfsuiteModel, optional
        The weights of a model, which then need not be opened.

    Raises
    ------
    SparseCRFError
        If `weights` have no label with a name of `once`.

    Examples
    --------
    >>> from spacy_sparsecrf import pycrfsuite
    >>> trainer = pycrfsuite.Trainer(verbose=False)
    >>> trainer.append([["12"], ["Oak"], ["Lane"]], ["NUMBER", "NAME", "TYPE"])
    >>> trainer.train("streets.crfsuite")
    >>> tagger = Tagger().open("streets.crfsuite")
    >>> tagger
    Tagger(3 labels)
    >>> tagger.tag([["12"], ["Oak"], ["Lane"]])
    ['NUMBER', 'NAME', 'TYPE']
    """

    once: Names = ()
    _opened: Predictor | None = None
    _chain: "Sequenced | None" = None
    _marginals: Any = None

    def __init__(self, once: Names = (), weights: "Weights | None" = None) -> None:
        self.once = once
        if weights is not None:
            self._opened = Predictor(weights, once)

    def __repr__(self) -> str:
        return f"Tagger({f'{len(self.labels())} labels' if self._opened else 'no model'})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the model, without the sequence that was set."""
        return Tagger, (self.once, self._opened and self._opened.weights)

    def __enter__(self) -> "Tagger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, name: "str | PathLike[str]") -> "Tagger":
        """Open a model's file.

        Parameters
        ----------
        name : str or path
            The file, written by `Trainer.train`, `CRF.fit` or CRFsuite.

        Returns
        -------
        Tagger
            The tagger itself, which `with` closes.

        Raises
        ------
        OSError
            If the file cannot be read.
        SparseCRFError
            If it is no model, or a name of `once` is unknown.
        """
        return self._open(open_file(name, self.once))

    def open_inmemory(self, value: bytes, name: object = "the model") -> "Tagger":
        """Open a model's bytes; see `open`.

        Parameters
        ----------
        value : bytes
            Content of a model's file.
        name : object, default "the model"
            Its name, for messages.

        Returns
        -------
        Tagger
            The tagger itself.
        """
        return self._open(open_bytes(value, name, self.once))

    def _open(self, predictor: Predictor) -> "Tagger":
        self.close()
        self._opened = predictor
        return self

    def warm(self) -> None:
        """Load the kernels now, which otherwise happens meanwhile, if a process goes on."""
        self.predictor.warm()

    def close(self) -> None:
        """Remove the model."""
        self._opened = self._chain = self._marginals = None

    @property
    def predictor(self) -> Predictor:
        """The model."""
        if self._opened is None:
            raise ClosedError(Errors.SC823)
        return self._opened

    @property
    def _current(self) -> "Sequenced":
        """The sequence that was set; at first one without tokens."""
        return self.predictor.chain(()) if self._chain is None else self._chain

    def set(self, xseq: Iterable[Any]) -> None:
        """Set the sequence for the other methods, and read its features.

        Parameters
        ----------
        xseq : iterable of tokens
            The sequence.
        """
        self._chain, self._marginals = self.predictor.chain(xseq), None

    def tag(self, xseq: Iterable[Any] | None = None) -> list[str]:
        """Return the most probable labels of a sequence.

        Parameters
        ----------
        xseq : iterable of tokens, optional
            The sequence. Default: the sequence that was set.

        Returns
        -------
        list of str
            A label for each token.
        """
        if xseq is not None:
            self.set(xseq)
        return self.predictor.best(self._current)

    def marginal(self, y: str, pos: int) -> float:
        """Compute p(y_pos = y | x) for the sequence that was set.

        Parameters
        ----------
        y : str
            A label.
        pos : int
            Position of a token, from 0.

        Returns
        -------
        float
            The probability.

        Raises
        ------
        SparseCRFError
            If the label is unknown, or the position is outside the sequence.
        """
        if self._marginals is None:
            self._marginals = self.predictor.numbers, self.predictor.rows(self._current)
        numbers, rows = self._marginals
        number = numbers.get(y)
        if number is None or not -1 < pos < len(rows):
            among = "labels" if number is None else f"{len(rows)} tokens"
            raise SparseCRFError(Errors.SC819.format(label=y, position=pos, place=among))
        return float(rows[pos][number])

    def probability(self, yseq: Sequence[str]) -> float:
        """Compute p(y | x) for labels of the sequence that was set.

        Parameters
        ----------
        yseq : sequence of str
            A label for each token.

        Returns
        -------
        float
            The probability; 0 with unknown labels.

        Raises
        ------
        SparseCRFError
            If x and y differ in length.
        """
        return math.exp(self.predictor.log_probability(self._current, yseq))

    def labels(self) -> list[str]:
        """Return the labels."""
        return [*self.predictor.names]

    def info(self) -> WeightSummary:
        """Return the non-zero weights, and the header of the file."""
        weights = self.predictor.weights
        summary = WeightSummary.of(weights)
        return summary._replace(header={"size": str(weights.size), **summary.header})

    def dump(self, filename: "str | PathLike[str] | None" = None) -> None:
        """Write the weights as text to a file, or to the standard output.

        Parameters
        ----------
        filename : str or path, optional
            The file.
        """
        lines = self.info().lines()
        if filename is None:
            sys.stdout.writelines(lines)
            return
        with open(filename, "w", encoding="utf8", newline="\n") as file:
            file.writelines(lines)
