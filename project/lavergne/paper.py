"""What the paper reports, by the experiment that is to be held against it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A row of the paper.

    error: percentage of wrong labels of the test parts of ten folds; part: of wrong phonemes where
    labels have stress marks as well; active: weights that are not zero; iterations: of the method;
    minutes: of all cores together.
    """

    error: float
    part: float | None = None
    active: int | None = None
    iterations: float | None = None
    minutes: int | None = None


# Table 4, and table 1 for windows of three and five letters.
_PHONEMES = {
    "phonemes-1grm-owlqn": Published(17.79, None, 4684, 63.4, 11),
    "phonemes-3grm-owlqn": Published(10.74),
    "phonemes-5grm-owlqn": Published(8.48),
    "phonemes-7grm-owlqn": Published(8.12, None, 38214, 140.2, 62),
    "phonemes-5grm+-owlqn": Published(7.89, None, 43429, 141.0, 97),
    "phonemes-1grm-sgd": Published(18.21, None, 3540, 21.4, 9),
    "phonemes-5grm+-sgd": Published(8.01, None, 34319, 28.5, 45),
    "phonemes-1grm-bcd": Published(18.27, None, 5017, 28.2, 27),
    "phonemes-7grm-bcd": Published(8.21, None, 3692, 9.2, 82),
    "phonemes-5grm+-bcd": Published(7.91, None, 47675, 8.7, 138),
    "phonemes-3grm-owlqn-unigrams": Published(14.59),
    "phonemes-5grm-owlqn-unigrams": Published(11.54),
}
# Table 3; its elastic nets are 17.79, 10.70 and 8.48.
_PENALTIES = {
    "phonemes-1grm-owlqn-l1": Published(17.86),
    "phonemes-3grm-owlqn-l1": Published(10.74),
    "phonemes-5grm-owlqn-l1": Published(8.45),
}
L2_ERRORS = {"1": 17.81, "3": 10.62, "5": 8.50}
# Table 5.
_JOINT = {
    "joint-5grm-sgd": Published(14.71, 8.11, minutes=55),
    "joint-5grm+-sgd": Published(13.91, 7.51, minutes=165),
    "joint-5grm-bcd": Published(14.57, 8.06, minutes=166),
    "joint-7grm-bcd": Published(14.12, 7.86, minutes=182),
    "joint-5grm+-bcd": Published(13.85, 7.47, minutes=434),
    "joint-5grm++-bcd": Published(13.69, 7.36, minutes=963),
}
PUBLISHED: dict[str, Published] = {**_PHONEMES, **_PENALTIES, **_JOINT}
# Table 1, on another treebank: with pairs of labels and without.
TAGS_PUBLISHED = {"ewt-owlqn": 2.91, "ewt-owlqn-unigrams": 3.47}
