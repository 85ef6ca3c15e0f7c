"""The weights of a model as of `pycrfsuite.Tagger.info`, and as text."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .crfsuite_file import CrfsuiteModel
    from .sequences.opened_model import TrainedWeights


class WeightSummary(NamedTuple):
    """The non-zero weights of a model, as `pycrfsuite.Tagger.info` returns them.

    Attributes
    ----------
    transitions : dict of (str or None, str) to float
        Weights by (label before, label); the label before the first label is None.
    state_features : dict of (str, str) to float
        Weights by (feature, label).
    header : dict of str to str
        Size of the file in bytes, and counts.
    labels, attributes : dict of str to str
        Their numbers as text.
    bigram_features : dict of (str, str or None, str) to float
        Weights by (feature, label before, label).

    Examples
    --------
    >>> from spacy_sparsecrf.sklearn import CRF
    >>> crf = CRF(c1=0.1, c2=0.01).fit([[["met"], ["Omar"]]], [["O", "PER"]])
    >>> crf.tagger_.info()
    WeightSummary(2 labels, 2 attributes)
    >>> sorted(crf.tagger_.info().state_features)
    [('Omar', 'PER'), ('met', 'O')]
    """

    transitions: dict[tuple[str | None, str], float]
    state_features: dict[tuple[str, str], float]
    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    bigram_features: dict[tuple[str, str | None, str], float]

    @classmethod
    def of(cls, weights: "CrfsuiteModel | TrainedWeights") -> "WeightSummary":
        """Return the weights of a model; the header lacks the size of the file."""
        labels, texts = weights.labels, ["", *weights.attributes]
        previous_labels = [*labels, None]
        states = dict[tuple[str, str], float]()
        transitions = dict[tuple[str | None, str], float]()
        bigrams = dict[tuple[str, str | None, str], float]()
        for number, previous, y, weight in weights.entries():
            if previous < 0:
                states[texts[number], labels[y]] = weight
            elif number:
                bigrams[texts[number], previous_labels[previous], labels[y]] = weight
            else:
                transitions[previous_labels[previous], labels[y]] = weight
        header = {
            "num_features": str(len(states) + len(transitions)),
            "num_labels": str(len(labels)),
            "num_attrs": str(len(texts) - 1),
        }
        return cls(
            transitions=transitions,
            state_features=states,
            header=header,
            labels={label: str(number) for number, label in enumerate(labels)},
            attributes={text: str(number) for number, text in enumerate(texts[1:])},
            bigram_features=bigrams,
        )

    def __repr__(self) -> str:
        return f"WeightSummary({len(self.labels)} labels, {len(self.attributes):,} attributes)"

    def lines(self) -> Iterator[str]:
        """Yield the lines of a dump, as CRFsuite writes them.

        Yields
        ------
        str
            A line with its end.
        """
        yield "FILEHEADER = {\n"
        yield from (f"  {name}: {value}\n" for name, value in self.header.items())
        for title, names in (("LABELS", self.labels), ("ATTRIBUTES", self.attributes)):
            yield f"}}\n\n{title} = {{\n"
            yield from (f"{number:>7}: {name}\n" for name, number in names.items())
        tables = ("TRANSITIONS", 1, self.transitions), ("STATE_FEATURES", 0, self.state_features)
        for title, kind, weights in tables:
            yield f"}}\n\n{title} = {{\n"
            for (source, label), weight in weights.items():
                yield f"  ({kind}) {source} --> {label}: {weight:f}\n"
        yield "}\n"
