"""Data sets: sentences in columns, encoded by the package's featurizer, and parts for scoring.

Files are searched for in the directory of `--data`, then in that of the environment variable
SPARSECRF_DATA, then in `project/measurements/assets`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.interop.columns import paragraphs
from spacy_sparsecrf.pipeline.features.defaults import DEFAULT_TEMPLATES
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer

from . import PROJECT, ROOT

Rows = list[list[str]]
Read = Callable[[Sequence[Doc], str], Observations]
Data = Annotated[str, typer.Option(help="Directory of the data, in front of SPARSECRF_DATA")]

# Number of sentences of a trial.
QUICK_SENTENCES = 200


def find(data: str, names: Iterable[str]) -> Path:
    """Return the first file that exists; names: in order of preference.

    Relative directories start at the repository root. RAISES: typer.BadParameter.
    """
    directories = filter(None, [data, os.environ.get("SPARSECRF_DATA"), PROJECT / "assets"])
    places = [ROOT / folder / name for folder in directories for name in names]
    for place in places:
        if place.exists():
            return place
    raise typer.BadParameter(
        f"None of these files exists: {', '.join(map(str, places))}. Set the environment variable "
        "SPARSECRF_DATA to their directory; `python -m spacy project assets` fetches public data."
    )


def read_tsv(path: Path) -> Iterator[Rows]:
    """Yield the sentences of a file of tab-separated columns, one token per line."""
    for lines in paragraphs(path):
        yield [line.split("\t") for _, line in lines]


def sample(sentences: list[Rows], n: int) -> list[Rows]:
    """Draw n sentences, the same in each run; n = 0 returns all."""
    if not 0 < n < len(sentences):
        return sentences
    chosen = np.random.default_rng(0).permutation(len(sentences))[:n]
    return [sentences[i] for i in np.sort(chosen)]


@dataclass(frozen=True)
class Source:
    """A data set in columns; words are in the first column.

    stem: of its files; label: index of the label column; tag: index of a part-of-speech column, or
    None; spaced: whether the last column shows if a space follows; separator: ends the part of a
    label that is scored separately, "" for none.
    """

    stem: str
    label: int
    templates: tuple[str, ...] = ()
    tag: int | None = None
    spaced: bool = False
    separator: str = ""

    def rows(self, part: str, data: str, n: int = 0) -> list[Rows]:
        """Return the sentences of a part, or a sample of n sentences if n > 0.

        RAISES: typer.BadParameter if its file is missing.
        """
        return sample(list(read_tsv(find(data, [f"{self.stem}.{part}.tsv.gz"]))), n)

    def docs(self, sentences: Sequence[Rows], vocab: Vocab) -> Iterator[Doc]:
        """Yield a Doc for each sentence, without its labels."""
        for rows in sentences:
            yield Doc(
                vocab,
                words=[row[0] for row in rows],
                tags=None if self.tag is None else [row[self.tag] for row in rows],
                spaces=[row[-1] == "1" for row in rows] if self.spaced else None,
            )

    def labels(self, sentences: Sequence[Rows]) -> tuple[str, ...]:
        """Return the labels that occur, sorted."""
        return tuple(sorted({row[self.label] for rows in sentences for row in rows}))

    def encode(
        self, read: Read, sentences: list[Rows], labels: Sequence[str], step: int = 1000
    ) -> Iterator[tuple[Observations, NDArray[np.int32]]]:
        """Yield observations and label ids of `step` sentences at a time; -1 = unknown label."""
        vocab, number = spacy.blank("en").vocab, {label: i for i, label in enumerate(labels)}
        for first in range(0, len(sentences), step):
            batch = sentences[first : first + step]
            gold = [number.get(row[self.label], -1) for rows in batch for row in rows]
            yield read(list(self.docs(batch, vocab)), "docs"), np.array(gold, dtype=np.int32)

    def corpus(self, read: Read, sentences: list[Rows], labels: Sequence[str]) -> EncodedCorpus:
        """Encode sentences for training."""
        builder = CorpusBuilder()
        for observations, gold in self.encode(read, sentences, labels):
            builder.add(observations, gold)
        return builder.build()

    def scored(self, read: Read, sentences: list[Rows], labels: Sequence[str]) -> "Scored":
        """Encode sentences for scoring."""

        def part(label: str) -> str:
            return label.partition(self.separator)[0] if self.separator else label

        ((observations, gold),) = self.encode(read, sentences, labels, len(sentences))
        known: dict[str, int] = {}
        part_of = [known.setdefault(part(label), len(known)) for label in labels]
        partial = [known.get(part(row[self.label]), -1) for rows in sentences for row in rows]
        return Scored(observations, gold, np.array(partial), np.array(part_of))


@dataclass(frozen=True)
class Scored:
    """Observations and gold labels of a part.

    gold: [N] label ids, -1 for a label unseen in training; partial: [N] ids of the label parts that
    are scored separately, -1 if unseen; part_of: [Y], id of the part of each label.
    """

    observations: Observations
    gold: NDArray[np.integer]
    partial: NDArray[np.integer]
    part_of: NDArray[np.integer]

    def errors(self, model: CRFModel) -> tuple[float, float]:
        """Return percentages of tokens with a wrong label, and with a wrong label part."""
        found = Decoder(model).viterbi(self.observations)
        wrong = found != self.gold, self.part_of[found] != self.partial
        return 100.0 * float(wrong[0].mean()), 100.0 * float(wrong[1].mean())


def centred_ngrams(n: int) -> tuple[str, ...]:
    """Return templates of windows of 0, 1, 3, ... n letters, for labels and label pairs.

    These are the n-grm templates of Lavergne et al. (2010), section 5.1.1.
    """
    windows = [range(-(k // 2), k // 2 + 1) for k in range(1, n + 1, 2)]
    return ("*:", *("*:" + "|".join(f"orth[{i}]" for i in window) for window in windows))


@cache
def sources() -> dict[str, Source]:
    """Return all data sets in columns."""
    # The template of CRF++'s example.
    chunks = [f"u:{x}[{i}]" for x in ("orth", "tag") for i in range(-2, 3)]
    chunks += [f"u:orth[{i}]|orth[{i + 1}]" for i in (-1, 0)]
    chunks += [f"u:tag[{i}]|tag[{i + 1}]" for i in range(-2, 2)]
    chunks += [f"u:tag[{i}]|tag[{i + 1}]|tag[{i + 2}]" for i in range(-2, 1)]
    letters = [f"u:orth[{i}]" for i in range(-3, 4)]
    letters += [f"u:orth[{i}]|orth[{i + 1}]" for i in range(-3, 3)]
    # The window of words that Altun et al. call S3, as templates.
    names = [f"u:{x}[{i}]" for x in ("orth", "suffix(3)", "shape") for i in range(-2, 3)]
    return {
        "conll2000": Source("conll2000", 2, ("b:", *chunks), tag=1),
        "conll2002-es": Source("conll2002-es", 2, ("b:", *names)),
        "nettalk": Source("nettalk", 1, centred_ngrams(1)),
        "nettalk-3grm": Source("nettalk", 1, centred_ngrams(3)),
        "nettalk-maxent": Source("nettalk", 1, ("u:", *letters)),
        "ud-en-ewt": Source("ud-en-ewt", 2, DEFAULT_TEMPLATES, spaced=True),
        "brown": Source(
            "brown", 1, ("b:", *(f"u:lower[{i}]" for i in (-1, 0, 1)), "u:suffix(3)[0]")
        ),
    }


@dataclass(frozen=True)
class Problem:
    """A corpus and its labels, ready for training."""

    name: str
    corpus: EncodedCorpus
    labels: tuple[str, ...]

    @classmethod
    def of(cls, name: str, source: Source, sentences: list[Rows]) -> "Problem":
        """Encode sentences without a start label, which peers do not support."""
        labels = source.labels(sentences)
        read = Featurizer(source.templates, start_label=False)
        return cls(name, source.corpus(read, sentences, labels), labels)

    @property
    def n_labels(self) -> int:
        """Number of labels Y."""
        return len(self.labels)

    def sizes(self) -> dict[str, int]:
        """Return the sizes shown in reports."""
        return {
            "sentences": self.corpus.n_sequences,
            "tokens": self.corpus.n_tokens,
            "labels": self.n_labels,
            "unigram features": len(self.corpus.unigram_keys),
            "bigram features": len(self.corpus.bigram_keys),
            "potential weights": self.corpus.n_potential(self.n_labels),
        }


def read_set(name: str, data: str, n: int = 0) -> tuple[Problem, Scored]:
    """Read a data set for training and testing; n: sequences of each part, 0 = all.

    RAISES: typer.BadParameter if a file is missing.
    """
    if name == "ocr":
        return _letters(data, n)
    source = sources()[name]
    train, test = (source.rows(part, data, n) for part in ("train", "test"))
    problem = Problem.of(name, source, train)
    read = Featurizer(source.templates, start_label=False)
    return problem, source.scored(read, test, problem.labels)


def _letters(data: str, n: int) -> tuple[Problem, Scored]:
    """Read handwritten words, with an attribute for each ink pixel."""
    with np.load(find(data, ["ocr-letters.npz"])) as stored:
        arrays = {name: stored[name] for name in ("pixels", "label", "word_id", "fold")}
    # One of ten folds is the test part.
    is_test, builder = arrays["fold"] == 0, CorpusBuilder()
    builder.add(*cut_words(arrays, ~is_test, n))
    labels = tuple(chr(ord("a") + y) for y in range(int(arrays["label"].max()) + 1))
    observations, gold = cut_words(arrays, is_test, n)
    test = Scored(observations, gold, gold, np.arange(len(labels)))
    return Problem("ocr", builder.build(), labels), test


def cut_words(
    arrays: dict[str, NDArray[np.integer]], where: NDArray[np.bool_], n: int
) -> tuple[Observations, NDArray[np.int32]]:
    """Return observations and labels of the first n words (0 = all) of a part."""
    words = arrays["word_id"][where]
    begins = np.flatnonzero(np.diff(words, prepend=-1))
    offsets = np.append(begins, len(words)).astype(np.int64)[: n + 1 if n else None]
    pixels = arrays["pixels"][where][: offsets[-1]]
    # Each pixel has its own hash; the last one is always present.
    n_pixels = pixels.shape[1]
    hashes = np.full((len(pixels), n_pixels + 1), n_pixels + 1, dtype=np.uint64)
    hashes[:, :n_pixels] = pixels * np.arange(1, n_pixels + 1, dtype=np.uint64)
    everything = np.arange(n_pixels + 1, dtype=np.int32)
    observations = Observations(hashes, offsets, everything, everything[-1:], start_label=False)
    return observations, arrays["label"][where][: offsets[-1]].astype(np.int32)
