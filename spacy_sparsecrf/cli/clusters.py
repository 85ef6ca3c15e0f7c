"""`clusters`: learn word classes from text or from vectors."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.util import to_numpy
from typer import Option
from wasabi import msg

from ..errors import Errors, SparseCRFError
from ..features.class_learning import (
    BigramCounter,
    BigramCounts,
    exchange_classes,
    vector_classes,
    write_classes,
)
from ..progress import track
from .common import reported, with_folder
from .files import read_texts

Texts = Annotated[
    list[Path] | None, typer.Argument(help="Texts: a sentence or paragraph a line; .jsonl; .spacy")
]


def clusters(
    texts: Texts = None,
    *,
    output: Annotated[Path, Option("--output", "-o", help="File to write")],
    classes: Annotated[int, Option(min=2, help="Number of classes")] = 1000,
    min_count: Annotated[int, Option(min=1, help="Rarer words get no class")] = 3,
    iterations: Annotated[int, Option(min=1, help="Maximum number of moves of each word")] = 10,
    lang: Annotated[str, Option(help="Language of the texts (default: white space)")] = "",
    vectors: Annotated[
        str, Option(help="Pipeline whose vectors are clustered, of its words or those of the texts")
    ] = "",
    seed: Annotated[int, Option(help="Seed of the initial centres, with --vectors")] = 0,
) -> None:
    """Learn word classes, for templates such as cluster("name")[0].

    Classes of texts maximise the likelihood of a bigram class model (exchange algorithm); --vectors
    uses spherical k-means. Lines of the output have a word and the number of its class. To read
    them, add name = {"path": FILE, "format": "word2vec"} to the features' block `clusters`.
    """
    with reported():
        if not texts and not vectors:
            raise SparseCRFError(Errors.SC650)
        nlp = spacy.load(vectors) if vectors else spacy.blank(lang) if lang else None
        counted = _count(texts or [], _tokenize(nlp)).bigrams(min_count)
        if vectors:
            assert nlp is not None
            words, found = _group(nlp, counted.words if texts else None, classes, iterations, seed)
        else:
            words = _enough(counted, classes)
            found = exchange_classes(counted, classes, iterations)
        with with_folder(output).open("w", encoding="utf8", newline="\n") as file:
            file.writelines(write_classes(words, found))
        msg.good(f"{len(words)} words in {len(np.unique(found))} classes are in {output}")


def _tokenize(nlp: Language | None) -> Callable[[str], list[str]]:
    """Return a function that splits a line into words without white space."""
    if nlp is None:
        return str.split
    return lambda line: [word for token in nlp.tokenizer(line) for word in token.text.split()]


def _count(texts: Sequence[Path], tokenize: Callable[[str], list[str]]) -> BigramCounter:
    """Count the words of texts, line by line."""
    counter = BigramCounter()
    found = (text for path in texts for text, _ in read_texts(path, Vocab()))
    for text in track(found, "Reading text", "texts"):
        if isinstance(text, Doc):
            counter.add([word for token in text for word in token.text.split()])
            continue
        for line in text.split("\n"):
            counter.add(tokenize(line))
    return counter


def _enough(counted: BigramCounts, classes: int) -> list[str]:
    """Return the words. RAISES: SparseCRFError unless there are more words than classes."""
    if len(counted.words) <= classes:
        raise SparseCRFError(Errors.SC651.format(n=len(counted.words), classes=classes))
    return counted.words


def _group(
    nlp: Language, words: list[str] | None, classes: int, iterations: int, seed: int
) -> tuple[list[str], NDArray[np.int64]]:
    """Group words by the vectors of a pipeline. words: None for all words that have vectors."""
    named = [*_named(nlp)] if words is None else words
    vectors = (to_numpy(nlp.vocab.get_vector(word)) for word in named)  # type: ignore[no-untyped-call]
    kept = {word: vector for word, vector in zip(named, vectors, strict=True) if vector.any()}
    if len(kept) <= classes:
        raise SparseCRFError(Errors.SC651.format(n=len(kept), classes=classes))
    table = np.stack([*kept.values()])
    return [*kept], vector_classes(table, classes, iterations, seed)


def _named(nlp: Language) -> Iterator[str]:
    """Yield the words in a table of vectors; none if it computes vectors from parts of words."""
    table = nlp.vocab.vectors
    for key in table.keys() if table.mode == "default" else ():
        word = nlp.vocab.strings[key] if key in nlp.vocab.strings else ""  # noqa: SIM401
        if word and word.split() == [word]:
            yield word
