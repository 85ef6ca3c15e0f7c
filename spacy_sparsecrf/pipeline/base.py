"""The component: spaCy's pipe life cycle around a corpus, a solver and a model.

This module is imported at each start of spaCy: what only its use needs is imported there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError
from ..names import Names
from ..targets.span_target import SpanTarget
from .compilation import announce_prediction
from .decoding_settings import DecodingSettings
from .explaining import ExplainedPipe
from .feature_state import keep, renewed
from .labelled import LabelledPipe
from .learning_settings import LearningSettings
from .prediction import Predictions, Reader, predict, store_scores
from .probabilities import Probabilities
from .schedule_settings import with_kin
from .session import Session
from .settings import Settings
from .skew import warn_of_skew
from .storage import FORMAT
from .streaming import is_endless, is_on_batches
from .upstream import annotated

if TYPE_CHECKING:
    from ..arrays import Memory
    from ..decoding import Decoder
    from ..features.naming import NameRecord
    from ..solvers.base import BatchSolver
    from ..targets.base import Target
    from .compiling import Compiled, Features, LabelIds


class SparseCRF(Probabilities, LabelledPipe, ExplainedPipe):
    """A linear-chain CRF, or a per-position model, with an elastic-net penalty, as a component.

    Minimises the sum over sequences of -log p(y | x), plus l1 |w|_1 + (l2 / 2) |w|_2^2.
    The attribute `model` is brought up to date with the training run by `predict` and by
    saving, not by `update`.

    vocab: the pipeline's.
    name: of the component, also the key of its loss.
    features: hashes the observation tests of Docs.
    target: the annotation that is learnt and written.
    solver: a batch solver.
    model: "chain" (a CRF), "maxent" or "memm": whether p(y | x) is normalised over label sequences,
        or at each token, without or with the label before.
    clusters: with model = "maxent" and many labels, about the square root of their number: p(y | x)
        is that of y's cluster times that of y in it, for sums over fewer labels; 0 for none.
        Clusters are runs of labels in their order.
    l1, l2: penalties, >= 0, not divided by anything.
    sequences: "sents" (sentences where a Doc has them, else the Doc) or "docs".
    dtype: "float32" or "float64", how weights are stored.
    precision: "float64", or "float32" to train in half the memory (see `ChainLoss`).
    n_threads: of training; 0 = one a core.
    overwrite: whether annotation that is already set is replaced.
    threshold: entities or spans of a lower probability are left out.
    decoding: the block of that name, see `DecodingSettings`.
    learning: settings of what is learnt of a corpus, see `learning_settings`.
    names: whether names of active tests are stored beside the model.
    scorer: scores Examples, or None.
    RAISES: SparseCRFError for a setting out of range.
    """

    def __init__(
        self,
        vocab: Vocab,
        name: str = "sparse_crf",
        *,
        features: "Features",
        target: "Target",
        solver: "BatchSolver",
        model: str = "chain",
        clusters: int = 0,
        l1: float = 0.5,
        l2: float = 1e-5,
        sequences: str = "sents",
        dtype: str = "float32",
        precision: str = "float64",
        n_threads: int = 0,
        overwrite: bool = False,
        threshold: float = 0.0,
        decoding: Mapping[str, Any] | None = None,
        learning: dict[str, Any] | None = None,
        names: bool = True,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        from ..model import CRFModel

        self.settings = Settings(
            model,
            clusters,
            float(l1),
            float(l2),
            sequences,
            dtype,
            precision,
            n_threads,
            overwrite,
            float(threshold),
        )
        self._record_names = names
        self.settings.check(name)
        if threshold and not isinstance(target, SpanTarget):
            raise SparseCRFError(Errors.SC504.format(name=name, value=threshold))
        self.decoding = DecodingSettings.read(name, decoding)
        self.learning = LearningSettings.read(name, learning)
        self.vocab = vocab
        self.name = name
        self.features = features
        self.target = target
        self.solver = solver
        self.scorer = scorer
        self.model = CRFModel((), dtype, kind=model)
        self.cfg: dict[str, Any] = {"format": FORMAT, "labels": [], "sequences": None}
        self._session = Session()
        self._names = Names()

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> Predictions:
        """Find the labels, without changing the Docs.

        RETURNS: an array [tokens] int32 of label ids for each Doc; its attribute `scores` has their
            probabilities if [components.NAME.decoding] scores = true.
        RAISES: SparseCRFError if there are tokens but no labels.
        """
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return Predictions.none(len(docs), self.decoding.scores)
        if not self.label_data:
            raise SparseCRFError(Errors.SC201.format(name=self.name))
        self._warn_of_skew(docs)
        settings, threshold = self.decoding, self.settings.threshold
        return predict(self._decoder(), self._reader(), docs, settings, threshold)

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[NDArray[np.int32]]) -> None:
        """Write predictions to the Docs.

        scores: an array [tokens] int32 of label ids for each Doc, from `predict`. Probabilities
            that come with it go to `doc.user_data["NAME_scores"]`.
        """
        docs, labels = list(docs), self.label_data
        span_scores = scores.span_scores if isinstance(scores, Predictions) else None
        self.target.write(docs, scores, labels, overwrite=self._overwrite, scores=span_scores)
        store_scores(self.name, docs, scores)

    def _reader(self) -> Reader:
        cut = self.settings.sequences
        return Reader(self.features, self.target, self.label_data, cut, self._overwrite)

    @property
    def _overwrite(self) -> bool:
        # `spacy find-threshold` puts the threshold into `cfg`, and gives the Docs that it has
        # annotated with the last one: what is set there is not to be kept.
        return self.settings.overwrite or "threshold" in self.cfg

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Score Examples by the scorer, which gets to know of the target's settings too."""
        scores: dict[str, Any] = super().score(examples, **{**self.target.scoring(), **kwargs})
        return scores

    def _decoder(self) -> "Decoder":
        self._refresh()
        decoder = self._session.decoder
        if decoder is None or not decoder.is_of(self.model):
            from ..decoding import Decoder

            announce_prediction()
            legal = self.decoding.legal(self.target, self.label_data)
            decoder = self._session.decoder = Decoder(self.model, legal)
        return decoder

    def _refresh(self) -> None:
        """Bring the model up to date with the training run and with labels added since."""
        newer = self._session.take_model()
        if newer is not None:
            self.model = newer
        for label in self.label_data[len(self.model.labels) :]:
            self.model.add_label(label)

    def _warn_of_skew(self, docs: Sequence[Doc]) -> None:
        if not self._session.warned and self.settings.sequences != "docs":
            self._session.warned = warn_of_skew(self.name, docs, self.cfg["sequences"])

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[str] | None = None,
        init_weights: str | Path | None = None,
        checkpoint: str | Path | None = None,
        corpus_dir: str | Path | None = None,
    ) -> None:
        """Read the training examples, once, and prepare a training run.

        get_examples: returns the training examples; all of them are held as arrays, or, where
            training is on batches, read for labels and a first step only. Without any gold label
            there is no training run, and `update` raises.
        nlp: the pipeline, for its [training] settings and the pipes before this one.
        labels: all labels, in order; default: those of the examples, sorted, with those added.
        init_weights: path of weights to continue from, see `load_init_weights`.
        checkpoint: path of a file, to which each step (on batches: each evaluation) writes where
            training stands; if it is there, training goes on from it.
        corpus_dir: path of a directory; what is as long as the corpus is then kept in files there
            instead of in memory (see `out_of_core`).
        RAISES: SparseCRFError for examples, labels, weights or a checkpoint that do not fit, and
            for a streamed corpus (max_epochs = -1) where the solver needs all of it.
        """
        from ..model import CRFModel
        from .compiling import checked, make_label_ids
        from .init_weights import load_init_names, load_init_weights
        from .out_of_core import open_store

        start = None if init_weights is None else load_init_weights(init_weights, self.name)
        learnt = () if start is None else start.labels
        if labels is not None:
            self.check_strings(labels)
            labels = self.target.complete(labels)
        label_ids = make_label_ids(self.name, labels, self.label_data, learnt)
        self.learning.check_extension(self.name)
        store = open_store(self, corpus_dir, nlp)
        examples = annotated(checked(self.name, get_examples), nlp, self)
        record = self._name_record(store)
        learning, settings = self.learning, self.settings
        plain = record or self.features
        read = with_kin(self.name, learning.schedule, settings, self.features, plain)
        compiled = self._compile(examples, read, label_ids, nlp, store)
        empty = CRFModel((), self.settings.dtype, kind=self.settings.model)
        self.model = empty if start is None else start
        self.cfg.update(labels=list(compiled.labels), sequences=compiled.cut)
        keep(self.features, self.cfg)
        self._names = Names() if init_weights is None else load_init_names(init_weights, self.name)
        self._session = Session(n_uncovered=compiled.n_tokens, record=record)
        if compiled.corpus is not None:
            if is_on_batches(nlp, self.solver, self.name):
                from .learner import start_learner

                parts = self, compiled.corpus, compiled.labels, start
                learner = start_learner(*parts, whole=not is_endless(nlp))
                self._session.begin_learning(self.name, learner, checkpoint)
            else:
                from .starting import start_training

                training = start_training(self, compiled.corpus, read, compiled, start)
                self._session.begin(self.name, training, checkpoint)
        elif start is not None:
            self.cfg["labels"] = list(dict.fromkeys((*start.labels, *compiled.labels)))
        self._refresh()

    def _name_record(self, store: "Memory") -> "NameRecord | None":
        from ..features.naming import NameRecord

        return NameRecord.of(self.features, store) if self._record_names else None

    def _compile(
        self,
        examples: Iterable[Example],
        features: "Features",
        label_ids: "LabelIds",
        nlp: Language | None,
        store: "Memory",
    ) -> "Compiled":
        from .compiling import compile_corpus

        parts = features, self.target, self.settings.sequences, label_ids
        with renewed(self.features, nlp):
            compiled = compile_corpus(examples, *parts, self.learning, self.name, store)
            if not compiled.n_examples:
                raise SparseCRFError(Errors.SC217.format(name=self.name))
            if not compiled.n_used:
                raise SparseCRFError(Errors.SC356)
            self.check_labels(compiled.labels)
            if compiled.labels:
                self.decoding.legal(self.target, compiled.labels)
        return compiled

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Any = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Do one iteration over the whole corpus, at most one before each `finish_update`.

        Or, where training is on batches (max_epochs = -1, or the solver's `on_batches`), learn
        from the examples.

        examples: not looked at if the solver has the corpus from `initialize`.
        drop: not used.
        sgd: if given, `finish_update` is called.
        losses: the objective is assigned to it, not added; on batches the batch's loss is added,
            each example's being that before its own step (the Perceptron's: wrong labels).
        RETURNS: the losses.
        RAISES: SparseCRFError if there is nothing to learn from, an unknown label in a batch, or
            if the objective or weights stop being finite.
        """
        losses = {} if losses is None else losses
        validate_examples(examples, "SparseCRF.update")
        total = losses.get(self.name, 0.0)
        losses[self.name] = self._session.update(self.name, examples, total)
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Any) -> None:
        """Allow the next iteration. The solver needs no optimizer."""
        self._session.stepped = False

    def rehearse(
        self,
        examples: Iterable[Example],
        *,
        sgd: Any = None,
        losses: dict[str, float] | None = None,
        **config: Any,
    ) -> dict[str, float]:
        """Leave the weights alone: a batch solver forgets nothing of its corpus.

        RETURNS: the losses, unchanged but for a 0 where the component has none yet.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        return losses

    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Keep the weights: optimizers average other pipes' weights, never these."""
        yield
