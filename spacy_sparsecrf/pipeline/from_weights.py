"""Components that get their weights from elsewhere instead of learning them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spacy.tokens import Doc
from spacy.training import Example

from ..analysis import edit_weights as patching
from ..model.model import CRFModel

if TYPE_CHECKING:
    from .component import SparseCRFPipe


def fill(pipe: "SparseCRFPipe", model: CRFModel, names: Mapping[int, str], path: str) -> None:
    """Give a new component labels and weights.

    model: has them, with keys of its own; names: of its tests, by these keys; path: where they are
    from, for messages.
    RAISES: SparseCRFError for labels that the target cannot write, and tests that no template of
        the component makes.
    """
    # Without gold there are labels, and nothing to learn.
    empty = Doc(pipe.vocab, words=["..."])
    pipe.initialize(lambda: [Example(empty, empty.copy())], labels=model.labels)
    pipe.patch(patching.dump(model, names), path, replace=True)
