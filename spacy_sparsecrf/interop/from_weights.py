"""Components that get their weights from elsewhere instead of learning them."""

from collections.abc import Mapping

from spacy.tokens import Doc
from spacy.training import Example

from ..model.model import CRFModel
from ..pipeline.add_ons import edit_weights
from ..pipeline.component import SparseCRFPipe


def set_weights(pipe: SparseCRFPipe, model: CRFModel, names: Mapping[int, str], path: str) -> None:
    """Give a new component labels and weights.

    model: has them, with keys of its own; names: of its features, by these keys; path: where they
    are from, for messages.
    RAISES: SparseCRFError for labels that the target cannot write, and features that no template of
        the component makes.
    """
    # Without gold there are labels, and nothing to learn.
    empty = Doc(pipe.vocab, words=["..."])
    pipe.initialize(lambda: [Example(empty, empty.copy())], labels=model.labels)
    pipe.patch(edit_weights().dump(model, names), path, replace=True)
