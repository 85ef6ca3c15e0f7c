"""Pronounce words with a packaged pipeline, and score it on the test words."""

import importlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import spacy
import srsly
import typer
from spacy.language import Language
from spacy.matcher import levenshtein
from spacy.tokens import Doc, DocBin

from .make_pronunciations import JOIN, NONE, strip_stress

Phonemes = list[str]


def load_package(directory: Path) -> Language:
    """Load a pipeline from its package directory, as if the package were installed.

    directory: LANG_NAME-VERSION, as `spacy package` writes it.
    """
    sys.path.insert(0, str(directory.resolve()))
    pipeline: Language = importlib.import_module(directory.name.rsplit("-", 1)[0]).load()
    return pipeline


def pronounce(nlp: Language, words: Iterable[str]) -> list[Phonemes]:
    """Predict the phonemes of words; letters are tokens, hence the spaces."""
    return [_phonemes(doc) for doc in nlp.pipe(" ".join(word) for word in words)]


def read_words(path: Path) -> dict[str, Phonemes]:
    """Read words and their gold phonemes."""
    docs = DocBin().from_disk(path).get_docs(spacy.blank("en").vocab)
    return {"".join(token.text for token in doc): _phonemes(doc) for doc in docs}


def score(gold: Sequence[Phonemes], predicted: Sequence[Phonemes]) -> dict[str, float]:
    """Score pronunciations: share of correct phonemes (1 - edits per gold phoneme) and words."""
    letters = {phoneme: chr(i) for i, phoneme in enumerate({p for x in gold for p in x})}
    unseen = chr(len(letters))
    edits = sum(
        levenshtein(
            "".join(map(letters.__getitem__, x)), "".join(letters.get(p, unseen) for p in y)
        )
        for x, y in zip(gold, predicted, strict=True)
    )
    return {
        "phoneme_acc": 1 - edits / sum(map(len, gold)),
        "word_acc": sum(map(list.__eq__, gold, predicted)) / len(gold),
    }


def _phonemes(doc: Doc) -> Phonemes:
    labels = (token.tag_ for token in doc)
    return [phoneme for label in labels if label != NONE for phoneme in label.split(JOIN)]


def main(
    package: Annotated[Path, typer.Argument(help="Package directory")],
    train: Annotated[Path, typer.Argument(help=".spacy file of the training words")],
    test: Annotated[Path, typer.Argument(help=".spacy file of the test words")],
    output: Annotated[Path, typer.Argument(help="JSON file for scores and pronunciations")],
    words: Annotated[list[str], typer.Argument(help="Words to pronounce")],
) -> None:
    """Print the pronunciations of words that are not in the training part, and the scores."""
    nlp = load_package(package)
    known, gold = read_words(train), read_words(test)
    new = [word for word in map(str.lower, words) if word not in known]
    shown = dict(zip(new, pronounce(nlp, new), strict=True))
    for word, phonemes in shown.items():
        print(f"{word:16} {' '.join(phonemes)}")
    truth, guesses = list(gold.values()), pronounce(nlp, gold)
    plain = score([strip_stress(p) for p in truth], [strip_stress(p) for p in guesses])
    scores = score(truth, guesses) | {f"{name}_no_stress": x for name, x in plain.items()}
    print(f"\n{len(gold)} test words:")
    for name, value in scores.items():
        print(f"{name:21} {100 * value:.2f} %")
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, scores | {"words": {w: " ".join(p) for w, p in shown.items()}})


if __name__ == "__main__":
    typer.run(main)
