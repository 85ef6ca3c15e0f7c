"""Steps of decoding: from a model's weights to the scores of label sequences.

A decoder has a list of steps: those of its model's kind (`model_steps`), then those that it is
given, as options. A new option is a new class in that list.
"""

from dataclasses import dataclass, field, replace

from ..corpus.numbering import Floats, Ints, Mask
from ..model.model import CRFModel
from .sources import Source


@dataclass(slots=True)
class Scores:
    """Scores of the sequences of a source, before constraints; steps compute them in turn.

    context: [N] int32; pairs: [C, Y + 1, Yp] float64, scores of label pairs by context, row Y =
    start label; are_shared: whether `pairs` is one array for many sources, which must not change;
    tokens: [N, Yp] float64, scores of labels.
    """

    source: Source
    context: Ints
    pairs: Floats
    are_shared: bool = True
    tokens: Floats = field(init=False)


class Step:
    """A step of decoding; subclasses override what they change."""

    def prepare(self, model: CRFModel, valid: Mask | None) -> tuple[CRFModel, Mask | None]:
        """Change the weights and the valid transitions of all sequences, in a new decoder.

        valid: see `Decoder`. RETURNS: both; the arguments do not change.
        """
        return model, valid

    def prefer(self, scores: Floats) -> None:
        """Add to the scores by which labels are chosen, but not to probabilities, in place.

        scores: [..., Yp], of labels at tokens or in pairs; each token is the second of one pair.
        """


class TokenStep(Step):
    """A step that computes or changes scores of tokens, or of their label pairs."""

    def score(self, scores: Scores) -> None:
        """Change scores, in place."""
        raise NotImplementedError


@dataclass(frozen=True)
class Temperature(Step):
    """Divides all weights by a temperature, > 0."""

    temperature: float

    def prepare(self, model: CRFModel, valid: Mask | None) -> tuple[CRFModel, Mask | None]:
        """Divide the weights."""
        unigram, bigram = (
            replace(table, values=table.values / self.temperature)
            for table in (model.unigram, model.bigram)
        )
        return model.with_weights(unigram, bigram), valid


@dataclass(frozen=True)
class Preference(Step):
    """Adds a weight to the scores of a label to choose labels; probabilities do not use it."""

    label: int
    weight: float

    def prefer(self, scores: Floats) -> None:
        """Add the weight."""
        scores[..., self.label] += self.weight
