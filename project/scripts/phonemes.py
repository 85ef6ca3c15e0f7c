"""Labels of letters: the phonemes that a letter emits, as one string."""

from collections.abc import Iterable, Sequence

NONE = "_"
JOIN = "+"
STRESS = "012"


def to_label(phonemes: Sequence[str]) -> str:
    """Write a letter's phonemes as a label, e.g. `_`, `AH0` or `K+S`."""
    return JOIN.join(phonemes) or NONE


def from_labels(labels: Iterable[str]) -> list[str]:
    """Read the phonemes of a word off its letters' labels."""
    return [phoneme for label in labels if label != NONE for phoneme in label.split(JOIN)]


def strip_stress(phonemes: Iterable[str]) -> list[str]:
    """Drop the stress marks of ARPAbet vowels: `AH0` becomes `AH`."""
    return [phoneme.rstrip(STRESS) for phoneme in phonemes]
