"""The batches of spaCy's loop, and settings of [training]."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

from spacy.language import Language
from spacy.training import Example
from spacy.training.loop import create_train_batches
from spacy.util import dot_to_object, registry

from ..errors import Errors, SparseCRFError, Warnings, warn

Batcher = Callable[[Iterable[Example]], Iterator[list[Example]]]

ONE_STEP = "spacy_sparsecrf.one_step_per_epoch.v1"
MOST_STEPS = 10  # maximum between two evaluations without a warning
_ENDLESS = -1  # the value of [training] max_epochs


@registry.batchers(ONE_STEP)  # type: ignore[untyped-decorator]
def configure_one_step_per_epoch() -> Batcher:
    """Create a batcher with one update per epoch, which is one iteration of a batch solver.

    The batch is the first example of an epoch, because a batch solver ignores it. Nothing is
    copied, and if no other pipe is trained, `spacy train` keeps no other example. Other pipes that
    train on batches need one of spaCy's batchers. If [training] max_epochs is set, training ends
    when the solver has converged: later epochs are empty.
    """
    return one_step_per_epoch


# Pipelines whose training has finished, and pipelines in which one component alone is trained.
# spaCy's loop has no stop signal, and a batcher has access only to the vocab of a pipeline's Docs,
# which does not support weak references.
_finished: WeakSet[Language] = WeakSet()
_alone: WeakKeyDictionary[Language, str] = WeakKeyDictionary()


def begin_run(name: str, nlp: Language | None) -> "ref[Language] | None":
    """Register a new training run; return the argument of `finish_run`, or None.

    `finish_run` can end the run if component `name` alone is trained and [training] max_epochs is
    set; without it, spaCy's loop would spin.
    """
    if nlp is None:
        return None
    _finished.discard(nlp)
    _alone.pop(nlp, None)
    block = _training_block(nlp)
    learning = [
        each
        for each, pipe in nlp.components
        if getattr(pipe, "is_trainable", False) and each not in block["frozen_components"]
    ]
    if learning != [name] or batcher_of(nlp) != ONE_STEP:
        return None
    _alone[nlp] = name
    return ref(nlp) if block["max_epochs"] > 0 else None


def finish_run(run: "ref[Language] | None") -> None:
    """Let the batcher end a run, see `begin_run`; do nothing for None."""
    nlp = run() if run else None
    if nlp is not None:
        _finished.add(nlp)


def needs_one_example(nlp: Language) -> bool:
    """Return whether the calling reader feeds a batcher that uses one example only.

    This is the case in the loop of `spacy train`, whose list of examples is not used otherwise.
    """
    return nlp in _alone and _is_called_by_loop()


def _is_called_by_loop() -> bool:
    """Return whether spaCy's loop is among the innermost three callers of this function."""
    frame = inspect.currentframe()
    for _ in range(3):
        frame = frame and frame.f_back
        if frame is not None and frame.f_code is create_train_batches.__code__:
            return True
    return False


def one_step_per_epoch(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """Yield one batch with the first example, and none after convergence; see `finish_run`.

    examples: if one component alone is trained, all other examples are removed from the list of
    `spacy train`, and the component frees the features of tokens.

    RAISES: SparseCRFError without examples, because spaCy's loop would then never end.
    """
    for example in examples:
        vocab = example.predicted.vocab
        if isinstance(examples, list) and _is_called_by_loop():
            for nlp in [own for own in _alone if own.vocab is vocab]:
                del examples[1:]
                pipe: Any = nlp.get_pipe(_alone.pop(nlp))
                pipe.free_corpus()
        if all(nlp.vocab is not vocab for nlp in _finished):
            yield [example]
        return
    raise SparseCRFError(Errors.SC218)


def check_whole(name: str, nlp: Language | None) -> None:
    """Check that `initialize` of component `name` gets all examples.

    nlp: the pipeline, or None. RAISES: SparseCRFError if the corpus is streamed.
    """
    if _training_block(nlp).get("max_epochs") == _ENDLESS:
        raise SparseCRFError(Errors.SC204.format(name=name))


def batcher_of(nlp: Language | None) -> str | None:
    """Return the name of the batcher in the config of a pipeline, or None."""
    batcher = _training_block(nlp).get("batcher")
    return batcher.get("@batchers") if isinstance(batcher, dict) else None


def warn_of_rare_evaluations(name: str, nlp: Language | None) -> None:
    """Warn if `spacy train` evaluates only after many iterations, as it does by default.

    name: of a component with batch training. There is no warning if other components are trained
    too, because their steps are short, or if the config has no corpus: the caller then evaluates.
    """
    if nlp is None or not names_corpus(nlp):
        return
    n_steps = _training_block(nlp)["eval_frequency"]
    if n_steps > MOST_STEPS and list(learners(nlp)) == [name]:
        warn(Warnings.SCW209.format(name=name, n=n_steps))


def learners(nlp: Language, sourced: Collection[str] = ()) -> dict[str, Any]:
    """Return the pipes, by name, that training changes: neither frozen nor sourced."""
    fixed = {*sourced, *_training_block(nlp)["frozen_components"]}
    pipes = {name: pipe for name, pipe in nlp.pipeline if name not in fixed}
    return {name: pipe for name, pipe in pipes.items() if getattr(pipe, "is_trainable", False)}


def names_corpus(nlp: Language, key: str = "train_corpus") -> bool:
    """Return whether a config has a corpus: its reader has a path, or needs none.

    key: the setting of [training] that names it.
    """
    config = nlp.config.interpolate()
    try:
        corpus = dot_to_object(config, config["training"][key])
    except KeyError:
        return False
    return corpus.get("path", "") is not None


def is_quiet(nlp: Language | None) -> bool:
    """Return whether the config of a pipeline turns the console output of training off."""
    logs = _training_block(nlp).get("logger")
    return isinstance(logs, dict) and logs.get("console_output") is False


def _training_block(nlp: Language | None) -> dict[str, Any]:
    return {} if nlp is None else nlp.config.interpolate()["training"]
