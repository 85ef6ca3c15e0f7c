"""Gold labels of sequences, and weights of sequences: read, checked and compared."""

from collections.abc import Iterable, Sequence, Set
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...crf.corpus.encoded import MISSING
from ...crf.corpus.numbering import Floats, Ints
from ...errors import Errors, SparseCRFError
from .items import as_tokens, check_length, check_lengths


def read_gold(y: Iterable[Any], lengths: Sequence[int]) -> tuple[list[str], Ints]:
    """Read labels of sequences; lengths: [S], of the sequences.

    RETURNS: the Y labels; [N] int32, the numbers of tokens' labels, -1 for none.
    RAISES: SparseCRFError for labels that are not strings or None, for "", which no file of a model
        has, and for other numbers of them.
    """
    y = _as_lists(y)
    check_lengths(lengths, y)
    for s, labels_of_one in enumerate(y):
        for t, label in enumerate(labels_of_one):
            if label is not None and not (label and isinstance(label, str)):
                raise SparseCRFError(Errors.SC804.format(number=s, token=t, label=label))
    labels = [*chain.from_iterable(y)]
    names = sorted({str(label) for label in labels if label is not None})
    if not names:
        raise SparseCRFError(Errors.SC305)
    ids: dict[str | None, int] = {label: i for i, label in enumerate(names)}
    ids[None] = MISSING
    return names, np.fromiter(map(ids.__getitem__, labels), np.int32, len(labels))


def read_pairs(X: Iterable[Any], y: Iterable[Any], suffix: str = "") -> tuple[list[Any], list[Any]]:
    """Read sequences and their labels into lists, also of generators.

    suffix: see `check_lengths`. RAISES: SparseCRFError for unordered ones and other lengths.
    """
    tokens = [as_tokens(sequence, f"X{suffix}[{number}]") for number, sequence in enumerate(X)]
    labels = _as_lists(y)
    check_lengths([*map(len, tokens)], labels, suffix)
    return tokens, labels


def _as_lists(y: Iterable[Any]) -> list[Any]:
    lists = []
    for number, labels in enumerate(y):
        if isinstance(labels, Set | str) or not isinstance(labels, Iterable):
            raise SparseCRFError(Errors.SC804.format(number=number, token=0, label=labels))
        lists.append([*labels])
    return lists


def read_weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    """Return the weights of n sequences. RAISES: SparseCRFError unless [n], finite and >= 0."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.array(sample_weight, np.float64).ravel()
    check_length("X", n, "sample_weight", len(weights))
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        reason = "weights are finite and not negative"
        values = {"name": "sample_weight", "value": float(weights.min()), "reason": reason}
        raise SparseCRFError(Errors.SC809.format(**values))
    return weights


def accuracy(found: Iterable[Any], y: Sequence[Any], weights: Iterable[float]) -> float:
    """Return the share of tokens with a gold label that are labelled correctly.

    found, y: predicted and gold labels, of the same lengths; weights: [S], of sequences.
    """
    right = total = 0.0
    for ours, gold, weight in zip(found, y, weights, strict=True):
        right += weight * sum(a == b for a, b in zip(ours, gold, strict=True))
        total += weight * sum(label is not None for label in gold)
    return float(right / total) if total else 0.0
