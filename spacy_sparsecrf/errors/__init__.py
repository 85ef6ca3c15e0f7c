"""Every message of the package, coded, with its error and its category of warnings."""

import warnings

from .cluster import ClusterErrors
from .commands import CommandErrors
from .component import ComponentErrors
from .estimator import EstimatorErrors
from .features import FeatureErrors
from .numerics import NumericErrors


class SparseCRFWarning(UserWarning):
    """Something in data or settings that most likely is not meant."""


class SparseCRFError(ValueError):
    """Base of the package's own exceptions; the message starts with its code."""


def warn(message: str) -> None:
    """Warn of something in data or settings, in the name of who called what calls this."""
    warnings.warn(message, SparseCRFWarning, stacklevel=3)


class _Coded(type):
    """Put the code in front of each message, as spaCy does: `[SC001] ...`."""

    def __getattribute__(cls, code: str) -> str:
        message: str = super().__getattribute__(code)
        return message if code.startswith("_") else f"[{code}] {message}"


class Errors(
    FeatureErrors,
    ComponentErrors,
    NumericErrors,
    CommandErrors,
    EstimatorErrors,
    ClusterErrors,
    metaclass=_Coded,
):
    """Messages of errors: what was wrong, where, and what to do.

    SC1xx: features; SC2xx: the component; SC3xx: corpora, losses, solvers, learning; SC4xx:
    decoding; SC5xx: targets; SC6xx and SC7xx: commands; SC8xx: the estimator; SC9xx: clusters.
    """


class Warnings(metaclass=_Coded):
    """Messages of warnings."""

    SCW201 = (
        "Component '{name}': {n_missing} of {n_tokens} training tokens have no aligned gold "
        "annotation and are summed over. If the corpus is meant to be annotated throughout, "
        "check its tokenization and the spaces between its words."
    )
    SCW202 = (
        "Component '{name}' was trained on {trained}, but now gets {given}. Let the same "
        "pipes set sentence boundaries in training ([training] annotating_components) and in "
        'prediction, or set [components.{name}] sequences = "docs".'
    )
    SCW203 = (
        "Component '{name}' reads the annotations of '{upstream}' once, before '{upstream}' "
        "is trained in this run. Train '{upstream}' first, then source it and name it in "
        "[training] frozen_components as well as in annotating_components."
    )
    SCW204 = (
        "spacy-sparsecrf compiles its kernels anew in each process, for up to fifteen seconds, as "
        "it can write them neither beside its own files nor into a cache of the user's. Set the "
        "environment variable NUMBA_CACHE_DIR to a directory that can be written to; or run "
        "`python -m spacy_sparsecrf warmup` once where it can write, and keep what that compiles."
    )
    SCW205 = (
        "Templates of component '{name}' read {attribute}, which none of the {n_tokens} training "
        "tokens has: its tests are never true. Hand gold annotation over by the corpus reader "
        '(@readers = "spacy_sparsecrf.AnnotatedCorpus.v1" with annotations = [...], in each block '
        "of [corpora]), name the pipe that sets it in [training] annotating_components, or remove "
        "it from [components.{name}.features]."
    )
    SCW206 = (
        "Templates of component '{name}' read {attribute}, which none of these {n_tokens} tokens "
        "has, although {share:.1%} of the training tokens had it: predictions will be worse than "
        "in training. Put the pipe that sets it before '{name}', or give Docs that have it."
    )
    SCW207 = (
        "Component '{name}' learns from what `initialize` has read ({n} examples) and from nothing "
        "else, but `update` gets others, which it ignores: the first begins {text!r}. Give all "
        "training examples to nlp.initialize(lambda: examples), without a random augmenter; or set "
        "on_batches = true in [components.{name}.solver], with a solver that learns from batches, "
        "such as spacy_sparsecrf.SGDL1.v1."
    )
    SCW208 = (
        "Component '{name}': {n_lost} of {n_gold} gold labels ({share:.1%}) are lost, since "
        "predicted tokens are not cut as gold tokens are: first that of {word!r} in the Doc that "
        "begins {text!r}. Check the tokenizer ([nlp.tokenizer]), and the spaces between the words "
        "of the corpus; or set gold_preproc = true in [corpora.train] to train on gold tokens."
    )
    SCW209 = (
        "Component '{name}' goes through the whole corpus in each step, but is evaluated after "
        "every {n} steps only, and stopped late. Begin with a config of `python -m spacy_sparsecrf "
        "config`, or change two lines of this one:\n[training]\neval_frequency = 1\npatience = 5"
    )
    SCW210 = (
        "Compiled kernels in {directories} are left alone, as others may write there: they are "
        "code that would run as you. Take that right away (chmod go-w), or set the environment "
        "variable NUMBA_CACHE_DIR to a directory of your own."
    )
    SCW211 = (
        "{n} active tests have no names, so the word classes with prune = true in "
        "[components.NAME.features.clusters] are saved whole. Set names = true in "
        "[components.NAME], and train again, to have them pruned."
    )
    SCW212 = (
        "Component '{name}' was loaded with its weights and goes on from them by learning from "
        "batches, but the first of these has one example. If the batcher is "
        "spacy_sparsecrf.one_step_per_epoch.v1, it sees no others: choose one of spaCy's batchers "
        "([training.batcher]); or learn from the whole corpus, with factory instead of source, and "
        "the saved pipeline as [components.{name}.learning] prior; or freeze the component."
    )

    SCW340 = (
        'With [components.NAME] model = "maxent" labels do not depend on each other: the {n} tests '
        "that templates conjoin with pairs of labels are left out. Remove b: templates and write "
        'u: for *: in [components.NAME.features] templates, or set model = "memm" or "chain".'
    )
    SCW401 = (
        "{n} sequences have no path through the labels that are set or permitted without a "
        "transition that is not allowed ([components.NAME.decoding], and the target's scheme). "
        "What is set is kept, with as few such transitions as can be. Correct the annotation "
        "that the Docs come with, or set [components.NAME] overwrite = true."
    )
    SCW402 = (
        "{n} tokens have no permitted label: what they are annotated with is no label of the "
        "component. They are decoded as if nothing was set. Correct the annotation that the Docs "
        "come with, or set [components.NAME] overwrite = true."
    )
    SCW350 = (
        "[components.{name}.learning] constrained = true changes nothing: all sequences of the "
        "labels are legal. Name transitions in [components.{name}.decoding] forbidden or allowed, "
        "choose a target with a scheme, or set constrained = false."
    )
    SCW351 = (
        "[components.{name}.learning] has settings that are no longer known: {unknown}. What was "
        "trained with them predicts as before, but cannot be trained again: remove them."
    )
    SCW370 = (
        "The inference of {n} of {of} graphs has not converged after {limit} iterations (the "
        "largest change was {change:.2g}): their log Z and probabilities are not those of a fixed "
        "point. Raise damping (such as 0.5) or limit; very large weights may be the reason."
    )
    SCW601 = (
        "The file `names` of a component cannot be read ({reason}): tests are called by their "
        "hashes. Copy it again; a component works without it."
    )
    SCW701 = (
        "At l1 = {l1:g} the solver was stopped after {n} outer iterations, before it had converged "
        "(optimality {optimality:.2g}). Raise [training] max_steps, or set it to 0."
    )

    # SCW8xx: the estimator
    SCW801 = (
        "{name} was stopped by max_iterations = {n} before it had converged (optimality "
        "{optimality:.2g}). Raise max_iterations, or set it to None."
    )
