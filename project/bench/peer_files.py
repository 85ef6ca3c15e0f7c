"""Our encoded corpora as peers' inputs: a test is an attribute, named by its number.

Thus a peer has our weights by construction: a test of ours that is absent from a token is absent
there too, and what a peer makes of an attribute is what we make of a test: a weight for each
label, or for each pair of labels. Labels are numbers as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spacy_sparsecrf.corpus.encoded import EncodedCorpus

from .data import Problem


def tokens_of(corpus: EncodedCorpus, sequence: int) -> Iterator[tuple[list[int], list[int], str]]:
    """Yield the unigram tests, bigram tests and label of a sequence's tokens.

    RAISES: ValueError for a corpus with a start label, which peers do not have.
    """
    if corpus.start_label:
        raise ValueError("peers have no start label: encode the corpus without it")
    for t in range(int(corpus.offsets[sequence]), int(corpus.offsets[sequence + 1])):
        c = corpus.context[t]
        yield (
            corpus.uni_indices[corpus.uni_indptr[t] : corpus.uni_indptr[t + 1]].tolist(),
            corpus.ctx_indices[corpus.ctx_indptr[c] : corpus.ctx_indptr[c + 1]].tolist(),
            str(corpus.labels[t]),
        )


@dataclass(frozen=True)
class WapitiFiles:
    """Input of Wapiti: training data, a development file, and patterns where it takes any."""

    train: Path
    dev: Path
    pattern: Path | None


def write_wapiti(problem: Problem, directory: Path) -> WapitiFiles:
    """Write a training file for Wapiti, and a development file of the shortest sentence.

    Where all tokens have as many tests, each column is a test, and a pattern takes it as it is.
    Else columns are named u... or b..., which Wapiti takes as observations where it has no
    pattern, as many as a line has: nothing has to stand in for a missing one. (SGD-L1 needs
    patterns: without them it writes beyond its arrays.)
    """
    corpus = problem.corpus
    shape = _shape(corpus)
    train, dev = directory / f"{problem.name}.wapiti", directory / f"{problem.name}.dev.wapiti"
    with train.open("w", encoding="ascii") as file:
        for s in range(corpus.n_sequences):
            file.write(_wapiti_sentence(corpus, s, shape))
    shortest = int(np.argmin(np.diff(corpus.offsets)))
    dev.write_text(_wapiti_sentence(corpus, shortest, shape), encoding="ascii")
    if shape is None:
        return WapitiFiles(train, dev, None)
    # Without a name of its own in front, equal tests in two columns are one.
    unigrams = [f"U%x[0,{column}]" for column in range(shape[0])]
    bigrams = [f"B%x[0,{shape[0] + column}]" for column in range(shape[1])]
    pattern = directory / f"{problem.name}.pattern"
    pattern.write_text("\n".join([*unigrams, *bigrams, ""]), encoding="ascii")
    return WapitiFiles(train, dev, pattern)


def _shape(corpus: EncodedCorpus) -> tuple[int, int] | None:
    """How many unigram and bigram tests every token has, or None where tokens differ."""
    begins = np.zeros(corpus.n_tokens, dtype=np.bool_)
    begins[corpus.offsets[:-1]] = True
    unigrams = np.unique(np.diff(corpus.uni_indptr))
    bigrams = np.unique(np.diff(corpus.ctx_indptr)[corpus.context[~begins]])
    if len(unigrams) != 1 or len(bigrams) != 1:
        return None
    return int(unigrams[0]), int(bigrams[0])


def _wapiti_sentence(corpus: EncodedCorpus, sequence: int, shape: tuple[int, int] | None) -> str:
    tokens = list(tokens_of(corpus, sequence))
    if shape is None:
        lines = [
            " ".join([*(f"u{i}" for i in unigrams), *(f"b{i}" for i in bigrams), label])
            for unigrams, bigrams, label in tokens
        ]
        return "\n".join([*lines, "", ""])
    # Wapiti does not look at a first token's pairs, but registers their tests as new ones if they
    # are: the second token's are not.
    dummy = tokens[1][1] if len(tokens) > 1 else [0] * shape[1]
    rows = [[*tokens[0][0], *dummy, tokens[0][2]], *([*u, *b, y] for u, b, y in tokens[1:])]
    return "\n".join([*(" ".join(map(str, row)) for row in rows), "", ""])


def crfsuite_sequences(corpus: EncodedCorpus) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Yield attributes and labels of each sequence for CRFsuite.

    RAISES: ValueError where a bigram test is more than a plain transition.
    """
    if len(corpus.bigram_keys) > 1:
        raise ValueError("CRFsuite has plain transitions only")
    for s in range(corpus.n_sequences):
        tokens = list(tokens_of(corpus, s))
        yield [[f"u{i}" for i in tests] for tests, _, _ in tokens], [y for _, _, y in tokens]


def write_crfpp(problem: Problem, directory: Path) -> tuple[Path, Path]:
    """Write a template and a training file for CRF++: one column for each test of a token.

    RETURNS: paths of the template and of the training file.
    RAISES: ValueError where tokens have different numbers of tests, which its columns cannot
        express, or bigram tests are more than plain transitions.
    """
    corpus = problem.corpus
    shape = _shape(corpus)
    if shape is None or len(corpus.bigram_keys) != 1:
        raise ValueError("CRF++'s columns need as many unigram tests at each token")
    template = directory / f"{problem.name}.template"
    lines = [f"U:%x[0,{column}]" for column in range(shape[0])]
    template.write_text("\n".join([*lines, "B", ""]), encoding="ascii")
    train = directory / f"{problem.name}.crfpp"
    with train.open("w", encoding="ascii") as file:
        for s in range(corpus.n_sequences):
            for unigrams, _, label in tokens_of(corpus, s):
                file.write(" ".join([*map(str, unigrams), label]) + "\n")
            file.write("\n")
    return template, train
