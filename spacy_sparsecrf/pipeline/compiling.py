"""Examples -> encoded corpus: what a batch solver reads, once, in `initialize`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import tqdm
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch

from ..corpus import CorpusBuilder, EncodedCorpus, Observations
from ..errors import Errors, SparseCRFError
from ..targets.base import Target
from .skew import observed_cut

Features: TypeAlias = Callable[[Sequence[Doc], str], Observations]

BATCH_SIZE = 512  # Docs featurised at once: bounds the memory of hashes, costs nothing
BAR_DELAY = 3.0  # seconds before a progress bar appears


@dataclass(frozen=True)
class Compiled:
    """What reading the examples yields.

    labels: names of the labels; a gold label id is a position here.
    corpus: the encoded corpus, or None where no token has a gold label.
    n_examples, n_tokens, n_missing: Docs, their tokens, and those without a gold label.
    cut: how the Docs were cut, see `observed_cut`; None where Docs differ or do not tell.
    """

    labels: tuple[str, ...]
    corpus: EncodedCorpus | None
    n_examples: int
    n_tokens: int
    n_missing: int
    cut: str | None


class LabelIds:
    """Numbers gold labels; grows with them unless the labels are fixed.

    name: of the component, for the error message.
    labels: known labels, in order.
    fixed: whether a label that is not known is an error; otherwise labels end up sorted.
    unknown: the message of that error.
    """

    def __init__(
        self, name: str, labels: Iterable[str], *, fixed: bool, unknown: str = Errors.SC206
    ) -> None:
        self._name = name
        self._ids = {label: i for i, label in enumerate(labels)}
        self._fixed = fixed
        self._unknown = unknown

    def encode(self, gold: Iterable[str | None], doc: Doc) -> list[int]:
        """Number the gold labels of a Doc's tokens; -1 where one is missing.

        RAISES: SparseCRFError for an unknown label if the labels are fixed.
        """
        return [self._encode_one(label, doc) if label else -1 for label in gold]

    def _encode_one(self, label: str, doc: Doc) -> int:
        if label not in self._ids and self._fixed:
            error = self._unknown.format(
                name=self._name, label=label, known=", ".join(self._ids), text=doc.text[:60]
            )
            raise SparseCRFError(error)
        return self._ids.setdefault(label, len(self._ids))

    def final(self) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """Order the labels.

        RETURNS: the labels [Y] in their final order, and [Y + 1] int32: the final id of each
            id given by `encode`, with -1 at the end, so that -1 maps to itself.
        """
        labels = tuple(self._ids) if self._fixed else tuple(sorted(self._ids))
        position = {label: i for i, label in enumerate(labels)}
        return labels, np.array([*(position[label] for label in self._ids), -1], np.int32)


def make_label_ids(
    name: str, given: Sequence[str] | None, added: Sequence[str], learnt: Sequence[str]
) -> LabelIds:
    """Prepare the numbering of labels.

    name: of the component; given: all labels, in order, or None; added: by `add_label`;
    learnt: of earlier weights.
    RAISES: SparseCRFError if labels are given, but not all that were learnt.
    """
    if given is None:
        return LabelIds(name, dict.fromkeys([*added, *learnt]), fixed=False)
    known = list(dict.fromkeys([*given, *added]))
    lost = [label for label in learnt if label not in known]
    if lost:
        raise SparseCRFError(Errors.SC208.format(name=name, labels=", ".join(lost)))
    return LabelIds(name, known, fixed=True)


def checked(name: str, get_examples: Callable[[], Iterable[Example]]) -> Iterator[Example]:
    """Read the examples of component `name`, checking that they are some."""
    if not callable(get_examples):
        raise SparseCRFError(Errors.SC216.format(name=name, got=type(get_examples)))
    for example in get_examples():
        if not isinstance(example, Example):
            raise SparseCRFError(Errors.SC216.format(name=name, got=type(example)))
        yield example


def compile_corpus(
    examples: Iterable[Example],
    features: Features,
    target: Target,
    sequences: str,
    label_ids: LabelIds,
) -> Compiled:
    """Read examples once into arrays.

    examples: predicted Docs are featurised and cut, gold labels read from references.
    features: hashes the observation tests of Docs.
    target: reads gold labels.
    sequences: "sents" or "docs", as `features` takes it.
    label_ids: numbers the labels.
    RAISES: SparseCRFError for a gold label outside fixed labels.
    """
    builder = CorpusBuilder()
    cuts: set[str | None] = set()
    n_examples = n_tokens = n_missing = 0
    for batch in minibatch(_with_bar(examples), BATCH_SIZE):  # type: ignore[no-untyped-call]
        gold: list[int] = []
        for example in batch:
            gold.extend(label_ids.encode(target.gold(example), example.predicted))
            cuts.add(observed_cut(example))
        n_examples += len(batch)
        n_tokens += len(gold)
        n_missing += gold.count(-1)
        if gold:
            docs = [example.predicted for example in batch]
            builder.add(features(docs, sequences), np.array(gold, dtype=np.int32))
    labels, final_ids = label_ids.final()
    corpus = None
    if n_missing < n_tokens:
        corpus = builder.build()
        corpus = replace(corpus, labels=final_ids[corpus.labels])
    cuts.discard(None)
    cut = cuts.pop() if len(cuts) == 1 else None
    return Compiled(labels, corpus, n_examples, n_tokens, n_missing, cut)


def _with_bar(examples: Iterable[Example]) -> Iterator[Example]:
    """Show progress on a terminal where reading takes long."""
    yield from tqdm.tqdm(
        examples,
        desc="Reading corpus",
        unit=" docs",
        delay=BAR_DELAY,
        disable=None,
        leave=False,
    )
