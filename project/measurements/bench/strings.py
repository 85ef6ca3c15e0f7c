"""python-crfsuite as people use it: features of words are strings that Python makes.

    python -m bench.strings TRAIN MODEL C1 C2 ITERATIONS LIMIT

trains on the entities of a .spacy file or, if there are none, its tags.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pycrfsuite
import spacy
import typer
from measure.results import Row
from spacy.tokens import Doc, DocBin
from spacy.training import Example, biluo_tags_to_spans, iob_to_biluo


def _shape(word: str) -> str:
    """Return letters as X or x and digits as d, at most two equal ones in a row."""
    kinds = ("dXx"[(c.isalpha()) + c.islower()] if c.isalnum() else c for c in word)
    return re.sub(r"(.)\1+", r"\1\1", "".join(kinds))


def features(words: Sequence[str]) -> list[list[str]]:
    """Return the features of each word: the word, affixes, shape, flags, neighbours and pairs."""
    edge, found = ["", ""], []
    lower = [*edge, *(word.lower() for word in words), *edge]
    shapes = [*edge, *map(_shape, words), *edge]
    for i, word in enumerate(words, start=len(edge)):
        own = ["bias", f"word={word}", f"lower={lower[i]}", f"shape={shapes[i]}"]
        for n in range(1, min(len(word), 5)):
            own += [f"first{n}={lower[i][:n]}", f"last{n}={lower[i][-n:]}"]
        own += [flag.__name__ for flag in (str.istitle, str.isupper, str.isdigit) if flag(word)]
        for d in (-2, -1, 1, 2):
            own += [f"{d}:lower={lower[i + d]}", f"{d}:shape={shapes[i + d]}"]
        found.append([*own, *(f"{d}:pair={lower[i + d]}|{lower[i + d + 1]}" for d in (-1, 0))])
    return found


def _read(path: str, limit: int = 0) -> Iterator[tuple[Doc, list[str]]]:
    """Yield Docs with their words."""
    docs = DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)
    return ((doc, [token.text for token in doc]) for doc in islice(docs, limit or None))


def _labels(doc: Doc) -> list[str]:
    """Return IOB2 labels, or tags."""
    if not doc.has_annotation("ENT_IOB"):
        return [token.tag_ for token in doc]
    return [f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc]


def labelled(model: Path, pipe: str, path: str) -> Iterator[Example]:
    """Yield the Docs of a file, with predicted labels."""
    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    for gold, words in _read(path):
        labels = tagger.tag(features(words))
        doc = Doc(gold.vocab, words, tags=labels if pipe == "tagger" else None)
        if pipe == "ner":
            doc.set_ents(biluo_tags_to_spans(doc, iob_to_biluo(labels)))
        yield Example(doc, gold)


def score(model: Path, pipe: str, path: str) -> Row:
    """Label the words of a file, and return the scores by spaCy's pipe."""
    return dict(spacy.blank("xx").add_pipe(pipe).score(list(labelled(model, pipe, path))))


def main(train: str, model: Path, c1: float, c2: float, iterations: int, limit: int) -> None:
    """Train on the first Docs of a .spacy file, or on all if the limit is 0."""
    given = {"c1": c1, "c2": c2, "max_iterations": iterations}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=given, verbose=False)
    for doc, words in _read(train, limit):
        trainer.append(features(words), _labels(doc))
    trainer.train(str(model))


if __name__ == "__main__":
    typer.run(main)
