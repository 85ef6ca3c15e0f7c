"""Components whose weights are imported instead of trained."""

from collections.abc import Mapping
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example

from ..model.model import CRFModel
from ..pipeline.component import SparseCRFPipe

_EXPECTED = 0.5  # share of tokens that probably had annotation when the model was trained


def set_weights(pipe: SparseCRFPipe, model: CRFModel, names: Mapping[int, str], path: str) -> None:
    """Set the labels and weights of a new component.

    model: has the labels and weights, with arbitrary keys; names: of its features, by these keys;
    path: source of the model, for messages.
    RAISES: SparseCRFError for labels that the target cannot write, and for features that no
        template of the component generates.
    """
    from ..analysis.edit_weights import dump

    # Sets the labels; without gold annotation there is nothing to train.
    empty = Doc(pipe.vocab, words=["..."])
    pipe.initialize(lambda: [Example(empty, empty.copy())], labels=model.labels)
    # Trained components know the annotation that their features need; warn if all tokens lack it.
    features: Any = pipe.features
    pipe.cfg["shares"] = dict.fromkeys(features.plan.watched, _EXPECTED)
    pipe.patch(dump(model, names), path, replace=True)
