"""The data of the experiments: parts to learn from, to stop by and to test on, and their scores."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from bench.data import PROJECT, Source, sample
from columns import Rows, find, read_tsv
from numpy.typing import NDArray
from spacy.tokens import Doc
from study.sets import encode

from spacy_sparsecrf.corpus.encoded import CorpusBuilder, EncodedCorpus, Observations
from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.model.model import CRFModel

# The test part of the published split of Nettalk; the fold before it is for stopping.
CANONICAL = 9
N_FOLDS = 10
_SPLITS = "train", "dev", "test"
Read = Callable[[Sequence[Doc], str], Observations]


@dataclass(frozen=True)
class Task:
    """What is learnt.

    files: names begin so; word, label: columns; folds: whether words are dealt to ten folds;
    separator: what stands behind the part of a label that is scored by itself, "" for none.
    """

    files: str
    word: int
    label: int
    folds: bool = False
    separator: str = ""


TASKS = {
    "phonemes": Task("nettalk", 0, 1, folds=True),
    "joint": Task("nettalk", 0, 3, folds=True, separator="/"),
    "ewt": Task("ud-en-ewt", 0, 2),
    "brown": Task("brown", 0, 2),
}


@dataclass(frozen=True)
class Scored:
    """Observations of a part with its gold labels.

    gold: [N] int64, label ids, -1 for one that training does not have; partial: [N] the same of
    the parts of labels that are scored by themselves; part_of: [Y], the part of each label.
    """

    observations: Observations
    gold: NDArray[np.int64]
    partial: NDArray[np.int64]
    part_of: NDArray[np.int64]

    def errors(self, model: CRFModel) -> tuple[float, float]:
        """Percentages of tokens whose label is wrong, and of those whose part of it is."""
        found = Decoder(model).viterbi(self.observations)
        wrong = found != self.gold, self.part_of[found] != self.partial
        return 100.0 * float(wrong[0].mean()), 100.0 * float(wrong[1].mean())


@dataclass(frozen=True)
class Parts:
    """A corpus to learn from, and what to score on."""

    corpus: EncodedCorpus
    labels: tuple[str, ...]
    dev: Scored
    test: Scored


def split_rows(
    task: Task, fold: int, directories: Sequence[str], n: int
) -> tuple[list[Rows], list[Rows], list[Rows]]:
    """Sentences for training, stopping and testing; of each at most n, 0 = all.

    RAISES: typer.BadParameter where a file is absent.
    """
    base = PROJECT.parent

    def read(part: str) -> list[Rows]:
        return list(read_tsv(find(directories, [f"{task.files}.{part}.tsv.gz"], base=base)))

    parts = {split: read(split) for split in _SPLITS}
    if task.folds and fold != CANONICAL:
        dealt: list[list[Rows]] = [[] for _ in range(N_FOLDS)]
        for split, number, fold_of, *_ in (row for rows in read("folds") for row in rows):
            if split in parts:
                dealt[int(fold_of)].append(parts[split][int(number)])
        before = (fold - 1) % N_FOLDS
        rest = [k for k in range(N_FOLDS) if k not in (fold, before)]
        train = [word for k in rest for word in dealt[k]]
        parts = {"train": train, "dev": dealt[before], "test": dealt[fold]}
    train, dev, test = (sample(parts[split], n) for split in _SPLITS)
    return train, dev, test


def read_parts(name: str, fold: int, read: Read, directories: Sequence[str], n: int = 0) -> Parts:
    """Read and encode the data of a task.

    fold: of Nettalk, the one to test on; read: gives the observations of Docs; n: see
    `split_rows`.
    """
    task = TASKS[name]
    source = Source((), task.word, task.label, ())
    train, dev, test = split_rows(task, fold, directories, n)
    labels = tuple(sorted({row[task.label] for rows in train for row in rows}))
    number = {label: i for i, label in enumerate(labels)}
    builder = CorpusBuilder()
    for observations, gold in encode(read, source, train, number):
        builder.add(observations, gold)
    scored = [_scored(task, source, read, rows, labels) for rows in (dev, test)]
    return Parts(builder.build(), labels, *scored)


def _scored(
    task: Task, source: Source, read: Read, rows: Sequence[Rows], labels: Sequence[str]
) -> Scored:
    number = {label: i for i, label in enumerate(labels)}
    ((observations, gold),) = encode(read, source, rows, number, len(rows))
    known: dict[str, int] = {}
    part_of = [known.setdefault(_part(task, label), len(known)) for label in labels]
    partial = [known.get(_part(task, row[task.label]), -1) for row in _tokens(rows)]
    return Scored(
        observations,
        gold.astype(np.int64),
        np.array(partial, dtype=np.int64),
        np.array(part_of, dtype=np.int64),
    )


def _part(task: Task, label: str) -> str:
    return label.partition(task.separator)[0] if task.separator else label


def _tokens(sentences: Sequence[Rows]) -> Iterator[Sequence[str]]:
    return (row for rows in sentences for row in rows)
