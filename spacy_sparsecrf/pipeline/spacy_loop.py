"""Settings of spaCy's loop, in the block [training], and checks of them by components."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from spacy.language import Language

from ..errors import Errors, SparseCRFError, Warnings, warn
from .annotations import Annotations
from .loop import ONE_STEP
from .settings import Setup
from .targets.entities import Entities
from .targets.target import Target
from .targets.token_attribute import PREFIX, TOKEN_ATTR
from .token_scorer import DEFAULT_ATTR, TOKEN_SCORER

MOST_STEPS = 10  # maximum between two evaluations without a warning
DEFAULT_SCORE = "tag_acc"
# Scorers whose score names are known; the names of a user's scorer are not.
_KNOWN_SCORERS = (TOKEN_SCORER, "spacy.tagger_scorer.v1", "spacy.morphologizer_scorer.v1")
READER = "spacy_sparsecrf.AnnotatedCorpus.v1"
_ENDLESS = -1  # the value of [training] max_epochs


@dataclass(frozen=True)
class Loop:
    """The settings of a training run, from the pipeline and its config.

    quiet: whether the console output of training is off; augmented: whether an augmenter changes
    the training examples; is_spacys: whether the config names a training corpus, without which the
    loop is a user's own; upstream: the annotating pipes before the component, by name.
    """

    quiet: bool = False
    augmented: bool = False
    is_spacys: bool = False
    upstream: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, nlp: Language | None, pipe: object) -> "Loop":
        """Return the settings for a pipe of a pipeline, if any.

        Disabled pipes are included, because spaCy disables frozen and sourced pipes during
        `initialize`. An enabled annotating pipe that may be untrained raises a warning.
        """
        if nlp is None:
            return cls()
        config = nlp.config.interpolate()
        training, corpus = config["training"], block_of(nlp, "train_corpus")
        logs, annotating = training.get("logger"), training["annotating_components"]
        earlier = takewhile(lambda component: component[1] is not pipe, nlp.components)
        upstream = {name: proc for name, proc in earlier if name in annotating}
        for name, proc in upstream.items():
            if name in nlp.pipe_names and getattr(proc, "is_trainable", False):
                warn(Warnings.SCW203.format(name=getattr(pipe, "name", ""), upstream=name))
        quiet = isinstance(logs, dict) and logs.get("console_output") is False
        return cls(quiet, corpus.get("augmenter") is not None, has_path(corpus), upstream)


def block_of(nlp: Language, corpus: str) -> dict[str, Any]:
    """Return the block of the config that a setting of [training] names.

    corpus: "train_corpus" or "dev_corpus". RETURNS: the block; empty if there is none.
    """
    config = nlp.config.interpolate()
    block: Any = config
    for key in str(config["training"][corpus]).split("."):
        block = block.get(key, {})
    return dict(block or {})


def has_path(block: dict[str, Any]) -> bool:
    """Return whether the reader of a block has a path, or needs none."""
    return bool(block) and block.get("path", "") is not None


def learners(nlp: Language, sourced: Collection[str] = ()) -> dict[str, Any]:
    """Return the pipes, by name, that training changes: neither frozen nor sourced."""
    fixed = {*sourced, *nlp.config.interpolate()["training"]["frozen_components"]}
    pipes = {name: pipe for name, pipe in nlp.pipeline if name not in fixed}
    return {name: pipe for name, pipe in pipes.items() if getattr(pipe, "is_trainable", False)}


def check_loop(setup: Setup, nlp: Language) -> None:
    """Check the settings of spaCy's loop for a component, and warn about probable mistakes.

    RAISES: SparseCRFError if the corpus is streamed.
    """
    if nlp.config.interpolate()["training"]["max_epochs"] == _ENDLESS:
        raise SparseCRFError(Errors.SC204.format(name=setup.name))
    for check in LOOP_CHECKS:
        for message in check(setup, nlp):
            warn(message)


def _check_score(setup: Setup, nlp: Language) -> Iterator[str]:
    """Warn if the accuracy of tags is weighted, but the target learns, or names, something else.

    It stays 0. The default score weights of a factory are fixed and cannot depend on its target.
    """
    name, attr = setup.name, setup.target.scoring().get(TOKEN_ATTR, "")
    if attr == DEFAULT_ATTR or name not in nlp.component_names:
        return
    config = nlp.config.interpolate()
    scorer = config["components"][name].get("scorer") or {}
    kind = "f" if setup.target.outside_label else "acc"
    weights, score = config["training"]["score_weights"], f"{attr.removeprefix(PREFIX)}_{kind}"
    is_lost = weights.get(DEFAULT_SCORE) and not weights.get(score)
    if not is_lost or scorer.get("@scorers") not in _KNOWN_SCORERS:
        return
    if not any(_scores_tags(nlp, other) for other in nlp.component_names):
        message = Warnings.SCW230 if attr else Warnings.SCW228
        yield message.format(name=name, attr=attr, unfit=DEFAULT_SCORE, own=score)


def _scores_tags(nlp: Language, name: str) -> bool:
    """Return whether a component of a pipeline has a score of tags."""
    target = getattr(nlp.get_pipe(name), "target", None)
    if isinstance(target, Target):
        return bool(target.scoring().get(TOKEN_ATTR) == DEFAULT_ATTR)
    return DEFAULT_SCORE in (nlp.get_pipe_meta(name).default_score_weights or {})


def _check_copied(setup: Setup, nlp: Language) -> Iterator[str]:
    """Warn if development Docs get gold annotation that the component predicts, and would keep."""
    block = block_of(nlp, "dev_corpus")
    if setup.settings.overwrite or block.get("@readers") != READER:
        return
    copied, scoring = Annotations.parse(block.get("annotations", ())), setup.target.scoring()
    attr, key = scoring.get(TOKEN_ATTR, ""), scoring.get("spans_key")
    of_spans = key is not None and (copied.groups is None or key in copied.groups)
    of_ents = copied.ents and isinstance(setup.target, Entities)
    extensions = {f"{PREFIX}{name}" for name in copied.extensions}
    if of_ents or of_spans or attr.upper() in copied.attributes or attr in extensions:
        yield Warnings.SCW225.format(name=setup.name)


def _check_lengths(setup: Setup, nlp: Language) -> Iterator[str]:
    """Warn about a reader that leaves out long Docs; ours does not."""
    for corpus in ("train_corpus", "dev_corpus"):
        block = block_of(nlp, corpus)
        if (value := block.get("max_length")) and block.get("@readers") != READER:
            yield Warnings.SCW241.format(name=setup.name, corpus=corpus, value=value)


def _check_steps(setup: Setup, nlp: Language) -> Iterator[str]:
    """Warn if `spacy train` evaluates only after many iterations, as it does by default.

    Steps of other components are short, if these are trained too; warn if they get one example.
    """
    training, trained = nlp.config.interpolate()["training"], learners(nlp)
    others = [n for n in trained if not nlp.get_pipe_meta(n).factory.startswith("sparse_crf")]
    if others and training["batcher"].get("@batchers") == ONE_STEP:
        yield Warnings.SCW231.format(batcher=ONE_STEP, others=", ".join(others))
    if training["eval_frequency"] > MOST_STEPS and list(trained) == [setup.name]:
        yield Warnings.SCW209.format(name=setup.name, n=training["eval_frequency"])


LOOP_CHECKS = _check_score, _check_copied, _check_lengths, _check_steps
"""Checks of the settings of spaCy's loop, in the order of their warnings."""


def idle_attributes(nlp: Language | None, pipe: object, read: Collection[str]) -> dict[str, str]:
    """Return the pipes that set attributes in prediction but not in training, by attribute.

    pipe: reads the attributes after them. Pipes that this run trains are left out, because they
    cannot annotate yet. spaCy disables frozen and sourced pipes during `initialize`.
    """
    if nlp is None or not read:
        return {}
    config = nlp.config.interpolate()
    annotating = {*config["training"]["annotating_components"], *config["nlp"]["disabled"]}
    idle: dict[str, str] = {}
    for name, proc in takewhile(lambda component: component[1] is not pipe, nlp.components):
        is_trained = getattr(proc, "is_trainable", False) and name in nlp.pipe_names
        if name not in annotating and not is_trained:
            assigned = {path.split(".", 1)[-1] for path in nlp.get_pipe_meta(name).assigns}
            idle |= {attribute: name for attribute in read if attribute in assigned}
    return idle
