"""The beginning of a training run: on a corpus that is read before, or on spaCy's batches."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from spacy.language import Language
from spacy.training import Example
from spacy.util import logger

from ..corpus.arrays import MEMORY, Files, Memory
from ..corpus.encoded import EncodedCorpus
from ..corpus.files import check_directory
from ..corpus.gold import IllegalGoldError, describe
from ..errors import Errors, SparseCRFError, Warnings, warn
from ..features.naming import NameRecord
from ..model.model import CRFModel
from ..solvers.base import check_supported
from ..targets.scheme import OUTSIDE
from ..targets.spans import SpanTarget
from .batchers import is_endless, is_on_batches, warn_of_rare_rows
from .encoding import EncodedExamples, LabelIds, encode_corpus
from .scorers import check_score_weights
from .settings import Features, LearningSettings, Setup
from .stacking import learn_first
from .training_state import OnlineTrainer

if TYPE_CHECKING:
    from ..loss.ratio import EntityRatio
    from ..solvers.streaming import StreamSolver
    from ..training.training import Training
    from .add_ons import LinkedFeatures

# The first step of a solver that goes on from given weights, where no other is set.
RESUMED_STEP = 0.1
MOST_LOST = 0.01  # of gold labels, that alignment may lose without a warning


def check_setup(setup: Setup, nlp: Language | None) -> None:
    """Check settings that matter in training only. RAISES: SparseCRFError.

    setup: of the component; nlp: the pipeline, or None.
    """
    setup.settings.learning.check_trainable(setup.name)
    check_score_weights(setup.name, setup.target, nlp)


class InitialModels(NamedTuple):
    """Models of earlier runs: that training continues from, and that the penalty is around.

    checkpoint: the file of a run that was cut off, if it is there, or None.
    """

    start: CRFModel | None = None
    prior: CRFModel | None = None
    checkpoint: str | Path | None = None


def start_run(
    setup: Setup,
    read: Features,
    record: NameRecord | None,
    compiled: EncodedExamples,
    earlier: InitialModels,
    nlp: Language | None,
) -> "Training | OnlineTrainer | None":
    """Begin a training run. Imports numba.

    setup: of the component; read: what has read its features, see `with_kin`; record: of what was
    read, or None; compiled: the corpus or, where training is on batches, first examples; nlp: the
    pipeline, or None.
    RETURNS: the run, or None where there is nothing to learn from.
    RAISES: SparseCRFError for a corpus or settings that cannot be learnt from.
    """
    corpus = compiled.corpus
    if corpus is None:
        return None
    on_batches = is_on_batches(setup, nlp)
    _warn_of_gold(setup.name, compiled, lacking=not on_batches)
    if on_batches:
        whole = not is_endless(nlp)
        return _start_learner(setup, corpus, compiled.labels, earlier, whole=whole)
    warn_of_rare_rows(setup.name, nlp)
    return _start_training(setup, read, record, corpus, compiled, earlier)


def resume_learner(
    setup: Setup, examples: Sequence[Example], model: CRFModel
) -> "OnlineTrainer | None":
    """Begin a run on batches around the weights of a model; None without any gold label.

    The solver is that of the setup where it can learn from batches, otherwise SGD-L1. setup: of the
    component; examples: a first batch; model: with all labels.
    RAISES: SparseCRFError for settings that need the whole corpus, and for an unknown label.
    """
    from ..solvers.sgd_l1 import SGDL1

    if len(examples) == 1:
        warn(Warnings.SCW212.format(name=setup.name))
    label_ids = LabelIds(setup.name, model.labels, fixed=True, unknown=Errors.SC380)
    compiled = encode_corpus(examples, setup.features, setup, label_ids)
    if compiled.corpus is None:
        return None
    fits = setup.solver.streaming and "no prior" not in setup.solver.requires
    solver: Any = copy(setup.solver) if fits else SGDL1()
    # On one batch a step would be found that learns it by heart.
    solver.eta0 = solver.eta0 or RESUMED_STEP
    earlier = InitialModels(prior=model)
    logger.info("%s: goes on from its weights, which the penalty is around", setup.name)
    own = setup._replace(solver=solver)
    return _start_learner(own, compiled.corpus, model.labels, earlier, whole=False)


def open_store(setup: Setup, corpus_dir: str | Path | None, nlp: Language | None) -> Memory:
    """Where arrays go that are as long as the corpus of a component.

    corpus_dir: path of a directory, made where there is none; None for memory.
    nlp: the pipeline, or None.
    RAISES: SparseCRFError for a directory that cannot be made, and for settings and solvers that
        need the whole corpus in memory.
    """
    if corpus_dir is None:
        return MEMORY
    name, settings = setup.name, setup.settings
    needing = {
        "training on batches": is_on_batches(setup, nlp),
        f'[components.{name}] model = "{settings.model}"': settings.model != "chain",
        f"[components.{name}.learning] constrained = true": settings.learning.constrained,
        f"[components.{name}.learning] entity_ratio": bool(settings.learning.entity_ratio),
        f"[components.{name}.learning] stack": settings.learning.stack.folds > 0,
    }
    for setting, needs in needing.items():
        if needs:
            raise SparseCRFError(Errors.SC346.format(setting=setting))
    check_supported(setup.solver, {"memory"})
    check_directory(Path(corpus_dir))
    return Files(Path(corpus_dir))


def with_kin(setup: Setup, read: Features) -> Features:
    """What reads features so that a schedule can be followed: `read` itself without one.

    read: what the setup's features are read by.
    RAISES: SparseCRFError where the schedule does not fit features, penalty or model.
    """
    settings, features = setup.settings, setup.features
    stages = settings.learning.schedule
    if not stages:
        return read
    from ..features.featurizer import Featurizer
    from ..features.template_hierarchy import Lineage, TemplateTreeRecord

    if not isinstance(features, Featurizer):
        raise SparseCRFError(Errors.SC333.format(name=setup.name))
    for key, value, fits, needed in (
        ("l1", settings.l1, settings.l1 > 0.0, "a number > 0"),
        ("clusters", settings.clusters, settings.clusters == 0, "0"),
        ("model", settings.model, settings.model != "graph", '"chain", "maxent" or "memm"'),
    ):
        if not fits:
            message = Errors.SC334.format(name=setup.name, key=key, value=value, needed=needed)
            raise SparseCRFError(message)
    return TemplateTreeRecord(
        read, features, Lineage.of(features.parsed, features.templates, stages)
    )


def _start_training(
    setup: Setup,
    read: Features,
    record: NameRecord | None,
    corpus: EncodedCorpus,
    compiled: EncodedExamples,
    earlier: InitialModels,
) -> "Training":
    """Begin a run on a corpus; in stages, if there is a schedule; after that of a first model."""
    from ..training.checkpoint import numbered_as_then
    from ..training.training import Training

    if earlier.checkpoint is not None:
        corpus = numbered_as_then(Path(earlier.checkpoint), corpus)
    name, labels, settings = setup.name, compiled.labels, setup.settings
    learning = settings.learning
    legal = setup.legal(labels) if learning.constrained else None
    if learning.constrained and legal is None:
        warn(Warnings.SCW350.format(name=name))
    given = {
        "n_threads": settings.n_threads,
        "observed_only": learning.observed_only,
        "label_weights": learning.weights_of(name, labels),
        "legal": legal,
        "ratio": _entity_ratio(setup, labels),
        "chains": [chain.ids for chain in setup.target.chains(labels)],
        **settings.problem,
    }
    make_training = _kind_of_training(setup, read, corpus, compiled)
    with _doc_named(compiled):
        if learning.stack.folds and record is not None:
            make = partial(
                Training, labels=labels, solver=setup.solver, **given | learning.stack.penalty
            )
            corpus, given["first"] = learn_first(setup, record, corpus, labels, make)
        given |= {"init": earlier.start, "prior": earlier.prior}
        training = make_training(corpus, labels, setup.solver, **given)
    counts = name, training.n_sequences, compiled.n_tokens, len(labels), training.size
    logger.info("%s: %d sequences, %d tokens, %d labels, %s", *counts)
    return training


def _kind_of_training(
    setup: Setup, read: Features, corpus: EncodedCorpus, compiled: EncodedExamples
) -> "Callable[..., Training]":
    """What makes a run: at once, in stages, of graphs, or on what others have read."""
    from ..features.template_hierarchy import TemplateTreeRecord
    from ..training.staged import StagedTraining
    from ..training.training import Training

    if isinstance(read, TemplateTreeRecord):
        report = partial(logger.info, "%s: %s", setup.name)
        stages = setup.settings.learning.schedule
        return partial(StagedTraining, kin=read.kin(corpus), stages=stages, report=report)
    if setup.settings.model == "graph":
        return cast("LinkedFeatures", read).training(setup.settings.inference)
    if compiled.division is not None:
        return compiled.division.training()
    return Training


def _entity_ratio(setup: Setup, labels: Sequence[str]) -> "EntityRatio | None":
    """The term of the loss that the settings ask for. RAISES: SparseCRFError without spans."""
    own = setup.settings.learning.entity_ratio
    if not own:
        return None
    if not isinstance(setup.target, SpanTarget):
        raise SparseCRFError(Errors.SC364.format(name=setup.name))
    from ..loss.ratio import EntityRatio

    in_spans = np.array([label != OUTSIDE for label in labels])
    return EntityRatio(in_spans, own["ratio"], own["margin"], own["strength"])


def _warn_of_gold(name: str, compiled: EncodedExamples, *, lacking: bool) -> None:
    """Warn where most tokens lack a gold label, or else labels are lost to alignment.

    lacking: whether the former is to be told too.
    """
    aligned = compiled.aligned
    if 2 * compiled.n_missing > compiled.n_tokens:
        if lacking:
            counts = {"n_missing": compiled.n_missing, "n_tokens": compiled.n_tokens}
            warn(Warnings.SCW201.format(name=name, **counts))
    elif aligned.share > MOST_LOST:
        counts = {"n_lost": aligned.n_lost, "n_gold": aligned.n_gold}
        place = {"share": aligned.share, "word": aligned.word, "text": aligned.text}
        warn(Warnings.SCW208.format(name=name, **counts, **place))


@contextmanager
def _doc_named(compiled: EncodedExamples) -> Iterator[None]:
    """Name the Doc whose gold labels are not legal, not the sequence of the corpus.

    compiled: has the labels, and the corpus. RAISES: SparseCRFError.
    """
    try:
        yield
    except IllegalGoldError as error:
        found = error.found
        number = bisect_right(compiled.docs, found.token, key=itemgetter(0))
        first = compiled.docs[number - 1][0] if number else 0
        place = f"the training Doc that begins {compiled.docs[number][1]!r}"
        message = describe(found, found.token - first, compiled.labels, place)
        raise SparseCRFError(message) from None


def _start_learner(
    setup: Setup,
    corpus: EncodedCorpus,
    labels: tuple[str, ...],
    earlier: InitialModels,
    *,
    whole: bool,
) -> OnlineTrainer:
    """Begin a training run on batches.

    corpus: of first examples; whole: whether it is all there is.
    RAISES: SparseCRFError for settings that need the whole corpus.
    """
    from ..training.streaming import Stream

    if setup.settings.model == "graph":
        raise SparseCRFError(
            Errors.SC377.format(key="solver] on_batches", value=True, needed=False)
        )
    if setup.target.chains(labels):
        raise SparseCRFError(Errors.SC424.format(name=setup.name, key=".solver] on_batches"))
    learning, defaults = setup.settings.learning, LearningSettings()
    for key in ("min_freq", "observed_only", "constrained", "schedule", "entity_ratio", "stack"):
        value, needed = getattr(learning, key), getattr(defaults, key)
        if value != needed:
            values = {"name": setup.name, "key": key, "value": value, "needed": needed}
            raise SparseCRFError(Errors.SC384.format(**values))
    solver = cast("StreamSolver", setup.solver)
    stream = Stream(
        corpus,
        labels,
        solver,
        whole=whole,
        init=earlier.start,
        prior=earlier.prior,
        **setup.settings.problem,
    )
    logger.info("%s: learns %d labels from batches", setup.name, len(labels))
    label_ids = LabelIds(setup.name, labels, fixed=True, unknown=Errors.SC380)
    return OnlineTrainer(stream, setup, label_ids, learning.weights_of(setup.name, labels))
