"""Sound files, and functions that use files: they write an accepted file, and use the copy too."""

import numpy as np

from spacy_sparsecrf.crf.corpus.encoded import Observations
from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.crf.model.model import CRFModel, WeightTable
from spacy_sparsecrf.pipeline.features.classes import WordClasses, pack, unpack

from .damaged_files import ClassesFile, File

LABELS = ["A", "Ü", "B"]
QUIET = {"over": "ignore", "invalid": "ignore", "divide": "ignore", "under": "ignore"}
Arrays = list[np.ndarray]


# Models


def model_of(kind: str = "chain", dtype: str = "float32") -> CRFModel:
    """Return a small model with unigram, pair and, if maxent, cluster weights."""
    unigram = WeightTable(
        keys=np.array([3, 9, 2**63 + 1], np.uint64),
        indptr=np.array([0, 2, 3, 5], np.int64),
        previous=np.empty(0, np.uint16),
        labels=np.array([0, 1, 1, 0, 2], np.uint16),
        values=np.array([0.5, -1.25, 1 / 3, 2.0, -2.0], dtype),
    )
    if kind == "maxent":
        return CRFModel(LABELS, dtype, unigram, kind=kind, bounds=(0, 1, 3))
    bigram = WeightTable(
        keys=np.array([7, 11], np.uint64),
        indptr=np.array([0, 2, 3], np.int64),
        previous=np.array([1, 3, 2], np.uint16),
        labels=np.array([0, 1, 2], np.uint16),
        values=np.array([2.0, -0.1, 0.7], dtype),
    )
    return CRFModel(LABELS, dtype, unigram, bigram, kind)


def stacked(model: CRFModel) -> CRFModel:
    """Return the model with itself as its first-stage model."""
    own = model.unigram, model.bigram, model.kind, model.bounds
    return CRFModel(model.labels, model.dtype, *own, first=model)


def _observations(model: CRFModel) -> Observations:
    """Return two sequences with all features of a model, some unknown, and a real-valued one."""
    keys = [*model.unigram.keys[:6].tolist(), 5, 0]
    pairs = [*model.bigram.keys[:6].tolist(), 6, 0]
    hashes = np.zeros((9, 4), np.uint64)
    for n in range(9):
        hashes[n] = [keys[n % len(keys)], keys[n * 3 % len(keys)], pairs[n % len(pairs)], 7]
    return Observations(
        hashes,
        np.array([0, 4, 9]),
        np.array([0, 1], np.int32),
        np.array([2, 3], np.int32),
        values=np.full((9, 1), 0.5, np.float32),
        value_keys=np.array([keys[0]], np.uint64),
    )


def predictions(model: CRFModel) -> Arrays:
    """Predict in several ways, and check that the output is in range."""
    seen, decoder = _observations(model), Decoder(model)
    with np.errstate(**QUIET):  # type: ignore[call-overload]
        labels = decoder.viterbi(seen)
        marginals = decoder.marginals(seen)
    assert labels.shape == (9,) and ((labels >= 0) & (labels < len(model.labels))).all()
    assert marginals.shape == (9, len(model.labels))
    return [labels, marginals, *([] if model.first is None else predictions(model.first))]


def use_model(data: bytes) -> Arrays:
    """Load a model, predict, save it, load it again, and compare predictions."""
    model = CRFModel.from_bytes(data)
    again = CRFModel.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    if not model.labels:  # The model of an untrained component, which refuses to predict.
        return []
    found = predictions(model)
    assert_same(found, predictions(again))
    return found


def assert_same(a: Arrays, b: Arrays) -> None:
    """Check that arrays are bit-identical, except for NaN."""
    for before, after in zip(a, b, strict=True):
        np.testing.assert_array_equal(before, after)


# Word classes


def classes() -> File:
    """Return word classes of paths."""
    words = {"the": "0110", "The": "0111", "cat": "10", "Cat": "11", "dog": "0"}
    return ClassesFile.of(pack({"a": WordClasses.of(words, True)}))


def use_classes(data: bytes) -> Arrays:
    """Read word classes, look up words, write the classes and read them again."""
    lists = unpack(data)
    again = unpack(pack(lists))
    words = ["the", "The", "CAT", "dog", "w7", "W399", "", "x" * 100, "Ü"]
    found = [np.array([own.find(word) for word in words]) for own in lists.values()]
    assert_same(found, [np.array([own.find(w) for w in words]) for own in again.values()])
    for own, codes in zip(lists.values(), found, strict=True):
        assert (codes < len(own.classes)).all()
    return found
