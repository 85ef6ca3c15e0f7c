"""Training without a corpus: stochastic descent on the examples of each update.

It minimises the loss of the examples plus l1 |w - w0|_1 + l2 / 2 |w - w0|_2^2, w0 being the weights
that the component had before its first update. Each update makes a few passes over its examples,
by steps

    w := w - eta_k g_i,        eta_k = eta / (1 + k / DECAY)        after k visits of examples,

and after each pass the proximal step of the examples' share of the penalty. The penalty around w0,
which does not move with the updates, keeps what the weights knew: it is the stronger, and the steps
are the shorter, for a trained model. Labels without weights in w0 have nothing to keep. Features
that are new enter the model; features that are not in the examples keep their weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from spacy.training import Example

from .. import compatible
from ..crf.corpus.encoded import EncodedCorpus
from ..crf.corpus.numbering import Longs, Mask
from ..crf.corpus.transform import weighted
from ..crf.model.model import CRFModel, WeightNames
from ..crf.model.weights_of_run import coordinates_of, summed, with_rest
from ..errors import Errors, SparseCRFError, Warnings, warn
from .data_checks import DataChecks
from .encoding import Job, LabelIds, encode_corpus
from .facts import facts_of
from .settings import NotCopied, Setup

PASSES = 3  # over the examples of an update
DECAY = 20_000.0  # visits after which the steps are half as long
# First steps, and numbers of examples that the whole penalty counts for: of trained and new labels.
ETA, ETA_NEW = 0.02, 0.1
HORIZON, HORIZON_NEW = 10.0, 10_000.0


@dataclass(frozen=True)
class Continued(NotCopied):
    """The state of continued training.

    origin: the model before the first update, whose weights are w0; model: the model after the last
    one; n_visits: k.
    """

    origin: CRFModel
    model: CRFModel
    n_visits: int = 0


def continue_training(
    setup: Setup, examples: Sequence[Example], run: Continued | None, model: CRFModel
) -> tuple[Continued, float]:
    """Learn from examples. Imports numba.

    run: of the earlier updates, if any; model: of the component. If something else has changed it
    since, a new run begins.
    RETURNS: the run with a new model, and the sum of the losses of the examples, each before its
        first step. If none has a gold label, the same model, and 0.
    RAISES: SparseCRFError without a run for a model without weights, for settings that need a
        corpus, for an unknown gold label of a model that has labels, and if training diverges.
    """
    if run is None and not model.n_active:
        raise SparseCRFError(Errors.SC202.format(name=setup.name))
    if run is None or run.model is not model:
        run = Continued(model, model)
    if len(examples) == 1 and not run.n_visits:
        warn(Warnings.SCW212.format(name=setup.name))
    compatible.check(facts_of(setup, has_corpus=False), setup.name)
    labels = run.model.labels
    label_ids = LabelIds(setup.name, labels, fixed=bool(labels), unknown=Errors.SC385)
    # The step size fits sequences of single Docs.
    read = encode_corpus(examples, Job(setup, label_ids, DataChecks(), joins=False))
    if read.corpus is None:
        return run, 0.0
    label_weights = setup.settings.learning.weights_of(setup.name, read.labels)
    corpus = read.corpus if label_weights is None else weighted(read.corpus, label_weights)
    if not corpus.weights.any():
        return run, 0.0
    return _descend(setup, corpus, read.labels, run)


def _descend(
    setup: Setup, corpus: EncodedCorpus, labels: tuple[str, ...], run: Continued
) -> tuple[Continued, float]:
    """Make the passes over a corpus. RETURNS: the run with the new model, and the loss."""
    from ..crf.kernels.minibatch import SGD
    from ..crf.loss.chain_loss import ChainLoss
    from ..crf.loss.examples import MinibatchDescent
    from ..crf.loss.per_token import local_corpus
    from ..crf.parallel import Workers
    from ..crf.penalty import ElasticNet

    settings = setup.settings
    keys, kind = (corpus.unigram_keys, corpus.bigram_keys), settings.model
    names = WeightNames(*keys, labels, (), corpus.start_label, kind)
    if kind != "chain":
        corpus = local_corpus(corpus, len(labels), pairs=kind == "memm")
    loss = ChainLoss(corpus, len(labels), Workers(1), precision=settings.learning.precision)
    weights = [summed(coordinates_of(names, model)) for model in (run.origin, run.model)]
    known = np.concatenate([each.coordinates for each in weights])
    coordinates = loss.coordinates("descent", known)
    origin, theta = np.zeros((2, len(coordinates)))
    for values, (known, found) in zip((origin, theta), weights, strict=True):
        values[np.searchsorted(coordinates, known)] = found
    working, unused = loss.by_example(coordinates), np.zeros_like(theta)
    descent = MinibatchDescent(working, ElasticNet(0.0, 0.0), 1, SGD, theta, unused)
    n_visits, losses = run.n_visits, []
    new = _of_new_labels(names, coordinates, run.origin)
    share = len(descent.sequences) / np.where(new, HORIZON_NEW, HORIZON)
    for _ in range(PASSES):
        eta = (ETA if run.origin.n_active else ETA_NEW) / (1.0 + n_visits / DECAY)
        order = np.random.default_rng(n_visits).permutation(descent.sequences)
        losses.append(descent.run(order, np.full(len(order), eta)))
        n_visits += len(order)
        change = theta - origin
        kept = np.maximum(np.abs(change) - eta * share * settings.l1, 0.0)
        theta[:] = origin + np.copysign(kept / (1.0 + eta * share * settings.l2), change)
    if not (np.isfinite(losses).all() and np.isfinite(theta).all()):
        raise SparseCRFError(Errors.SC209.format(name=setup.name, objective=losses[-1]))
    model = CRFModel.of_weights(names, coordinates, theta, settings.learning.dtype)
    model = with_rest(names, model, run.model)
    return replace(run, model=model, n_visits=n_visits), losses[0]


def _of_new_labels(names: WeightNames, coordinates: Longs, origin: CRFModel) -> Mask:
    """Return whether weights are of a label, or a pair with a label, without weights in w0.

    coordinates: [K]. RETURNS: [K].
    """
    known = np.union1d(origin.unigram.labels, origin.bigram.labels)
    trained = {origin.labels[y] for y in known.tolist()}
    # The last one is the start label, and the previous label of unigram weights.
    is_new = np.array([*(label not in trained for label in names.labels), False])
    _, previous, label = names.coding.decode(coordinates)
    found: Mask = is_new[previous] | is_new[label]
    return found
