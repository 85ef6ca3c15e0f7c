"""Benchmark 6: tokens a second from Doc to written labels, on test parts.

Chunks (CoNLL-2000) have the same features on all sides: the pipeline's templates, which for
CRFsuite are dicts that Python makes. Tags (English EWT) have the default templates here, and there
the lighter features that users of CRFsuite write for tags.

All sides have the same gold tokens, one thread, and a pipeline of their own that has seen the
training part: words that are new in the test part are new to its caches in each repetition. The
yardsticks are spaCy's tokenizer on the same texts, and reading and writing Docs without labelling.
"""

import gc
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from . import crfsuite
from .crfsuite_features import Item, chunking_items, tagging_items
from .measurements import OURS, Record
from .options import Output, Quick, Repeats
from .timing import Cost, alternate, measured

TAGS, CHUNKS, WHAT = "ud-en-ewt test", "conll2000 test", "Doc to labels"
BATCH, EACH = f"{OURS}, in batches", f"{OURS}, Doc by Doc"
USUAL, SAME = "CRFsuite, dict features", "CRFsuite, our features, made before"
TOKENIZER = "spaCy's tokenizer"
UNLABELLED = "Docs read and written, nothing else"
PIPE = "sparse_crf"
_ITERATIONS = 50
_QUICK_DOCS = 200
CHUNK = "chunk"  # the extension attribute that has the labels where tags are given
# What is read of Docs and written to them; spaCy's stub does not know the names.
_READ: Any = ["ORTH", "SENT_START", "TAG"]
_WRITTEN: Any = ["TAG"]

# A side labels Docs of the pipeline's vocab, which have at most given tags, and returns its cost.
Side = Callable[[Language, list[Doc]], Cost]
# Dict features of words and tags.
Recipe = Callable[[Sequence[str], Sequence[str]], list[Item]]


@dataclass(frozen=True)
class Job:
    """A trained pipeline, the .spacy files of its data, and what users of CRFsuite do for it."""

    data: str
    model: Path
    train: Path
    test: Path
    recipe: Recipe


def writes_chunks(nlp: Language) -> bool:
    """Whether the labels of a pipeline are chunks, for which tags are given."""
    pipe: Any = nlp.get_pipe(PIPE)
    return bool(pipe.target.attr == f"_.{CHUNK}")


def labels_of(nlp: Language, doc: Doc) -> list[str]:
    """The labels of a Doc's tokens."""
    if writes_chunks(nlp):
        return [token._.get(CHUNK) for token in doc]
    return [token.tag_ for token in doc]


def fresh(nlp: Language, gold: list[Doc]) -> list[Doc]:
    """Docs of the gold tokens, without annotation but for tags that are given."""
    given = writes_chunks(nlp)
    return [
        Doc(
            nlp.vocab,
            words=[token.text for token in doc],
            spaces=[bool(token.whitespace_) for token in doc],
            tags=[token.tag_ for token in doc] if given else None,
        )
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


def read_and_write(nlp: Language, docs: list[Doc]) -> Cost:
    """Words, sentences and tags out of each Doc, and tags back: what no labeller can do without."""
    with measured() as cost:
        for doc in docs:
            doc.from_array(_WRITTEN, doc.to_array(_READ)[:, -1:])
    return cost


def tokenize(nlp: Language, docs: list[Doc]) -> Cost:
    """The tokenizer alone, on the Docs' texts."""
    texts = [doc.text for doc in docs]
    with measured() as cost:
        for text in texts:
            nlp.tokenizer(text)
    return cost


def dicts(recipe: Recipe, doc: Doc) -> list[Item]:
    """Dict features of a Doc."""
    return recipe([token.text for token in doc], [token.tag_ for token in doc])


def with_dicts(tagger: Any, recipe: Recipe) -> Side:
    """python-crfsuite with dict features: from the Docs' words to their labels."""

    def run(nlp: Language, docs: list[Doc]) -> Cost:
        as_chunks = writes_chunks(nlp)
        with measured() as cost:
            for doc in docs:
                labels = tagger.tag(dicts(recipe, doc))
                for token, label in zip(doc, labels, strict=True):
                    if as_chunks:
                        token._.set(CHUNK, label)
                    else:
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


def train_tagger(
    sentences: list[Any], gold: list[list[str]], model: Path, n_iterations: int
) -> Any:
    """Train CRFsuite on sentences of features, and open its model."""
    import pycrfsuite

    parameters = {**crfsuite.PARAMETERS, "max_iterations": n_iterations}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=parameters, verbose=False)
    for sentence, labels in zip(sentences, gold, strict=True):
        trainer.append(sentence, labels)
    trainer.train(str(model))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    return tagger


def make_sides(
    nlp: Language, gold: list[Doc], recipe: Recipe, scratch: Path, n_iterations: int
) -> dict[str, Side]:
    """All sides; CRFsuite is trained with the usual features, and with ours."""
    sides: dict[str, Side] = {BATCH: in_batches, EACH: doc_by_doc}
    if crfsuite.available():
        plain, labels = fresh(nlp, gold), [labels_of(nlp, doc) for doc in gold]
        usual_items = [dicts(recipe, doc) for doc in plain]
        usual = train_tagger(usual_items, labels, scratch / "usual", n_iterations)
        same = train_tagger(attributes(nlp, plain), labels, scratch / "same", n_iterations)
        sides |= {USUAL: with_dicts(usual, recipe), SAME: with_our_features(same)}
    return {**sides, UNLABELLED: read_and_write, TOKENIZER: tokenize}


def accuracy(nlp: Language, side: Side, gold: list[Doc]) -> float:
    """Share of the labels that a side writes that are right."""
    docs = fresh(nlp, gold)
    side(nlp, docs)
    right = [
        a == b
        for x, y in zip(docs, gold, strict=True)
        for a, b in zip(labels_of(nlp, x), labels_of(nlp, y), strict=True)
    ]
    return sum(right) / len(right)


def read_docs(path: Path, nlp: Language, quick: bool) -> list[Doc]:
    """Read gold Docs."""
    docs = list(DocBin().from_disk(path).get_docs(nlp.vocab))
    return docs[:_QUICK_DOCS] if quick else docs


@contextmanager
def _settled() -> Iterator[None]:
    """Leave what is there out of Python's collections of garbage in the body of a `with`.

    A full one goes over all corpora that are held here, and takes as long as a side's whole work.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def compare(job: Job, record: Record, repeats: int, n_iterations: int, quick: bool) -> None:
    """Label the test part with all sides in turn."""
    nlp = spacy.load(job.model)
    learnt, gold = read_docs(job.train, nlp, quick), read_docs(job.test, nlp, quick)

    def run(side: Side) -> Cost:
        own = spacy.load(job.model)
        side(own, fresh(own, learnt))
        docs = fresh(own, gold)
        with _settled():
            return side(own, docs)

    with TemporaryDirectory() as scratch:
        sides = make_sides(nlp, learnt, job.recipe, Path(scratch), n_iterations)
        in_batches(nlp, fresh(nlp, gold))  # kernels
        runs = {tool: lambda side=side: run(side) for tool, side in sides.items()}
        n_tokens = sum(map(len, gold))
        record.add(job.data, WHAT, alternate(repeats, runs), items=n_tokens)
        record.details[job.data] = {
            "tokens": n_tokens,
            "accuracy": {
                tool: accuracy(nlp, side, gold)
                for tool, side in sides.items()
                if tool not in (SAME, UNLABELLED, TOKENIZER)
            },
        }


def main(
    output: Output,
    training: Annotated[Path, typer.Argument(help="Directory of ud and conll2000/model-best")],
    corpus: Annotated[Path, typer.Argument(help="Directory of {ud,conll2000}-{train,test}.spacy")],
    repeats: Repeats = 3,
    quick: Quick = False,
) -> None:
    """Label the test parts."""
    repeats, n_iterations = (1, 3) if quick else (repeats, _ITERATIONS)
    record = Record("decode", quick, {"repeats": repeats, "CRFsuite iterations": n_iterations})
    for data, name, recipe in (
        (CHUNKS, "conll2000", chunking_items),
        (TAGS, "ud", tagging_items),
    ):
        parts = (corpus / f"{name}-{part}.spacy" for part in ("train", "test"))
        job = Job(data, training / name / "model-best", *parts, recipe)
        compare(job, record, repeats, n_iterations, quick)
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
