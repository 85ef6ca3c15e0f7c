"""The component: spaCy's pipe life cycle around a corpus, a solver and a model.

Creating a component does not import numba; training and prediction do.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import srsly
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span, Token
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.optimizers import Optimizer

from .. import compatible, progress
from ..atomic_write import write_files
from ..crf.compilation import N_OF_TRAINING, watch_compilation
from ..crf.model.model import CRFModel
from ..crf.model.names import Names
from ..errors import Errors, SparseCRFError, Warnings, warn
from ..training_log import Iteration, TrainingLog
from . import serialization as storage
from .annotating import Expected, annotated
from .continued import Continued, continue_training
from .data_checks import DataChecks
from .encoding import Job, check_strings, encode_corpus, labels_to_add, make_label_ids, record_of
from .facts import facts_of
from .features.naming import hash_names, templates_by_kind
from .loop import full_collections_suspended, made_without_collections
from .prediction import DocPredictor, Predictions, no_predictions, score_extension, store_scores
from .probabilities import Probabilities
from .settings import ComponentSettings, Features, Setup
from .spacy_loop import Loop, check_loop, idle_attributes
from .targets.entities import SCORE
from .targets.spans import SpanGroups
from .targets.target import Target, add_extension
from .trained import Trained, part_of_setup, part_of_trained, within_memory
from .training_state import TrainingState, begin, driver_of, first_model, report_step

if TYPE_CHECKING:
    from ..crf.training.training import Training

Scorer: TypeAlias = Callable[..., dict[str, Any]]


class SparseCRFPipe(Probabilities, TrainablePipe):  # type: ignore[misc]
    """spaCy component: a linear-chain CRF or per-position model with an elastic-net penalty.

    Training minimises the sum over sequences of -log p(y | x), plus
    l1 |w|_1 + (l2 / 2) |w|_2^2. `nlp.add_pipe` and `nlp.get_pipe` return the component.
    It also has the methods of `Probabilities`, and of spaCy's TrainablePipe. Notebooks show it as
    a card with its labels, weights and settings. spaCy does not declare which component
    `nlp.get_pipe` returns: for completion in an editor, write
    `pipe = cast(SparseCRFPipe, nlp.get_pipe("ner"))`.

    Parameters
    ----------
    vocab : Vocab
        Vocab of the pipeline.
    setup : Setup
        Parts and settings, as `nlp.add_pipe` makes them from a config.
    scorer : callable, optional
        Scores Examples.

    Attributes
    ----------
    name : str
        Name in the pipeline.
    labels : tuple of str
        Labels that users see: labels of tokens, or types of entities or spans.
    label_data : tuple of str
        Labels of tokens by id.
    model : CRFModel
        Labels and active weights. `initialize`, `update`, and methods that change weights or
        labels replace it.
    training_log : TrainingLog
        One `Iteration` for each iteration of the training run in this process. It is empty
        in a loaded component.

    Raises
    ------
    SparseCRFError
        If a setting is out of range.

    Examples
    --------
    >>> nlp.get_pipe("ner")
    SparseCRFPipe('ner', 4 labels, 271 weights, l1=0.2)
    >>> spacy.blank("en").add_pipe("sparse_crf")
    SparseCRFPipe('sparse_crf', not initialized)
    """

    setup: Setup = part_of_trained("setup", "The parts and settings, without learnt values.")
    model: CRFModel = part_of_trained("model", "Labels and active weights.")
    cfg: dict[str, Any] = part_of_trained("cfg", "Labels, and values without a file.")
    features: Features = part_of_setup("features", "Hashes the observation features of Docs.")
    target: Target = part_of_setup("target", "The annotation that is learnt and written.")
    solver = part_of_setup("solver", "Minimises the objective.")
    settings: ComponentSettings = part_of_setup("settings", "See `ComponentSettings`.")
    engine = part_of_setup("engine", "Reads and holds the corpus for training.")

    def __init__(self, vocab: Vocab, setup: Setup, scorer: Scorer | None = None) -> None:
        setup.check()
        self.vocab = vocab
        self.scorer = scorer
        self.trained = Trained.nothing(setup)
        self.name = setup.name
        self.training_log = TrainingLog()
        self._begun = 0.0
        self._state: TrainingState | None = None
        self._continued: Continued | None = None
        if setup.settings.decoding.scores:
            # Docs annotated in other processes have values, but no registered extensions here.
            add_extension(Token, score_extension(self.name))
            add_extension(Span, SCORE)

    @property
    def name(self) -> str:
        """Name in the pipeline; spaCy replaces it in the pipeline that sources the component."""
        return self.trained.setup.name

    @name.setter
    def name(self, name: str) -> None:
        TrainablePipe.name.__set__(self, name)  # compiled methods of spaCy read its field
        setup = self.trained.setup._replace(name=name)
        self.trained = Trained.of(setup, self.model, self.cfg, self.trained.names)

    def __repr__(self) -> str:
        labels, l1 = self.label_data, self.settings.l1
        size = f"{len(labels)} labels, {self.model.n_active:,} weights, l1={l1:g}"
        return f"SparseCRFPipe({self.name!r}, {size if labels else 'not initialized'})"

    def _repr_html_(self) -> str:
        from ..tools.pages.rendering import fill

        return fill("component.html", pipe=self, state=self._state)

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Sequence[str] | None = None,
        init_weights: str | Path | None = None,
        checkpoint: str | Path | None = None,
        shards: Sequence[str] = (),
    ) -> None:
        """Read the training examples, once, and prepare a training run.

        Parameters
        ----------
        get_examples : callable
            Returns the training examples, which are stored as arrays.
        nlp : Language, optional
            The pipeline, for its [training] settings and the pipes before this one.
        labels : sequence of str, optional
            All labels, in order. Default: labels of the examples and added labels, sorted.
        init_weights : str or Path, optional
            Path of weights to continue from: a saved pipeline, component or file.
        checkpoint : str or Path, optional
            Path of a file, to which each step writes the state of training. If it exists,
            training resumes from it; the first update then takes no step.
        shards : sequence of str, default ()
            Paths of .spacy files, which may contain `*` and `**`. The reader of [training]
            train_corpus reads them in this order; they replace the examples of `get_examples`.

        Raises
        ------
        SparseCRFError
            If examples, labels, weights or a checkpoint do not fit, if no token has a gold label
            and there are no weights, or if max_epochs = -1.
        """
        setup = self.setup
        loop = self._checked_loop(nlp, shards)
        earlier = storage.load_earlier(setup, init_weights)
        label_ids = make_label_ids(setup, labels, self.label_data, earlier.labels)
        checks = DataChecks(is_warned=loop.augmented)
        examples, upstream = checks.watch(self.name, get_examples, nlp), [*loop.upstream.values()]
        examples = annotated(examples, upstream) if upstream else examples
        with within_memory(self.name), storage.renewed(setup, nlp, earlier):
            driver = driver_of(setup)
            job = Job(
                setup=setup,
                label_ids=label_ids,
                checks=checks,
                record=record_of(setup),
                nlp=nlp,
                shards=shards,
                upstream=upstream,
            )
            divides = shards or setup.engine.divides
            with full_collections_suspended():
                read = setup.engine.compile(job) if divides else encode_corpus(examples, job)
            idle = idle_attributes(nlp, self, checks.values)
            checks.report(setup, read.labels, get_examples, idle)
            state = begin(job, driver, read, earlier, checkpoint)
            cfg = storage.learnt_cfg(setup, read.labels, checks)
            if state.trainer is None:
                cfg["labels"] = list(dict.fromkeys((*earlier.labels, *read.labels)))
            model = first_model(setup, state, earlier).with_labels(cfg["labels"])
            model.first = None if driver is None else driver.first
            names = self.trained.names if earlier.names is None else earlier.names
            trained = Trained.of(setup, model, cfg, names)
        # Nothing below raises, so that a component keeps its state if anything above does.
        if self._state is not None and self._state.trainer is not None:
            self._state.trainer.close()
        runs = state.trainer is not None
        self.trained = trained
        self._state, self._continued = (state, None) if runs else (None, Continued(model, model))
        self.training_log = TrainingLog()
        self._begun = time.perf_counter()
        self._store_strings()

    def _checked_loop(self, nlp: Language | None, shards: Sequence[str]) -> Loop:
        """Return the settings of spaCy's loop. RAISES: SparseCRFError if a run cannot begin."""
        setup, loop = self.setup, Loop.of(nlp, self)
        progress.be_quiet(loop.quiet)
        watch_compilation(N_OF_TRAINING, helper="spacy_sparsecrf.tools.compile_ahead")
        facts = facts_of(setup, shards=shards, engine=setup.engine)
        compatible.check(facts, self.name, setup.solver)
        if loop.is_spacys:
            check_loop(setup, cast("Language", nlp))
        return loop

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Do one iteration over the whole corpus, at most one before each `finish_update`.

        Examples that `initialize` has not read are ignored, with a warning. Without a corpus,
        as in a loaded pipeline or after `nlp.initialize` without examples, the component learns
        from the given examples.

        Parameters
        ----------
        examples : iterable of Example
            Training examples.
        drop : float, default 0.0
            Not used.
        sgd : Optimizer, optional
            If given, `finish_update` is called.
        losses : dict of str to float, optional
            The objective is assigned to the component's name, not added. Without a corpus, the
            loss of the examples is added, each before its own step.

        Returns
        -------
        dict of str to float
            The losses.

        Raises
        ------
        SparseCRFError
            If there is no training data, if training diverges, and without a corpus for an
            unknown label.
        """
        examples = list(examples)
        validate_examples(examples, "SparseCRFPipe.update")
        losses = {} if losses is None else losses
        with within_memory(self.name):
            if (state := self._state) is None:
                losses[self.name] = losses.get(self.name, 0.0) + self._continue(examples)
            else:
                training = self.training_run()
                state.checks.warn_of_unseen(self.name, examples)
                if not (state.stepped or training.end):
                    with full_collections_suspended():
                        self._step(state, training)
                losses[self.name] = training.objective
        if sgd:
            self.finish_update(sgd)
        return losses

    def _step(self, state: TrainingState, training: "Training") -> None:
        """Do one iteration over the corpus, and take its model."""
        # Free the corpus, which the run has encoded, and the decoder of the last model.
        state.restart = None
        trained = self.trained = replace(self.trained)
        with progress.Task("Training"):
            report = training.step()
            if not math.isfinite(objective := training.objective):
                # It would only fail later, when spaCy writes meta.json.
                raise SparseCRFError(Errors.SC209.format(name=self.name, objective=objective))
            if state.checkpoint is not None:
                training.save(state.checkpoint)
        model = training.model().with_labels(trained.labels)
        model.first = trained.model.first
        self.trained = replace(trained, model=model)
        state.stepped = True
        iteration = Iteration(
            number=len(self.training_log) + 1,
            loss=objective,
            n_active=report.n_active,
            seconds=time.perf_counter() - self._begun,
            score=None,
        )
        self.training_log.append(iteration)
        report_step(self.setup, report, model)

    def _continue(self, examples: Sequence[Example]) -> float:
        """Learn from examples without a corpus. RETURNS: their loss."""
        trained = self.trained
        run, loss = continue_training(self.setup, examples, self._continued, trained.model)
        self._continued = run
        cfg = {**trained.cfg, "labels": list(run.model.labels)}
        self.trained = replace(trained, model=run.model, cfg=cfg)
        return loss

    def finish_update(self, sgd: Optimizer | None) -> None:
        """Allow the next iteration. The solver needs no optimizer."""
        if self._state is not None:
            self._state.stepped = False

    def rehearse(
        self, examples: Iterable[Example], *, losses: dict[str, float] | None = None, **config: Any
    ) -> dict[str, float]:
        """Do nothing, because a batch solver does not forget.

        Parameters
        ----------
        examples : iterable of Example
            Not used.
        losses : dict of str to float, optional
            A loss of 0 is added if the component has none.
        config
            Not used.

        Returns
        -------
        dict of str to float
            The losses.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        return losses

    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Do nothing: optimizers average weights of other pipes, never of this component."""
        yield

    def training_run(self) -> "Training":
        """Return the training run. RAISES: SparseCRFError without one."""
        if self._state is None or self._state.trainer is None:
            raise SparseCRFError(Errors.SC202.format(name=self.name))
        return self._state.trainer

    def end_training(self) -> "Callable[..., Training]":
        """End the training run before its first step, and free its arrays.

        RETURNS: a function that begins another run; its arguments override those of this one.
        RAISES: SparseCRFError if there is no run.
        """
        self.training_run()
        state = cast("TrainingState", self._state)
        self._state = replace(state, trainer=None)
        return cast("Callable[..., Training]", state.restart)

    # Prediction

    def predict(self, docs: Iterable[Doc], *, forced: bool = True) -> Predictions:
        """Predict labels, without changing the Docs.

        Parameters
        ----------
        docs : iterable of Doc
            Docs, which are not changed.
        forced : bool, default True
            Whether to keep existing annotation, unless [components.NAME] overwrite = true.

        Returns
        -------
        Predictions
            A list of arrays [tokens] int32 of label ids, one for each Doc; -1 for blanks. Its
            attribute `scores` has their probabilities if [components.NAME.decoding]
            scores = true.

        Raises
        ------
        SparseCRFError
            If there are tokens but no labels.
        """
        docs = list(docs)
        if not any(map(len, docs)):
            return no_predictions(len(docs), self.settings.decoding.scores)
        return self.trained.predictor.predict(docs, forced)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of Docs; report progress if this is an evaluation during training.

        Parameters
        ----------
        stream : iterable of Doc
            Docs to annotate in place.
        batch_size : int, default 128
            Number of Docs that are predicted at once.

        Returns
        -------
        iterator of Doc
            The annotated Docs, in order.
        """
        docs: Iterator[Doc] = super().pipe(stream, batch_size=batch_size)
        is_training = self._state is not None
        if not is_training:
            return docs
        return iter(progress.Task("Predicting", "docs", items=made_without_collections(docs)))

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[NDArray[np.int32]]) -> None:
        """Write predictions to the Docs.

        Parameters
        ----------
        docs : iterable of Doc
            Docs to change.
        scores : sequence of array
            For each Doc an array [tokens] int32 of label ids, from `predict`. Its probabilities,
            if any, are written to `token._.NAME_score`.
        """
        docs, setup = list(docs), self.setup
        ids = scores if isinstance(scores, Predictions) else Predictions(scores)
        setup.target.write(
            docs,
            ids,
            self.trained.labels,
            overwrite=setup.settings.overwrite,
            scores=ids.span_scores,
        )
        if ids.scores is not None:
            store_scores(self.name, docs, ids.scores)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Score Examples with the scorer, which also receives the target's settings.

        During a training run, the first F-score or accuracy is added to `training_log`.

        Parameters
        ----------
        examples : iterable of Example
            Examples with predictions and gold annotation.
        **kwargs
            Further arguments of the scorer.

        Returns
        -------
        dict of str
            Scores by name, such as `ents_f`.
        """
        examples = list(examples)
        if self._state is not None:
            self._state.checks.warn_of_evaluated(self.setup, self.label_data, examples)
        with progress.Task("Scoring"), full_collections_suspended():
            scores: dict[str, Any] = super().score(examples, **{**self.target.scoring(), **kwargs})
        if self.training_log:
            of_target = (scores[key] for key in scores if key.endswith(("_f", "_acc")))
            self.training_log[-1] = self.training_log[-1]._replace(score=next(of_target, None))
        return scores

    def predictor(self) -> DocPredictor:
        """Return what predicts Docs now. RAISES: SparseCRFError if there are no labels."""
        return self.trained.predictor

    # Labels

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that users see: labels of tokens, or types of entities or spans."""
        return self.target.names_of(self.label_data)

    @property
    def label_data(self) -> tuple[str, ...]:
        """The labels of tokens by id, which `spacy init labels` writes and `initialize` accepts."""
        return self.trained.labels

    @property
    def key(self) -> str:
        """The key of a component of spans in `doc.spans`; other components lack the attribute."""
        return cast("SpanGroups", self.target).key

    # Labels can always be added, with zero weights.
    is_resizable = True

    def add_label(self, label: str) -> int:
        """Add a label; its weights are zero until the component is initialized with it.

        Parameters
        ----------
        label : str
            A label of tokens; or a type of entities or spans, for which all labels are added. A
            text such as B-cell is a type if other types are known, but not cell.

        Returns
        -------
        int
            1, or 0 if the label exists already.

        Raises
        ------
        SparseCRFError
            If the label is not a string, or the target cannot write it.
        """
        check_strings(self.name, [label])
        trained = self.trained
        if label in trained.labels:
            return 0
        new = labels_to_add(self.target, label, trained.labels)
        labels = [*trained.labels, *new]
        model = trained.model.with_labels(labels)
        self.trained = replace(trained, model=model, cfg={**trained.cfg, "labels": labels})
        if self._continued is not None and self._continued.model is trained.model:
            self._continued = replace(self._continued, model=model)
        self._store_strings()
        return int(bool(new))

    def _store_strings(self) -> None:
        """Add the labels that users see to the vocab, as spaCy's pipes do."""
        for name in self.labels:
            self.vocab.strings.add(name)

    def set_output(self, nO: int) -> None:
        """Check the number of outputs; they grow by `add_label`. RAISES: SparseCRFError."""
        n_labels = len(self.label_data)
        if nO != n_labels:
            raise SparseCRFError(Errors.SC213.format(name=self.name, n=nO, n_labels=n_labels))

    # Weights

    def dump(self) -> Iterator[str]:
        """Yield the weights as lines of text, which `patch` reads.

        Yields
        ------
        str
            A line with tab-separated columns: kind, feature, label before, label, weight.
        """
        from ..crf.model.edit_weights import dump

        return dump(self.model, self.named())

    def patch(self, lines: Iterable[str], path: str = "<lines>", *, replace: bool = False) -> int:
        """Change weights according to lines of text.

        If a line is invalid, no weight changes. A training run in progress is not affected.

        Parameters
        ----------
        lines : iterable of str
            Lines in the format of `dump`.
        path : str, default "<lines>"
            Path of the lines' file, for messages.
        replace : bool, default False
            Whether to remove weights that no line mentions.

        Returns
        -------
        int
            Number of changes.

        Raises
        ------
        SparseCRFError
            If a line is invalid; the message has file and line.
        """
        from ..crf.model.edit_weights import patch

        templates = templates_by_kind(self.features)
        patched = patch(self.model, lines, path, hash_names, templates, replace=replace)
        names = self.named()
        self.model = patched.model
        names.add(patched.names)
        return int(patched.n_changes)

    def named(self) -> Names:
        """Return the names of features, including features that training has made active."""
        trained = self.trained
        if self._state is not None and self._state.record is not None:
            keys = np.unique(np.concatenate(trained.model.keys))
            trained.names.add(self._state.record.names(trained.names.missing(keys)))
        return trained.names

    # Storage: saves the weights of the training run so far, but not the run

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise, with the weights of the training run so far.

        Parameters
        ----------
        exclude : iterable of str, default ()
            Parts to leave out, such as "vocab".

        Returns
        -------
        bytes
            The component, which `from_bytes` loads.
        """
        parts = {part: data for part, data in self._parts(exclude).items() if data}
        if "vocab" not in exclude:
            parts["vocab"] = self.vocab.to_bytes(exclude=exclude)
        packed: bytes = srsly.msgpack_dumps(parts)
        return packed

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write to a directory, with the weights of the training run so far.

        Parameters
        ----------
        path : str or Path
            The directory.
        exclude : iterable of str, default ()
            Parts to leave out, such as "vocab".

        Raises
        ------
        SparseCRFError
            If it cannot be written; existing files of the component are then unchanged.
        """
        if not self.model.n_active and (self._state or self._continued):
            warn(Warnings.SCW236.format(name=self.name, l1=self.settings.l1))
        files = {part: data or None for part, data in self._parts(exclude).items()}
        write_files(Path(path), files, storage.SETTING)
        if "vocab" not in exclude:
            self.vocab.to_disk(Path(path) / "vocab", exclude=exclude)

    def _parts(self, exclude: Iterable[str]) -> dict[str, bytes]:
        """Return the content of the files of the component; an empty part has no file."""
        with within_memory(self.name):
            parts = storage.parts_of(self.features, self.cfg, self.model, self.named())
        return {part: data for part, data in parts.items() if part not in exclude}

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "SparseCRFPipe":
        """Load the result of `to_bytes`.

        Parameters
        ----------
        bytes_data : bytes
            The serialised component.
        exclude : iterable of str, default ()
            Parts to leave out, such as "vocab".

        Returns
        -------
        SparseCRFPipe
            The component itself.

        Raises
        ------
        SparseCRFError
            If the model is damaged, or of a newer version.
        """
        parts = storage.unpack_parts(bytes_data, self.name)
        if "vocab" in parts and "vocab" not in exclude:
            self.vocab.from_bytes(parts["vocab"], exclude=exclude)
        self._load(parts, exclude)
        return self

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SparseCRFPipe":
        """Load the result of `to_disk`.

        Parameters
        ----------
        path : str or Path
            The directory.
        exclude : iterable of str, default ()
            Parts to leave out, such as "vocab".

        Returns
        -------
        SparseCRFPipe
            The component itself.

        Raises
        ------
        SparseCRFError
            If the model is damaged, or of a newer version.
        """
        if "vocab" not in exclude:
            self.vocab.from_disk(Path(path) / "vocab", exclude=exclude)
        self._load({part: storage.read_part(path, part) for part in storage.PARTS}, exclude)
        if self.model.n_active:
            self._load_kernels()
        return self

    def _load(self, parts: Mapping[str, bytes], exclude: Iterable[str]) -> None:
        """Take the parts of a saved component. RAISES: SparseCRFError; nothing changes then."""
        parts = {part: data for part, data in parts.items() if part not in exclude}
        with within_memory(self.name):
            cfg, model, names = storage.load_parts(self.setup, parts, self.cfg, self.model)
        self.trained = Trained.of(self.setup, model, cfg, names)
        self.training_log = TrainingLog()
        self._state = self._continued = None
        self._store_strings()

    def _load_kernels(self) -> None:
        """Load the prediction kernels now, so that the first Doc does not wait for them.

        `spacy evaluate` would include that time in its measurement.
        """
        # Missing requirements of features, such as vectors, raise an error for real Docs only.
        with suppress(SparseCRFError):
            predictor = replace(self.predictor(), expected=Expected(self.name, {}, False))
            predictor.predict([Doc(Vocab(), words=["a"])], forced=True)

    def __reduce__(self) -> Any:
        """Pickle and copy with the weights of the training run so far, but not the run."""
        self.named()
        return super().__reduce__()
