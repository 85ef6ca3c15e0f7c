"""Components that get their weights from elsewhere instead of learning them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from spacy.tokens import Doc
from spacy.training import Example

if TYPE_CHECKING:
    from .component import SparseCRF


def fill(pipe: "SparseCRF", labels: Sequence[str], lines: Iterable[str], path: str) -> None:
    """Give a new component labels and weights.

    labels: of tokens, in order; lines: weights, see `patching`; path: where they are from, for
    messages.
    RAISES: SparseCRFError for labels that the target cannot write, and lines that are no weights.
    """
    # Without gold there are labels, and nothing to learn.
    empty = Doc(pipe.vocab, words=["..."])
    pipe.initialize(lambda: [Example(empty, empty.copy())], labels=labels)
    pipe.patch(lines, path, replace=True)
