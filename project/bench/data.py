"""The data sets of the benchmarks, encoded by the component's own featurizer, and their files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
import typer
from columns import Rows, find, read_conllu, read_tsv
from spacy.tokens import Doc
from spacy.util import load_config
from spacy.vocab import Vocab
from wasabi import msg

from spacy_sparsecrf.corpus.encoded import CorpusBuilder, EncodedCorpus
from spacy_sparsecrf.features.defaults import DEFAULT_TEMPLATES
from spacy_sparsecrf.features.featurizer import Featurizer

from .options import Quick

PROJECT = Path(__file__).resolve().parents[1]
# The penalty of every comparison: l1 |w|_1 + l2 / 2 |w|_2^2.
L1, L2 = 0.5, 1e-5
# Sentences of a trial run, and of the corpora on which objectives are compared weight by weight.
QUICK_SENTENCES = 200
SAMPLE_SENTENCES = 300
_SEED = 0
_DOCS_PER_BATCH = 1000


def centred_ngrams(n: int) -> list[str]:
    """Windows of 0, 1, 3, ... n letters around a letter, with labels and with pairs of labels.

    These are the n-grm templates of Lavergne et al. (2010), section 5.1.1.
    """
    windows = [range(-(k // 2), k // 2 + 1) for k in range(1, n + 1, 2)]
    return ["*:", *("*:" + "|".join(f"orth[{i}]" for i in window) for window in windows)]


def chunking_templates() -> list[str]:
    """CRF++'s template for chunks, as the `conll2000` workflow has it."""
    config = load_config(PROJECT / "configs" / "chunker.cfg")
    templates: list[str] = config["components"]["sparse_crf"]["features"]["templates"]
    return templates


@dataclass(frozen=True)
class Source:
    """Where a data set comes from.

    files: names of each part, in order of preference; word, label: columns; tag: column of a
    given part of speech, or None; spaced: whether the last column tells if a space follows.
    """

    files: tuple[tuple[str, ...], ...]
    word: int
    label: int
    templates: tuple[str, ...]
    tag: int | None = None
    spaced: bool = False


def sources() -> dict[str, Source]:
    """All data sets."""
    chunks = (("conll2000.train7936.tsv.gz",), ("conll2000.dev1000.tsv.gz",))
    letters = (("nettalk.train.tsv.gz",),)
    treebank = (("ud-en-ewt.train.tsv.gz", "en_ewt-ud-train.conllu"),)
    brown = (("brown.train.tsv.gz",),)
    return {
        "conll2000": Source(chunks, 0, 2, tuple(chunking_templates()), tag=1),
        "nettalk-3grm": Source(letters, 0, 1, tuple(centred_ngrams(3))),
        "nettalk-5grm": Source(letters, 0, 1, tuple(centred_ngrams(5))),
        "ud-en-ewt": Source(treebank, 0, 2, DEFAULT_TEMPLATES, spaced=True),
        "brown": Source(brown, 0, 1, DEFAULT_TEMPLATES),
    }


@dataclass(frozen=True)
class Problem:
    """A corpus and its labels, ready for training."""

    name: str
    corpus: EncodedCorpus
    labels: tuple[str, ...]

    @property
    def n_labels(self) -> int:
        """Number of labels Y."""
        return len(self.labels)

    @property
    def n_potential(self) -> int:
        """Number of potential weights."""
        return self.corpus.n_potential(self.n_labels)


def read_rows(source: Source, directories: Sequence[str]) -> list[Rows]:
    """Read all sentences of a data set. RAISES: typer.BadParameter where a file is absent."""
    sentences: list[Rows] = []
    for names in source.files:
        path = find(directories, names, base=PROJECT.parent)
        sentences += read_conllu(path) if path.suffix == ".conllu" else read_tsv(path)
    return sentences


def sample(sentences: list[Rows], n: int) -> list[Rows]:
    """Choose n sentences at random, always the same ones; all of them for n = 0."""
    if not 0 < n < len(sentences):
        return sentences
    chosen = np.random.default_rng(_SEED).permutation(len(sentences))[:n]
    return [sentences[i] for i in np.sort(chosen)]


def make_docs(source: Source, sentences: Sequence[Rows], vocab: Vocab) -> Iterator[Doc]:
    """Make a Doc of each sentence, without its labels."""
    for rows in sentences:
        yield Doc(
            vocab,
            words=[row[source.word] for row in rows],
            tags=None if source.tag is None else [row[source.tag] for row in rows],
            spaces=[row[-1] == "1" for row in rows] if source.spaced else None,
        )


def encode(name: str, source: Source, sentences: Sequence[Rows]) -> Problem:
    """Encode sentences, without a start label: the peers have none."""
    labels = sorted({row[source.label] for rows in sentences for row in rows})
    number = {label: i for i, label in enumerate(labels)}
    featurizer = Featurizer(source.templates, start_label=False)
    builder, vocab = CorpusBuilder(), spacy.blank("en").vocab
    for start in range(0, len(sentences), _DOCS_PER_BATCH):
        batch = sentences[start : start + _DOCS_PER_BATCH]
        gold = [number[row[source.label]] for rows in batch for row in rows]
        docs = list(make_docs(source, batch, vocab))
        builder.add(featurizer(docs, "docs"), np.array(gold, dtype=np.int32))
    return Problem(name, builder.build(), tuple(labels))


def save(problem: Problem, directory: Path) -> Path:
    """Store a problem as arrays; returns the file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{problem.name}.npz"
    arrays: dict[str, Any] = problem.corpus.arrays
    np.savez(path, labels_of_problem=np.array(problem.labels), **arrays)
    return path


def load(path: Path) -> Problem:
    """Load what `save` stored."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    labels = tuple(arrays.pop("labels_of_problem").tolist())
    values = {name: array if array.ndim else array.item() for name, array in arrays.items()}
    return Problem(path.stem, EncodedCorpus(**values), labels)


def main(
    output: Annotated[Path, typer.Argument(help="Directory for the encoded corpora")],
    directories: Annotated[list[str], typer.Argument(help="Directories to look in, in order")],
    names: Annotated[
        list[str] | None, typer.Option("--name", help="Data sets; default: all but brown")
    ] = None,
    sentences: Annotated[int, typer.Option(help="Sentences to take, 0 for all")] = 0,
    quick: Quick = False,
) -> None:
    """Encode data sets, and small samples of those on which objectives are compared."""
    known = sources()
    for name in names or [name for name in known if name != "brown"]:
        rows = read_rows(known[name], directories)
        size = QUICK_SENTENCES if quick and not sentences else sentences
        problem = encode(name, known[name], sample(rows, size))
        save(problem, output)
        msg.good(
            f"{name}: {problem.corpus.n_sequences} sentences, {problem.corpus.n_tokens} tokens, "
            f"{problem.n_labels} labels, {problem.n_potential} potential weights"
        )
        if name in ("conll2000", "nettalk-3grm"):
            few = sample(rows, SAMPLE_SENTENCES)
            save(encode(f"{name}-sample", known[name], few), output)


if __name__ == "__main__":
    typer.run(main)
