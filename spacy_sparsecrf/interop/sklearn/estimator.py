"""The scikit-learn estimator of a sparse CRF, with the interface of `sklearn_crfsuite.CRF`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ...errors import Errors, SparseCRFError
from ...training_log import Iteration
from ..peer_pickles import read_pickle
from ..sequences.item_encoding import SHOWN
from ..sequences.labels import accuracy, read_pairs, read_weights
from ..sequences.learner import Learner, Sequences
from ..sequences.opened_model import write_file
from ..sequences.predictor import Predictor
from ..sequences.tagger import Tagger
from ..weight_summary import WeightSummary
from .model_file import ModelFile

if TYPE_CHECKING:
    from spacy.language import Language
    from typing_extensions import Self

    from ...pipeline.component import SparseCRFPipe


class CRF(Learner, BaseEstimator):  # type: ignore[misc]
    """A linear-chain CRF for sequences of features, with the interface of `sklearn_crfsuite.CRF`.

    Minimises CRFsuite's objective, the sum over sequences of
    w_i (log Z(x_i) - sum_k theta_k F_k(x_i, y_i)), plus c1 |theta|_1 + c2 |theta|_2^2: c1 is
    l1 of a component, and c2 half of l2. X is a list of sequences, each a list of tokens, each
    a dict or an iterable of features; y is a list of lists of labels, with None for missing
    labels.

    Parameters
    ----------
    algorithm : str, default "lbfgs"
        "lbfgs" and "l2sgd" reach the minimum with OWL-QN. "ap" is the averaged perceptron,
        which has no penalty and also replaces "pa" and "arow", with warning SCW803.
    min_freq : int, default 1
        Features of fewer tokens are removed, whatever their labels, except for real-valued
        features.
    all_possible_states : bool, default False
        Whether every pair of a feature and a label may have a weight; otherwise only pairs
        that occur in training.
    all_possible_transitions : bool, default False
        Whether every transition may have a weight; otherwise only transitions that occur in
        training. If `all_possible_states` is true too, this includes features in `bigrams`.
    c1 : float, default 0
        The L1 penalty.
    c2 : float, default 1
        The L2 penalty.
    max_iterations : int, optional
        Maximum number of iterations, each about one pass over the sequences. With c1 > 0, the
        first iterations (at most 4) are passes of a warm start.
    num_memories : int, optional
        History size of L-BFGS.
    max_linesearch : int, optional
        Maximum number of evaluations in a line search.
    period : int, default 10
        Iterations between two reports.
    delta : float, default 1e-5
        Stop when `period` iterations lower the objective by less than this fraction, twice in
        a row.
    epsilon : float, default 1e-3
        Stop when no weight violates the optimality conditions by more than this. If
        0 < c1 < 0.1, it is multiplied by c1 / 0.1.
    verbose : bool, default False
        Whether to print a line after each `period` to the standard output.
    model_filename : str, optional
        File to which `fit` writes the weights. An estimator that is not fitted reads it, and
        also reads CRFsuite's models.
    solver : str or BatchSolver, optional
        A batch solver, or its name, such as "BCD", instead of `algorithm`.
    bigrams : sequence of str or bool, default ()
        Features that are also conjoined with pairs of labels, as keys of dicts or as
        attributes; True for all. Transitions always have weights.
    start_label : bool, default False
        Whether the first token of a sequence has a transition from a start label.
    n_threads : int, default 0
        Threads of training; 0 = one per core, or one if there is little to do.
    dtype : str, default "float32"
        Type of stored weights, "float32" or "float64".
    once : sequence of str, default ()
        Labels that predictions give to at most one run of tokens each; also types, such as LOC
        of the labels B-LOC and I-LOC, for at most one span. It may change after `fit`;
        probabilities do not depend on it.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations.
    objective_, optimality_ : float
        Objective, and violation of the optimality conditions, at the end of training.
    converged_ : bool
        Whether training has converged.
    training_log_ : TrainingLog
        One `Iteration` for each `period`, which notebooks show as a curve.

    Notes
    -----
    The other parameters of CRFsuite are accepted. A parameter that has no effect raises
    warning SCW802 if it is set. None is CRFsuite's default.

    Examples
    --------
    >>> X = [[{"word": "met"}, {"word": "Omar"}], [{"word": "Omar"}]]
    >>> y = [["O", "PER"], ["PER"]]
    >>> crf = CRF(c1=0.1, c2=0.01).fit(X, y)
    >>> crf
    CRF(c1=0.1, c2=0.01)
    >>> crf.predict_single([{"word": "Omar"}, {"word": "met"}])
    ['PER', 'O']
    """

    model_: Tagger | None = None
    _file: ModelFile | None = None

    @classmethod
    def from_pickle(cls, path: str | Path) -> "Self":
        """Open a pickle of `sklearn_crfsuite.CRF`, also by joblib, without that program.

        Parameters
        ----------
        path : str or Path
            The file, which may be compressed by gzip, bz2, LZMA or joblib's zlib.

        Returns
        -------
        CRF
            An estimator with its parameters and weights.

        Raises
        ------
        SparseCRFError
            If the file is damaged, or has other names than such files have: none is imported.
        """
        attributes = read_pickle(Path(path).read_bytes(), path)
        params = attributes.keys() & {field.name for field in fields(cls)}
        crf = cls(**{name: attributes[name] for name in params})
        if data := attributes["modelfile"]:
            crf.model_ = Tagger().open_inmemory(data, path)
        return crf

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

        Parameters
        ----------
        X : iterable of sequences
            Sequences of tokens, each a dict or an iterable of features.
        y : iterable of sequences of str
            Their labels, with None for missing labels.
        X_dev, y_dev : iterable of sequences, optional
            Held-out sequences and labels, for the score of each `Iteration`.
        sample_weight : array [S], optional
            Weights of the S sequences, at least 0.
        callback : callable, optional
            Called with an `Iteration` after each `period` iterations.

        Returns
        -------
        CRF
            The estimator itself.

        Raises
        ------
        SparseCRFError
            If features, labels or settings are invalid.
        """
        held_out = () if X_dev is None else X_dev, () if y_dev is None else y_dev
        weights = self.learn(X, y, held_out, sample_weight=sample_weight, callback=callback)
        self.model_ = Tagger(self.once, weights)
        if self.model_filename is not None:
            write_file(self.model_filename, weights.to_bytes())
        return self

    def save(self, path: str | Path) -> None:
        """Write the weights in the format of CRFsuite, which other programs read, too.

        Weights of the start label become weights of the attribute `__BOS__`, which the first
        token of a sequence then needs.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        SparseCRFError
            If there are weights of attributes and label pairs (`bigrams`).
        """
        write_file(path, self._predictor.trained.to_crfsuite())

    # Prediction

    def predict(self, X: Iterable[Any]) -> NDArray[np.object_]:
        """Predict the most probable labels of each sequence.

        Parameters
        ----------
        X : iterable of sequences
            S sequences of tokens.

        Returns
        -------
        array
            [S] object array of lists of labels; as in sklearn-crfsuite, [S, T] if all sequences
            have T tokens.
        """
        return np.array([*self._predictor.labels(X)], np.object_)

    def predict_single(self, xseq: Iterable[Any]) -> list[str]:
        """Predict the most probable labels of one sequence.

        Parameters
        ----------
        xseq : sequence of tokens
            The sequence.

        Returns
        -------
        list of str
            A label for each token.
        """
        return self._predictor.label(xseq)

    def predict_marginals(self, X: Iterable[Any]) -> NDArray[np.object_]:
        """Compute the probabilities of all labels of each token, p(y_t = y | x).

        Parameters
        ----------
        X : iterable of sequences
            S sequences of tokens.

        Returns
        -------
        array
            [S] object array of lists, with one dict by label for each token; [S, T] if all
            sequences have T tokens.
        """
        return np.array([*self._predictor.marginals(X)], np.object_)

    def predict_marginals_single(self, xseq: Iterable[Any]) -> list[dict[str, float]]:
        """Compute p(y_t = y | x) for one sequence.

        Parameters
        ----------
        xseq : sequence of tokens
            The sequence.

        Returns
        -------
        list of dict
            For each token, the probability of each label.
        """
        return next(self._predictor.marginals([xseq]))

    def predict_log_probability(self, X: Sequences, y: Sequences) -> NDArray[np.float64]:
        """Compute log p(y | x) of each sequence.

        Parameters
        ----------
        X : iterable of sequences
            S sequences of tokens.
        y : iterable of sequences of str
            Their labels.

        Returns
        -------
        array
            [S] float64; -inf for unknown labels.

        Raises
        ------
        SparseCRFError
            If X and y differ in length.
        """
        sequences, gold = read_pairs(X, y)
        predictor = self._predictor
        return np.array(
            [
                predictor.log_probability(predictor.chain(tokens), labels)
                for tokens, labels in zip(sequences, gold, strict=True)
            ]
        )

    def score(self, X: Sequences, y: Sequences, sample_weight: ArrayLike | None = None) -> float:
        """Return the token accuracy; tokens without a gold label are ignored.

        Parameters
        ----------
        X : iterable of sequences
            S sequences of tokens.
        y : iterable of sequences of str
            Their gold labels.
        sample_weight : array [S], optional
            Weights of the sequences.

        Returns
        -------
        float
            Share of correct labels.

        Raises
        ------
        SparseCRFError
            If X and y differ in length.
        """
        tokens, labels = read_pairs(X, y)
        weights = read_weights(sample_weight, len(tokens))
        return accuracy(self._predictor.labels(tokens), labels, weights)

    # Weights

    @property
    def tagger_(self) -> Tagger | None:
        """The trained model with the methods of `pycrfsuite.Tagger`."""
        path = self.model_filename
        if self.model_ is None and path is not None and Path(path).is_file():
            self.model_ = Tagger(self.once)
            self.model_.open(path)
        if self.model_ is not None and self.model_.once != self.once:
            self.model_ = Tagger(self.once, self.model_.predictor.weights)
        return self.model_

    @property
    def modelfile(self) -> ModelFile:
        """The model's file: `model_filename`, or a temporary file."""
        if self._file is None or self._file.tagger is not self.tagger_:
            self._file = ModelFile(self.tagger_, self.model_filename, self.keep_tempfiles)
        return self._file

    @property
    def _predictor(self) -> Predictor:
        if (tagger := self.tagger_) is None:
            raise NotFittedError(Errors.SC805.format(name=type(self).__name__))
        return tagger.predictor

    @property
    def _summary(self) -> WeightSummary:
        return WeightSummary.of(self._predictor.weights)

    @property
    def classes_(self) -> list[str] | None:
        """The labels, sorted."""
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def attributes_(self) -> list[str] | None:
        """The features with weights."""
        return None if self.tagger_ is None else self._predictor.weights.attributes

    @property
    def num_attributes_(self) -> int | None:
        """Number of features with weights."""
        return None if self.tagger_ is None else len(self._predictor.weights.attributes)

    @property
    def size_(self) -> int | None:
        """Size of the file of the model in bytes."""
        return None if self.tagger_ is None else self._predictor.weights.size

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """The non-zero weights of features with labels, by (feature, label)."""
        return None if self.tagger_ is None else self._summary.state_features

    @property
    def transition_features_(self) -> dict[tuple[str | None, str], float] | None:
        """The non-zero weights of transitions, by (label before, label); see `WeightSummary`."""
        return None if self.tagger_ is None else self._summary.transitions

    @property
    def bigram_features_(self) -> dict[tuple[str, str | None, str], float] | None:
        """The non-zero weights of features with pairs, by (feature, label before, label)."""
        return None if self.tagger_ is None else self._summary.bigram_features

    # Components

    def to_pipe(
        self,
        nlp: "Language",
        features: Mapping[str, str] | None = None,
        factory: str = "sparse_crf",
        config: Mapping[str, Any] | None = None,
    ) -> "SparseCRFPipe":
        """Add a component with these weights to a pipeline; its templates generate the features.

        Each feature with weights must be a template feature. The component predicts the same
        labels if its templates read the same values.

        Parameters
        ----------
        nlp : Language
            The pipeline.
        features : mapping of str to str, optional
            Template names by feature, or by key of a dict, as in {"word.lower()": "lower[0]"}.
        factory : str, default "sparse_crf"
            "sparse_crf" for labels as tags, or another factory.
        config : mapping, optional
            The component's block of the config.

        Returns
        -------
        SparseCRFPipe
            The component.

        Raises
        ------
        SparseCRFError
            If templates cannot express a feature, or two features have one name.
        """
        from .pipes import make_pipe

        trained = self._predictor.trained
        if trained.real:
            raise SparseCRFError(Errors.SC820.format(names=", ".join(trained.real[:SHOWN])))
        l1, l2 = self._penalty
        block = {"l1": l1, "l2": l2, **(config or {})}
        block["learning"] = {"dtype": trained.model.dtype, **block.get("learning", {})}
        if self.once:
            block["decoding"] = {"once": [*self.once], **block.get("decoding", {})}
        block["features"] = {"start_label": trained.has_start, **block.get("features", {})}
        return make_pipe(
            nlp,
            trained.model,
            trained.attributes,
            template_names=features or {},
            factory=factory,
            config=block,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return self.tagger_ is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags
