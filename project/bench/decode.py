"""Benchmark 6: tokens a second from Doc to written labels, on the test part of English EWT.

All sides have the same gold tokens, one thread, and a pipeline of their own that has seen the
training part: words that are new in the test part are new to its caches in each repetition. The
yardstick is spaCy's tokenizer on the same texts.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from . import crfsuite
from .crfsuite_features import items
from .options import Output, Quick, Repeats
from .records import OURS, Record
from .timing import Cost, alternate, measured

DATA, WHAT = "ud-en-ewt test", "Doc to labels"
BATCH, EACH = f"{OURS}, in batches", f"{OURS}, Doc by Doc"
USUAL, SAME = "CRFsuite, dict features", "CRFsuite, our features, made before"
TOKENIZER = "spaCy's tokenizer"
PIPE = "sparse_crf"
_ITERATIONS = 50
_QUICK_DOCS = 200

# A side tags Docs of the pipeline's vocab, which have no tags yet, and returns its cost.
Side = Callable[[Language, list[Doc]], Cost]


def fresh(nlp: Language, gold: list[Doc]) -> list[Doc]:
    """Docs of the gold tokens, without annotation."""
    return [
        Doc(nlp.vocab, words=[t.text for t in doc], spaces=[bool(t.whitespace_) for t in doc])
        for doc in gold
    ]


def in_batches(nlp: Language, docs: list[Doc]) -> Cost:
    """Our pipeline over a stream of Docs."""
    with measured() as cost:
        for _ in nlp.pipe(docs, batch_size=1000):
            pass
    return cost


def doc_by_doc(nlp: Language, docs: list[Doc]) -> Cost:
    """Our pipeline called for each Doc."""
    with measured() as cost:
        for doc in docs:
            nlp(doc)
    return cost


def tokenize(nlp: Language, docs: list[Doc]) -> Cost:
    """The tokenizer alone, on the Docs' texts."""
    texts = [doc.text for doc in docs]
    with measured() as cost:
        for text in texts:
            nlp.tokenizer(text)
    return cost


def with_dicts(tagger: Any) -> Side:
    """python-crfsuite with dict features: from the Docs' words to their tags."""

    def run(nlp: Language, docs: list[Doc]) -> Cost:
        with measured() as cost:
            for doc in docs:
                labels = tagger.tag(items([token.text for token in doc]))
                for token, label in zip(doc, labels, strict=True):
                    token.tag_ = label
        return cost

    return run


def with_our_features(tagger: Any) -> Side:
    """python-crfsuite on our tests, whose names are strings already: look-up and Viterbi."""

    def run(nlp: Language, docs: list[Doc]) -> Cost:
        sentences = attributes(nlp, docs)
        with measured() as cost:
            for sentence in sentences:
                tagger.tag(sentence)
        return cost

    return run


def attributes(nlp: Language, docs: list[Doc]) -> list[list[list[str]]]:
    """Our unigram tests of each token as strings."""
    pipe: Any = nlp.get_pipe(PIPE)
    found = pipe.features(docs, "docs")
    rows = [[format(h, "x") for h in row if h] for row in found.unigram_hashes.tolist()]
    return [rows[a:b] for a, b in itertools.pairwise(found.offsets.tolist())]


def train_tagger(sentences: list[Any], gold: list[Doc], model: Path, n_iterations: int) -> Any:
    """Train CRFsuite on sentences of features, and open its model."""
    import pycrfsuite

    parameters = {**crfsuite.PARAMETERS, "max_iterations": n_iterations}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=parameters, verbose=False)
    for sentence, doc in zip(sentences, gold, strict=True):
        trainer.append(sentence, [token.tag_ for token in doc])
    trainer.train(str(model))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    return tagger


def make_sides(nlp: Language, gold: list[Doc], scratch: Path, n_iterations: int) -> dict[str, Side]:
    """All sides; CRFsuite is trained with the usual features, and with ours."""
    sides: dict[str, Side] = {BATCH: in_batches, EACH: doc_by_doc}
    if crfsuite.available():
        plain = fresh(nlp, gold)
        dicts = [items([token.text for token in doc]) for doc in plain]
        usual = train_tagger(dicts, gold, scratch / "usual", n_iterations)
        same = train_tagger(attributes(nlp, plain), gold, scratch / "same", n_iterations)
        sides |= {USUAL: with_dicts(usual), SAME: with_our_features(same)}
    return {**sides, TOKENIZER: tokenize}


def accuracy(nlp: Language, side: Side, gold: list[Doc]) -> float:
    """Share of the tags that a side writes that are right."""
    docs = fresh(nlp, gold)
    side(nlp, docs)
    right = [
        a.tag_ == b.tag_ for x, y in zip(docs, gold, strict=True) for a, b in zip(x, y, strict=True)
    ]
    return sum(right) / len(right)


def read_docs(path: Path, nlp: Language, quick: bool) -> list[Doc]:
    """Read gold Docs."""
    docs = list(DocBin().from_disk(path).get_docs(nlp.vocab))
    return docs[:_QUICK_DOCS] if quick else docs


def main(
    output: Output,
    model: Annotated[Path, typer.Argument(help="Trained pipeline")],
    train: Annotated[Path, typer.Argument(help=".spacy file that CRFsuite is trained on")],
    test: Annotated[Path, typer.Argument(help=".spacy file to tag")],
    repeats: Repeats = 3,
    quick: Quick = False,
) -> None:
    """Tag the test part with all sides in turn."""
    repeats, n_iterations = (1, 3) if quick else (repeats, _ITERATIONS)
    nlp = spacy.load(model)
    learnt, gold = read_docs(train, nlp, quick), read_docs(test, nlp, quick)
    record = Record("decode", quick, {"repeats": repeats, "CRFsuite iterations": n_iterations})

    def run(side: Side) -> Cost:
        own = spacy.load(model)
        side(own, fresh(own, learnt))
        return side(own, fresh(own, gold))

    with TemporaryDirectory() as scratch:
        sides = make_sides(nlp, learnt, Path(scratch), n_iterations)
        in_batches(nlp, fresh(nlp, gold))  # kernels
        runs = {tool: lambda side=side: run(side) for tool, side in sides.items()}
        n_tokens = sum(map(len, gold))
        record.add(DATA, WHAT, alternate(repeats, runs), items=n_tokens)
        record.details = {
            "tokens": n_tokens,
            "accuracy": {
                tool: accuracy(nlp, side, gold)
                for tool, side in sides.items()
                if tool not in (SAME, TOKENIZER)
            },
        }
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
