"""The scikit-learn estimator of a sparse CRF on sequences of features."""

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ...corpus.encoded import MISSING, Observations
from ...errors import Errors, SparseCRFError, SparseCRFWarning, Warnings, warn
from ...model.model import CRFModel
from ...registry import crf_solvers
from .attributes import Attributes, Vocabulary, read_attributes
from .encoding import ALWAYS, Encoded, GoldLabels, bigrams_of, encode, find_bigrams, observe

if TYPE_CHECKING:
    from typing_extensions import Self

    from ...decoding.decoder import Decoder
    from ...solvers.base import BatchSolver
    from ...solvers.warm_start import WarmStart
    from ...training.training import Training

logger = logging.getLogger(__name__)

Sequences: TypeAlias = Iterable[Sequence[Any]]
_BLOCK = 256  # sequences per batch of prediction
_SHOWN = 10  # features in messages
_CACHES = ("_decoder", "_vocabulary", "_tagger", "_modelfile")


class EstimatorSettings(NamedTuple):
    """Settings of training; see `SparseCRF`."""

    l1: float
    l2: float
    solver: "str | BatchSolver" = "OWLQN"
    bigrams: Sequence[str] | bool = ()
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    start_label: bool = False
    min_freq: int = 1
    max_iterations: int | None = None
    n_threads: int = 0
    dtype: str = "float32"
    warm_start: "WarmStart | None" = None

    def check(self) -> None:
        """Check settings that no other code validates. RAISES: SparseCRFError."""
        if isinstance(self.bigrams, str):
            self._refuse("bigrams", "it is one string: give a list of them, or True")
        for name in ("min_freq", "max_iterations"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | np.integer) or value < 0):
                self._refuse(name, "it is no whole number that is not negative")

    def _refuse(self, name: str, reason: str) -> NoReturn:
        values = {"name": name, "value": getattr(self, name), "reason": reason}
        raise SparseCRFError(Errors.SC809.format(**values))


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Base class of `CRF` and `SparseCRF`.

    classes_: labels, sorted; model_: the non-zero weights; attributes_: the features with such
    weights; real_: the features with other values than 0 and 1; legal_: mask of valid transitions,
    None if all are valid; objective_, optimality_, n_iter_: at the end of training (see
    `StepReport`).
    """

    def settings(self) -> EstimatorSettings:
        """Translate the parameters."""
        return EstimatorSettings(**self.get_params(deep=False))

    # Training

    def fit(self, X: Sequences, y: Sequences, sample_weight: ArrayLike | None = None) -> "Self":
        """Train on sequences.

        X: sequences of tokens; y: their labels; sample_weight: [S], >= 0, of sequences.
        RETURNS: itself. RAISES: SparseCRFError for invalid features, labels or settings.
        """
        self._learn_from(X, y, sample_weight, self.settings())
        return self

    def _learn_from(
        self,
        X: Sequences,
        y: Sequences,
        sample_weight: ArrayLike | None,
        settings: EstimatorSettings,
    ) -> None:
        """See `fit`."""
        from ...training.training import Training

        settings.check()
        vocabulary = Vocabulary()
        attributes = read_attributes(X, vocabulary)
        gold = _read_gold(y, attributes, sample_weight)
        bigrams = find_bigrams(vocabulary.texts, settings.bigrams, settings.start_label)
        n_attributes = len(vocabulary.texts)
        encoded = encode(attributes, n_attributes, gold, bigrams, settings.min_freq)
        training = Training(
            encoded.corpus,
            gold.names,
            _make_solver(settings.solver),
            l1=settings.l1,
            l2=settings.l2,
            observed_only=not (settings.all_possible_states and settings.all_possible_transitions),
            also=_also(settings, encoded, len(gold.names)),
            warm_start=settings.warm_start,
            n_threads=settings.n_threads,
            dtype=settings.dtype,
        )
        self.real_ = [vocabulary.texts[number - 1] for number in encoded.real]
        pairs = zip(self.real_, encoded.real, strict=True)
        ignored = [text for text, number in pairs if bigrams.chosen[number]]
        if ignored:
            warn(Warnings.SCW805.format(names=", ".join(ignored[:_SHOWN])))
        self._run(training, settings, vocabulary.texts)
        self._learn(training.model(), vocabulary.texts)

    def _run(self, training: "Training", settings: EstimatorSettings, texts: list[str]) -> None:
        """Iterate until convergence or max_iterations. texts: see `_learn`."""
        self.n_iter_, max_iterations = 0, settings.max_iterations
        while True:
            report = training.step()
            self.n_iter_ += 1
            logger.info("iteration %d: %s", self.n_iter_, report)
            if report.converged or self.n_iter_ == max_iterations:
                break
        self.objective_, self.optimality_ = report.objective, report.optimality
        if not report.converged:
            values = {"n": max_iterations, "optimality": report.optimality}
            message = Warnings.SCW801.format(name=type(self).__name__, **values)
            warnings.warn(message, SparseCRFWarning, stacklevel=4)

    def _learn(self, model: CRFModel, texts: Sequence[str]) -> None:
        """Store a model, with its keys renumbered to the features with weights.

        texts: attributes, in the order of the model's keys.
        """
        tables = model.unigram, model.bigram
        keys = np.unique(np.concatenate([table.keys for table in tables]))
        keys = keys[keys > ALWAYS]
        first = np.uint64(ALWAYS + 1)
        known = np.append(np.uint64(ALWAYS), keys)
        unigram, bigram = (
            replace(table, keys=(np.searchsorted(known, table.keys) + ALWAYS).astype(np.uint64))
            for table in tables
        )
        self.attributes_ = [texts[key] for key in (keys - first).tolist()]
        self.classes_ = list(model.labels)
        self.legal_ = None
        self.model_ = CRFModel(model.labels, model.dtype, unigram, bigram)
        self._drop_caches()

    def _drop_caches(self) -> None:
        for name in _CACHES:
            self.__dict__.pop(name, None)

    @property
    def partial_fit(self) -> NoReturn:
        """Not supported: the solver needs all sequences at once. RAISES: AttributeError."""
        raise AttributeError(Errors.SC806.format(name=type(self).__name__))

    # Prediction

    def predict(self, X: Iterable[Any]) -> NDArray[np.object_]:
        """Predict the most probable labels of each sequence. RETURNS: [S] object array of lists."""
        decoder = self._take_decoder()
        found: list[list[str]] = []
        for observations in self._observe(X):
            ids = decoder.viterbi(observations).tolist()
            labels = [*map(self.classes_.__getitem__, ids)]
            found += [labels[a:b] for a, b in pairwise(observations.offsets.tolist())]
        return _of_objects(found)

    def predict_single(self, xseq: Iterable[Any]) -> list[str]:
        """Predict the most probable labels of one sequence."""
        labels: list[str] = self.predict([xseq])[0]
        return labels

    def predict_marginals(self, X: Iterable[Any]) -> NDArray[np.object_]:
        """Compute p(y_t = y | x). RETURNS: [S] of lists with one dict by label for each token."""
        decoder = self._take_decoder()
        found: list[list[dict[str, float]]] = []
        for observations in self._observe(X):
            rows = decoder.marginals(observations).tolist()
            tokens = [dict(zip(self.classes_, row, strict=True)) for row in rows]
            found += [tokens[a:b] for a, b in pairwise(observations.offsets.tolist())]
        return _of_objects(found)

    def predict_marginals_single(self, xseq: Iterable[Any]) -> list[dict[str, float]]:
        """Compute p(y_t = y | x) for one sequence. RETURNS: for each token, a dict by label."""
        tokens: list[dict[str, float]] = self.predict_marginals([xseq])[0]
        return tokens

    def predict_log_probability(self, X: Sequences, y: Sequences) -> NDArray[np.float64]:
        """Compute log p(y | x) of each sequence: [S]; -inf for unknown labels.

        RAISES: SparseCRFError if X and y differ in length.
        """
        decoder, gold, found = self._take_decoder(), iter(y), [np.empty(0)]
        ids = {label: number for number, label in enumerate(self.classes_)}
        for observations in self._observe(X):
            lengths = np.diff(observations.offsets)
            labels = as_lists(islice(gold, len(lengths)))
            check_lengths(lengths.tolist(), labels)
            texts = (each if isinstance(each, str) else "" for each in chain(*labels))
            given = np.array([ids.get(text, MISSING) for text in texts], np.int32)
            known = decoder.log_probability(observations, np.maximum(given, 0))
            n_unknown = np.append(0, np.cumsum(given == MISSING))[observations.offsets]
            known[np.diff(n_unknown) > 0] = -np.inf
            found.append(known)
        if rest := [*gold]:
            n = sum(map(len, found))
            check_lengths([0] * n, [()] * n + rest)
        return np.concatenate(found)

    def score(self, X: Sequences, y: Sequences, sample_weight: ArrayLike | None = None) -> float:
        """Return the token accuracy; tokens without a gold label are ignored.

        sample_weight: [S], of sequences. RAISES: SparseCRFError if X and y differ in length.
        """
        found, y = self.predict(X), as_lists(y)
        check_lengths([*map(len, found)], y)
        weights = _weights(sample_weight, len(found))
        right = total = 0.0
        for ours, gold, weight in zip(found, y, weights.tolist(), strict=True):
            right += weight * sum(a == b for a, b in zip(ours, gold, strict=True))
            total += weight * sum(label is not None for label in gold)
        return right / total if total else 0.0

    def _observe(self, X: Iterable[Any]) -> Iterator[Observations]:
        """Read sequences in batches."""
        vocabulary, bigrams = self._vocabulary
        todo, first = iter(X), 0
        while block := [*islice(todo, _BLOCK)]:
            yield observe(read_attributes(block, vocabulary, first), bigrams)
            first += len(block)

    def _take_decoder(self) -> "Decoder":
        """Return the decoder of the model. RAISES: NotFittedError if there is no model."""
        from ...decoding.decoder import Decoder

        if not hasattr(self, "model_"):
            raise NotFittedError(Errors.SC805.format(name=type(self).__name__))
        if not hasattr(self, "_decoder"):
            known = {text: number for number, text in enumerate(self.attributes_, start=1)}
            self._vocabulary = Vocabulary(known), bigrams_of(self.model_, len(known))
            self._decoder = Decoder(self.model_, self.legal_)
        return self._decoder

    # Weights

    @property
    def state_features_(self) -> dict[tuple[str, str], float]:
        """The non-zero weights of features with labels, by (feature, label)."""
        return {
            (self._text(key), self.classes_[label]): float(weight)
            for (key, _, label), weight in self.model_.unigram.entries()
        }

    @property
    def transition_features_(self) -> dict[tuple[str | None, str], float]:
        """The non-zero weights of transitions, by (label before, label).

        The label before the first label is None.
        """
        before = [*self.classes_, None]
        return {
            (before[previous], self.classes_[label]): float(weight)
            for (key, previous, label), weight in self.model_.bigram.entries()
            if key == ALWAYS
        }

    @property
    def bigram_features_(self) -> dict[tuple[str, str | None, str], float]:
        """The non-zero weights of features with pairs, by (feature, label before, label)."""
        before = [*self.classes_, None]
        return {
            (self._text(key), before[previous], self.classes_[label]): float(weight)
            for (key, previous, label), weight in self.model_.bigram.entries()
            if key != ALWAYS
        }

    def _text(self, key: int) -> str:
        text: str = self.attributes_[key - ALWAYS - 1]
        return text

    # Components

    def to_pipe(
        self,
        nlp: Any,
        features: Mapping[str, str] | None = None,
        factory: str = "sparse_crf",
        config: Mapping[str, Any] | None = None,
    ) -> Any:
        """Add a component with these weights to a pipeline; its templates generate the features.

        Each feature with weights must be a template feature (see `pipes`). The component predicts
        the same labels if its templates read the same values.

        nlp: the pipeline; features: template names by feature, or by key of a dict, as in
        {"word.lower()": "lower[0]"}; factory: "sparse_crf" for labels as tags, or another; config:
        of the component's block. RETURNS: the component.
        RAISES: SparseCRFError if templates cannot express a feature, or two features have one name.
        """
        from .pipes import make_pipe

        self._take_decoder()
        if real := [text for text in getattr(self, "real_", ()) if text in self.attributes_]:
            raise SparseCRFError(Errors.SC820.format(names=", ".join(real[:_SHOWN])))
        settings, model = self.settings(), self.model_
        start_label = bool((model.bigram.previous == len(model.labels)).any())
        own = {"l1": settings.l1, "l2": settings.l2, "dtype": model.dtype, **(config or {})}
        own["features"] = {"start_label": start_label, **own.get("features", {})}
        return make_pipe(nlp, self.model_, self.attributes_, features or {}, factory, own)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without caches."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _CACHES}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags


class SparseCRF(Estimator):
    """A linear-chain CRF with an elastic-net penalty, for sequences of features without Docs.

    Minimises, as the component does (Lavergne 2010, equations 3 and 6), the sum over sequences of
    w_i (log Z(x_i) - sum_k theta_k F_k(x_i, y_i)), plus l1 |theta|_1 + l2/2 |theta|_2^2. X is a
    list of sequences, each a list of tokens, each a dict or a list of features (see `attributes`);
    y is a list of lists of labels, with None for missing labels.

    l1, l2: penalties, >= 0, not divided by anything: CRFsuite's c1, and twice its c2.
    solver: name of a batch solver, such as "OWLQN", or a solver.
    bigrams: features that are also conjoined with pairs of labels, as keys of dicts or as
        attributes; True for all. Transitions always have weights.
    all_possible_states: whether every pair of a feature and a label may have a weight; False: only
        pairs that occur in training, as in CRFsuite.
    all_possible_transitions: whether every transition may have a weight; False: only those that
        occur in training. If all_possible_states is true too, this includes features in `bigrams`.
    start_label: whether the first token of a sequence has a transition from a start label.
    min_freq: features of fewer tokens are removed, except for real-valued features.
    max_iterations: maximum number of outer iterations; None: until convergence.
    n_threads: of training; 0 = one per core.
    dtype: of stored weights, "float32" or "float64".
    """

    def __init__(
        self,
        l1: float = 0.5,
        l2: float = 1e-5,
        *,
        solver: "str | BatchSolver" = "OWLQN",
        bigrams: Sequence[str] | bool = (),
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        start_label: bool = False,
        min_freq: int = 1,
        max_iterations: int | None = None,
        n_threads: int = 0,
        dtype: str = "float32",
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.solver = solver
        self.bigrams = bigrams
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.start_label = start_label
        self.min_freq = min_freq
        self.max_iterations = max_iterations
        self.n_threads = n_threads
        self.dtype = dtype

    @classmethod
    def from_pipe(cls, pipe: Any) -> "SparseCRF":
        """Create an estimator with the weights of a component, which predicts the same labels.

        Its features are the component's feature names, which `read_docs` reads from Docs.
        RAISES: SparseCRFError if features have no names, if real-valued features have weights, or
            for settings that change predictions and that an estimator lacks, such as thresholds.
        """
        from .pipes import check_plain, take_weights

        setup = pipe.setup
        check_plain(pipe.name, setup.settings)
        model, attributes, bigrams = take_weights(pipe)
        start, settings = setup.features.start_label, setup.settings
        options = {"bigrams": bigrams, "start_label": start, "dtype": settings.dtype}
        crf = cls(settings.l1, settings.l2, solver=setup.solver, **options)
        crf.model_, crf.attributes_, crf.classes_ = model, attributes, list(model.labels)
        crf.legal_ = setup.valid_transitions(pipe.label_data)
        return crf


def _of_objects(sequences: list[Any]) -> NDArray[np.object_]:
    """Return an array [S] of lists, even if all have the same length."""
    found = np.empty(len(sequences), np.object_)
    found[:] = sequences
    return found


def _also(settings: EstimatorSettings, encoded: Encoded, n_labels: int) -> NDArray[np.int64]:
    """Return the coordinates of permitted weights that are not observed: [n], ascending."""
    corpus, also = encoded.corpus, encoded.zeros
    n_unigram = len(corpus.unigram_keys) * n_labels
    if settings.all_possible_states:
        also = np.arange(n_unigram)
    if settings.all_possible_transitions:
        test = int(np.flatnonzero(corpus.bigram_keys == ALWAYS)[0])
        n_pairs = n_labels * (n_labels + settings.start_label)
        pairs = np.arange(test * n_pairs, (test + 1) * n_pairs)
        also = np.concatenate((also, n_unigram + pairs))
    return also


def _make_solver(solver: "str | BatchSolver") -> "BatchSolver":
    """Create a solver by its name. RAISES: SparseCRFError for an unknown name."""
    if not isinstance(solver, str):
        return solver
    for name in (solver, f"spacy_sparsecrf.{solver}.v1"):
        if name in crf_solvers:
            made: BatchSolver = crf_solvers.get(name)()
            return made
    found = crf_solvers.get_all().items()
    known = ", ".join(sorted(name.split(".")[1] for name, _ in found))
    raise SparseCRFError(Errors.SC807.format(value=solver, known=known))


def _read_gold(y: Sequences, attributes: Attributes, sample_weight: ArrayLike | None) -> GoldLabels:
    """Read labels and weights of sequences. RAISES: SparseCRFError."""
    lengths, y = np.diff(attributes.offsets), as_lists(y)
    check_lengths(lengths.tolist(), y)
    labels = [*chain.from_iterable(y)]
    if not all(label is None or isinstance(label, str) for label in labels):
        _refuse_label(y)
    names = sorted({str(label) for label in labels if label is not None})
    if not names:
        raise SparseCRFError(Errors.SC305)
    ids: dict[str | None, int] = {label: i for i, label in enumerate(names)}
    ids[None] = MISSING
    found = np.fromiter(map(ids.__getitem__, labels), np.int32, len(labels))
    return GoldLabels(names, found, _weights(sample_weight, len(lengths)))


def as_lists(y: Iterable[Any]) -> list[Any]:
    """Return sequences of labels as lists, also of generators. RAISES: SparseCRFError."""
    found = []
    for number, labels in enumerate(y):
        if not isinstance(labels, str | Iterable):
            raise SparseCRFError(Errors.SC804.format(number=number, token=0, label=labels))
        found.append(labels if isinstance(labels, str) else [*labels])
    return found


def check_lengths(lengths: Sequence[int], y: Sequence[Any], suffix: str = "") -> None:
    """Check that there is one label for each token.

    lengths: of the sequences; suffix: of the names X and y in messages. RAISES: SparseCRFError.
    """
    if len(y) != len(lengths):
        counts = {"n_sequences": len(lengths), "found": len(y), "each": "list of labels"}
        raise SparseCRFError(Errors.SC802.format(x=f"X{suffix}", name=f"y{suffix}", **counts))
    for number, (n, gold) in enumerate(zip(lengths, y, strict=True)):
        if isinstance(gold, str) or len(gold) != n:
            counts = {"number": number, "n_tokens": n, "n_labels": len(gold)}
            raise SparseCRFError(Errors.SC803.format(suffix=suffix, **counts))


def _refuse_label(y: Sequences) -> NoReturn:
    """Raise SparseCRFError for the first label that is not a string or None."""
    places = ((s, t, label) for s, gold in enumerate(y) for t, label in enumerate(gold))
    s, t, label = next(p for p in places if not (p[2] is None or isinstance(p[2], str)))
    raise SparseCRFError(Errors.SC804.format(number=s, token=t, label=label))


def _weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """Return the weights of n sequences. RAISES: SparseCRFError unless [n], finite and >= 0."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.array(sample_weight, np.float64)
    if weights.shape != (n,):
        values = {"x": "X", "name": "sample_weight", "found": weights.size, "each": "weight"}
        raise SparseCRFError(Errors.SC802.format(n_sequences=n, **values))
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        reason = "weights are finite and not negative"
        raise SparseCRFError(
            Errors.SC809.format(name="sample_weight", value=float(weights.min()), reason=reason)
        )
    return weights
