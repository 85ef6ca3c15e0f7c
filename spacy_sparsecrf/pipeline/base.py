"""The component: spaCy's pipe life cycle around a corpus, a solver and a model.

This module is imported at each start of spaCy: what only its use needs is imported there.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.util import logger
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError, SparseCRFWarning, Warnings
from ..names import Names
from .compilation import announce_prediction, announce_training
from .explaining import ExplainedPipe
from .session import Session
from .settings import Settings
from .skew import skew_of
from .storage import FORMAT
from .upstream import annotated

if TYPE_CHECKING:
    from ..corpus import EncodedCorpus
    from ..decoding import Decoder
    from ..features.naming import NameRecord
    from ..model import CRFModel
    from ..solvers.base import BatchSolver
    from ..targets.base import Target
    from .compiling import Compiled, Features


class SparseCRF(ExplainedPipe):
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
        names: bool = True,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        from ..model import CRFModel

        self.settings = Settings(
            model, clusters, float(l1), float(l2), sequences, dtype, precision, n_threads, overwrite
        )
        self._record_names = names
        self.settings.check(name)
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

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of their ids."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> tuple[str, ...]:
        """The labels, as `spacy init labels` writes them and `initialize` takes them."""
        return self.labels

    @property
    def is_resizable(self) -> bool:
        """Whether labels can be added: always, with zero weights."""
        return True

    def add_label(self, label: str) -> int:
        """Add a label; its weights are zero until the component is initialized with it.

        RETURNS: 1, or 0 if the label is there already.
        RAISES: SparseCRFError for a label that is not a non-empty string, or that the target
            cannot write.
        """
        self._check_label(label)
        if label in self.labels:
            return 0
        self.cfg["labels"].append(label)
        self._refresh()
        return 1

    def _check_label(self, label: str) -> None:
        if not isinstance(label, str) or not label:
            raise SparseCRFError(Errors.SC212.format(name=self.name, label=label))
        self.target.check_label(label)

    def set_output(self, nO: int) -> None:
        """Do nothing if the number of outputs is `nO`; they grow by `add_label`.

        RAISES: SparseCRFError if it is not.
        """
        if nO != len(self.labels):
            raise SparseCRFError(
                Errors.SC213.format(name=self.name, n=nO, n_labels=len(self.labels))
            )

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> list[NDArray[np.int32]]:
        """Find the most probable labels, without changing the Docs.

        RETURNS: an array [tokens] int32 of label ids for each Doc.
        RAISES: SparseCRFError if there are tokens but no labels.
        """
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return [np.zeros(0, dtype=np.int32) for _ in docs]
        if not self.labels:
            raise SparseCRFError(Errors.SC201.format(name=self.name))
        self._warn_of_skew(docs)
        decoder, cut = self._decoder(), self.settings.sequences
        read = getattr(self.features, "readings", None)
        parts = [self.features(docs, cut)] if read is None else read(docs, cut)
        found = [decoder.viterbi(part) for part in parts]
        ids = found[0] if len(found) == 1 else np.concatenate(found)
        ends = [0, *accumulate(map(len, docs))]
        return [ids[first:last] for first, last in pairwise(ends)]

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[NDArray[np.int32]]) -> None:
        """Write predictions to the Docs.

        scores: an array [tokens] int32 of label ids for each Doc, from `predict`.
        """
        self.target.write(list(docs), scores, self.labels, overwrite=self.settings.overwrite)

    def _decoder(self) -> "Decoder":
        self._refresh()
        decoder = self._session.decoder
        if decoder is None or not decoder.is_of(self.model):
            from ..decoding import Decoder

            announce_prediction()
            decoder = self._session.decoder = Decoder(self.model)
        return decoder

    def _refresh(self) -> None:
        """Bring the model up to date with the training run and with labels added since."""
        newer = self._session.take_model()
        if newer is not None:
            self.model = newer
        for label in self.labels[len(self.model.labels) :]:
            self.model.add_label(label)

    def _warn_of_skew(self, docs: Sequence[Doc]) -> None:
        if self._session.warned or self.settings.sequences == "docs":
            return
        skew = skew_of(docs, self.cfg["sequences"])
        if skew is not None:
            self._session.warned = True
            trained, given = skew
            message = Warnings.SCW202.format(name=self.name, trained=trained, given=given)
            warnings.warn(message, SparseCRFWarning, stacklevel=2)

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[str] | None = None,
        init_weights: str | Path | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        """Read the training examples, once, and prepare a training run.

        get_examples: returns the training examples; all of them are held as arrays. Without
            any gold label there is no training run, and `update` raises.
        nlp: the pipeline, for its [training] settings and the pipes before this one.
        labels: all labels, in order; default: those of the examples, sorted, with those added.
        init_weights: path of weights to continue from, see `load_init_weights`.
        checkpoint: path of a file, to which each step writes where training stands; if it is
            there, training goes on from it.
        RAISES: SparseCRFError for examples, labels, weights or a checkpoint that do not fit, and
            for a streamed corpus (max_epochs = -1).
        """
        from ..model import CRFModel
        from .compiling import checked, compile_corpus, make_label_ids
        from .init_weights import load_init_names, load_init_weights

        start = None if init_weights is None else load_init_weights(init_weights, self.name)
        learnt = () if start is None else start.labels
        label_ids = make_label_ids(self.name, labels, self.labels, learnt)
        examples = annotated(checked(self.name, get_examples), nlp, self)
        record = self._name_record()
        features = record or self.features
        compiled = compile_corpus(
            examples, features, self.target, self.settings.sequences, label_ids
        )
        if not compiled.n_examples:
            raise SparseCRFError(Errors.SC217.format(name=self.name))
        for label in compiled.labels:
            self._check_label(label)
        empty = CRFModel((), self.settings.dtype, kind=self.settings.model)
        self.model = empty if start is None else start
        self.cfg.update(labels=list(compiled.labels), sequences=compiled.cut)
        self._names = Names() if init_weights is None else load_init_names(init_weights, self.name)
        self._session = Session(n_uncovered=compiled.n_tokens, record=record)
        if compiled.corpus is not None:
            self._check_not_streamed(nlp)
            self._start_training(compiled.corpus, compiled, start, checkpoint)
        elif start is not None:
            self.cfg["labels"] = list(dict.fromkeys((*start.labels, *compiled.labels)))
        self._refresh()

    def _name_record(self) -> "NameRecord | None":
        from ..features.naming import NameRecord

        return NameRecord.of(self.features) if self._record_names else None

    def _check_not_streamed(self, nlp: Language | None) -> None:
        if nlp is None or self.solver.streaming:
            return
        if nlp.config.interpolate()["training"]["max_epochs"] == -1:
            raise SparseCRFError(Errors.SC204.format(name=self.name))

    def _start_training(
        self,
        corpus: "EncodedCorpus",
        compiled: "Compiled",
        start: "CRFModel | None",
        checkpoint: str | Path | None,
    ) -> None:
        announce_training()
        # Imports numba, which neither the factory nor prediction without tokens needs.
        from ..training import Training

        if 2 * compiled.n_missing > compiled.n_tokens:
            message = Warnings.SCW201.format(
                name=self.name, n_missing=compiled.n_missing, n_tokens=compiled.n_tokens
            )
            warnings.warn(message, SparseCRFWarning, stacklevel=3)
        settings = self.settings
        training = Training(
            corpus,
            compiled.labels,
            self.solver,
            l1=settings.l1,
            l2=settings.l2,
            n_threads=settings.n_threads,
            dtype=settings.dtype,
            precision=settings.precision,
            kind=settings.model,
            clusters=settings.clusters,
            init=start,
        )
        logger.info(
            "%s: %d sequences, %d tokens, %d labels, %d potential weights",
            self.name,
            corpus.n_sequences,
            compiled.n_tokens,
            len(compiled.labels),
            training.n_potential,
        )
        self._session.begin(self.name, training, checkpoint)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Any = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Do one iteration over the whole corpus, at most one before each `finish_update`.

        examples: not looked at: the solver has the corpus from `initialize`.
        drop: not used.
        sgd: if given, `finish_update` is called.
        losses: the objective is assigned to it, not added.
        RETURNS: the losses.
        RAISES: SparseCRFError if there is nothing to learn from, or the objective stops being
            finite.
        """
        losses = {} if losses is None else losses
        validate_examples(examples, "SparseCRF.update")
        losses[self.name] = self._session.advance(self.name)
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
