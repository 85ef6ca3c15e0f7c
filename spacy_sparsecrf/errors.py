"""Every message of the package, coded, and its warning categories."""

from .messages.commands import CommandErrors
from .messages.component import ComponentErrors
from .messages.decoding import DecodingErrors
from .messages.features import FeatureErrors
from .messages.learning import LearningErrors
from .messages.numerics import NumericErrors
from .messages.targets import TargetErrors


class SparseCRFWarning(UserWarning):
    """Something in data or settings that most likely is not meant."""


class SparseCRFError(ValueError):
    """Base of the package's own exceptions; the message starts with its code."""


class _Coded(type):
    """Put the code in front of each message, as spaCy does: `[SC001] ...`."""

    def __getattribute__(cls, code: str) -> str:
        message: str = super().__getattribute__(code)
        return message if code.startswith("_") else f"[{code}] {message}"


class Errors(
    FeatureErrors,
    ComponentErrors,
    NumericErrors,
    LearningErrors,
    DecodingErrors,
    TargetErrors,
    CommandErrors,
    metaclass=_Coded,
):
    """Messages of errors: what was wrong, where, and what to do.

    SC1xx: features; SC2xx: the component; SC3xx: corpora, losses, solvers, learning; SC4xx:
    decoding; SC5xx: targets; SC6xx and SC7xx: commands.
    """


class Warnings(metaclass=_Coded):
    """Messages of warnings."""

    # SCW2xx: component, targets, training loop
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

    # SCW3xx: losses
    SCW340 = (
        'With [components.NAME] model = "maxent" labels do not depend on each other: the {n} tests '
        "that templates conjoin with pairs of labels are left out. Remove b: templates and write "
        'u: for *: in [components.NAME.features] templates, or set model = "memm" or "chain".'
    )

    # SCW4xx: decoding
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

    # SCW35x: learning
    SCW350 = (
        "[components.{name}.learning] constrained = true changes nothing: all sequences of the "
        "labels are legal. Name transitions in [components.{name}.decoding] forbidden or allowed, "
        "choose a target with a scheme, or set constrained = false."
    )

    # SCW6xx: explaining
    SCW601 = (
        "The file `names` of a component cannot be read ({reason}): tests are called by their "
        "hashes. Copy it again; a component works without it."
    )

    # SCW7xx: regularisation path
    SCW701 = (
        "At l1 = {l1:g} the solver was stopped after {n} outer iterations, before it had converged "
        "(optimality {optimality:.2g}). Raise [training] max_steps, or set it to 0."
    )
