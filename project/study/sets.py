"""The data sets of the study: what is learnt from, and what errors are counted on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import spacy
from bench.data import (
    PROJECT,
    Source,
    centred_ngrams,
    chunking_templates,
    make_docs,
    sample,
)
from columns import Rows, find, read_tsv
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_sparsecrf.corpus.encoded import CorpusBuilder, EncodedCorpus, Observations
from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.model.model import CRFModel

# Spanish names: the window of words that Altun et al. call S3, in the language of templates.
_WINDOW = ("orth", "suffix(3)", "shape")
NAME_TEMPLATES = (
    "b:",
    *(f"u:{attribute}[{i}]" for attribute in _WINDOW for i in (-2, -1, 0, 1, 2)),
)
# A fold of the letters in ten is for testing.
_TEST_FOLD = 0


@dataclass(frozen=True)
class DataSet:
    """A training corpus, and observations with gold labels for testing.

    gold: [N] int64, label ids of the test tokens, -1 where training has no such label;
    observed_only: whether only pairs of a test and a label that occur have weights.
    """

    name: str
    corpus: EncodedCorpus
    labels: tuple[str, ...]
    test: Observations
    gold: NDArray[np.int64]
    observed_only: bool
    kind: str = "chain"

    def error(self, model: CRFModel) -> float:
        """Percentage of test tokens with a wrong label."""
        return 100.0 * float((Decoder(model).viterbi(self.test) != self.gold).mean())


def _text(
    name: str, train: str, test: str, source: Source, observed_only: bool
) -> Callable[[Sequence[str], int], DataSet]:
    """A reader of a set in columns."""

    def read(directories: Sequence[str], n: int) -> DataSet:
        train_path, test_path = (
            find(directories, [file], base=PROJECT.parent) for file in (train, test)
        )
        rows = sample(list(read_tsv(train_path)), n)
        test_rows = sample(list(read_tsv(test_path)), n)
        labels = sorted({row[source.label] for sentence in rows for row in sentence})
        number = {label: i for i, label in enumerate(labels)}
        featurizer = Featurizer(source.templates, start_label=False)
        builder = CorpusBuilder()
        for observations, gold in encode(featurizer, source, rows, number):
            builder.add(observations, gold)
        whole = encode(featurizer, source, test_rows, number, len(test_rows))
        ((test_observations, gold),) = whole
        return DataSet(
            name,
            builder.build(),
            tuple(labels),
            test_observations,
            gold.astype(np.int64),
            observed_only,
        )

    return read


def encode(
    featurizer: Callable[[Sequence[Doc], str], Observations],
    source: Source,
    sentences: Sequence[Rows],
    number: dict[str, int],
    step: int = 1000,
) -> Iterator[tuple[Observations, NDArray[np.int32]]]:
    """Observations and label ids of so many sentences at a time, -1 for a label without number."""
    vocab = spacy.blank("en").vocab
    for first in range(0, len(sentences), step):
        batch = sentences[first : first + step]
        gold = [number.get(row[source.label], -1) for rows in batch for row in rows]
        docs = list(make_docs(source, batch, vocab))
        yield featurizer(docs, "docs"), np.array(gold, dtype=np.int32)


def _letters(directories: Sequence[str], n: int) -> DataSet:
    """Words in handwriting: a test for each pixel that is ink."""
    with np.load(find(directories, ["ocr-letters.npz"], base=PROJECT.parent)) as stored:
        arrays = {name: stored[name] for name in ("pixels", "label", "word_id", "fold")}
    is_test = arrays["fold"] == _TEST_FOLD
    train, test = (_cut(arrays, where, n) for where in (~is_test, is_test))
    builder = CorpusBuilder()
    builder.add(*train)
    names = tuple(chr(ord("a") + y) for y in range(int(arrays["label"].max()) + 1))
    return DataSet("ocr", builder.build(), names, test[0], test[1].astype(np.int64), False)


def _cut(
    arrays: dict[str, NDArray[np.integer]], where: NDArray[np.bool_], n: int
) -> tuple[Observations, NDArray[np.int32]]:
    """Observations and labels of the first n words (0 = all) of a part."""
    words = arrays["word_id"][where]
    begins = np.flatnonzero(np.diff(words, prepend=-1))
    offsets = np.append(begins, len(words)).astype(np.int64)[: n + 1 if n else None]
    pixels = arrays["pixels"][where][: offsets[-1]]
    # A hash of its own for each pixel, and one that is always there.
    n_pixels = pixels.shape[1]
    numbers = np.arange(1, n_pixels + 1, dtype=np.uint64)
    hashes = np.zeros((len(pixels), n_pixels + 1), dtype=np.uint64)
    hashes[:, :n_pixels] = pixels * numbers
    hashes[:, n_pixels] = n_pixels + 1
    everything = np.arange(n_pixels + 1, dtype=np.int32)
    observations = Observations(hashes, offsets, everything, everything[-1:], start_label=False)
    return observations, arrays["label"][where][: offsets[-1]].astype(np.int32)


_CHUNKS = _text(
    "conll2000",
    "conll2000.train.tsv.gz",
    "conll2000.test.tsv.gz",
    Source((), 0, 2, tuple(chunking_templates()), tag=1),
    True,
)
_NAMES = _text(
    "conll2002-es",
    "conll2002-es.train.tsv.gz",
    "conll2002-es.test.tsv.gz",
    Source((), 0, 2, NAME_TEMPLATES),
    True,
)
_SOUNDS = _text(
    "nettalk",
    "nettalk.train.tsv.gz",
    "nettalk.test.tsv.gz",
    Source((), 0, 1, tuple(centred_ngrams(1))),
    False,
)


def _windows(directories: Sequence[str], n: int) -> DataSet:
    """Nettalk as a per-position model: letters and windows around one, no label before."""
    letters = [f"u:orth[{i}]" for i in range(-3, 4)]
    pairs = [f"u:orth[{i}]|orth[{i + 1}]" for i in range(-3, 3)]
    read = _text(
        "nettalk-maxent",
        "nettalk.train.tsv.gz",
        "nettalk.test.tsv.gz",
        Source((), 0, 1, ("u:", *letters, *pairs)),
        False,
    )
    return replace(read(directories, n), kind="maxent")


READERS: dict[str, Callable[[Sequence[str], int], DataSet]] = {
    "conll2000": _CHUNKS,
    "conll2002-es": _NAMES,
    "ocr": _letters,
    "nettalk": _SOUNDS,
    "nettalk-maxent": _windows,
}


def read(name: str, directories: Sequence[str], n: int = 0) -> DataSet:
    """Read a data set; n: sequences of each part, 0 = all.

    RAISES: typer.BadParameter where its files are absent.
    """
    return READERS[name](directories, n)
