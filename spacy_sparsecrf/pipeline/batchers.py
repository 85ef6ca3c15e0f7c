"""The batches of spaCy's loop, and settings of [training]."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from spacy.language import Language
from spacy.training import Example
from spacy.util import registry

from ..errors import Errors, SparseCRFError, Warnings, warn

Batcher = Callable[[Iterable[Example]], Iterator[list[Example]]]

ONE_STEP = "spacy_sparsecrf.one_step_per_epoch.v1"
MOST_STEPS = 10  # maximum between two evaluations without a warning
_ENDLESS = -1  # the value of [training] max_epochs


@registry.batchers(ONE_STEP)  # type: ignore[untyped-decorator]
def configure_one_step_per_epoch() -> Batcher:
    """Create a batcher with one update per epoch, which is one iteration of a batch solver.

    The batch is the first example of an epoch, which stands for all: the component has read them,
    and spaCy copies the examples of each batch. Other pipes need one of spaCy's batchers.
    """
    return one_step_per_epoch


def one_step_per_epoch(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """Yield one batch with the first example.

    RAISES: SparseCRFError without examples, because spaCy's loop would then never end.
    """
    for example in examples:
        yield [example]
        return
    raise SparseCRFError(Errors.SC218)


def check_whole(name: str, nlp: Language | None) -> None:
    """Check that `initialize` of component `name` gets all examples.

    nlp: the pipeline, or None. RAISES: SparseCRFError if the corpus is streamed.
    """
    if _training_block(nlp).get("max_epochs") == _ENDLESS:
        raise SparseCRFError(Errors.SC204.format(name=name))


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


def block_of(nlp: Language, corpus: str) -> dict[str, Any]:
    """Return the block of the config that a setting of [training] names.

    corpus: "train_corpus" or "dev_corpus". RETURNS: the block; empty if there is none.
    """
    block: Any = nlp.config.interpolate()
    for key in str(block["training"][corpus]).split("."):
        block = block.get(key, {})
    return dict(block or {})


def names_corpus(nlp: Language, key: str = "train_corpus") -> bool:
    """Return whether a config has a corpus: its reader has a path, or needs none.

    key: the setting of [training] that names it.
    """
    block = block_of(nlp, key)
    return bool(block) and block.get("path", "") is not None


def is_augmented(nlp: Language) -> bool:
    """Return whether an augmenter changes the examples of the training corpus."""
    return block_of(nlp, "train_corpus").get("augmenter") is not None


def is_quiet(nlp: Language | None) -> bool:
    """Return whether the config of a pipeline turns the console output of training off."""
    logs = _training_block(nlp).get("logger")
    return isinstance(logs, dict) and logs.get("console_output") is False


def _training_block(nlp: Language | None) -> dict[str, Any]:
    return {} if nlp is None else nlp.config.interpolate()["training"]
