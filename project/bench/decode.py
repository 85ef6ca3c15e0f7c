"""Tokens per second on test parts: from Docs to features, and from Docs to written labels.

Chunking (CoNLL-2000) uses the same features on all sides: the pipeline's templates, which CRFsuite
reads as dicts made in Python. Tagging (English EWT) uses our default templates, and for CRFsuite
the lighter features that its users write for tagging. Words that are new in the test part are
new to the pipeline's caches in each repetition.
"""

import gc
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import spacy
from measure.processes import Cost, alternate, timed
from measure.results import Row
from measure.tables import number, table
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_sparsecrf.features.defaults import DEFAULT_TEMPLATES
from spacy_sparsecrf.features.featurizer import Featurizer

from . import peers
from .record import OURS, Options, cell, measurements, middle
from .user_program import RECIPES, Recipe

TAGS, CHUNKS, WHAT = "ud-en-ewt test", "conll2000 test", "Doc to labels"
BATCH, EACH = f"{OURS}, in batches", f"{OURS}, Doc by Doc"
USUAL, SAME = "CRFsuite, dict features", "CRFsuite, our features, made before"
TOKENIZER = "spaCy's tokenizer"
UNLABELLED = "Docs read and written, nothing else"
FEATURES_DATA = "ud-en-ewt test"
COLD, STEADY = "cold", "steady"
EXPRESSIONS = (
    r"u:regex('^\p{Lu}\p{Ll}+$')[0]",
    r"u:regex('^[0-9.,]+$')[0]",
    r"u:regex('^\p{Lu}{2,}$')[0]",
    r"u:regex('\p{L}-\p{L}')[0]",
    r"u:match('[aeiou]+$')[0]",
    r"u:match('(ing|ed|ly|s)$')[0]",
)
SETS = {
    "default templates": DEFAULT_TEMPLATES,
    "default templates and 6 regular expressions": (*DEFAULT_TEMPLATES, *EXPRESSIONS),
    "default templates and ngrams(2, 4)": (*DEFAULT_TEMPLATES, "u:ngrams(2, 4)[0]"),
}
PIPE = "sparse_crf"
CHUNK = "chunk"  # extension attribute of the labels if Docs have given tags
_ITERATIONS, _QUICK_DOCS = 50, 200
# Attributes read from Docs and written to them; spaCy's type stub does not accept the names.
_READ: Any = ["ORTH", "SENT_START", "TAG"]
_WRITTEN: Any = ["TAG"]

# A side labels Docs of the pipeline's vocab, which have no annotation except given tags, while the
# returned iterable is consumed.
Side = Callable[[Language, list[Doc]], Iterable[Any]]


def writes_chunks(nlp: Language) -> bool:
    """Return whether a pipeline writes chunks, and reads given tags."""
    pipe: Any = nlp.get_pipe(PIPE)
    return bool(pipe.target.attr == f"_.{CHUNK}")


def labels_of(nlp: Language, doc: Doc) -> list[str]:
    """Return the labels of a Doc's tokens."""
    if writes_chunks(nlp):
        return [token._.get(CHUNK) for token in doc]
    return [token.tag_ for token in doc]


def fresh(nlp: Language, gold: list[Doc]) -> list[Doc]:
    """Return new Docs of the gold tokens, without annotation except given tags."""
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


def dicts(recipe: Recipe, doc: Doc) -> list[dict[str, Any]]:
    """Return dict features of a Doc."""
    return recipe([token.text for token in doc], [token.tag_ for token in doc])


def with_dicts(tagger: Any, recipe: Recipe, nlp: Language, docs: list[Doc]) -> Iterator[Doc]:
    """Label Docs with python-crfsuite and dict features, and write the labels to the Docs."""
    as_chunks = writes_chunks(nlp)
    for doc in docs:
        labels = tagger.tag(dicts(recipe, doc))
        for token, label in zip(doc, labels, strict=True):
            if as_chunks:
                token._.set(CHUNK, label)
            else:
                token.tag_ = label
        yield doc


def attributes(nlp: Language, docs: list[Doc]) -> list[list[list[str]]]:
    """Return our attributes of each token as strings, for CRFsuite."""
    pipe: Any = nlp.get_pipe(PIPE)
    found = pipe.features(docs, "docs")
    rows = [[format(h, "x") for h in row if h] for row in found.unigram_hashes.tolist()]
    return [rows[a:b] for a, b in itertools.pairwise(found.offsets.tolist())]


def train_tagger(sentences: list[Any], gold: list[list[str]], model: Path, n: int) -> Any:
    """Train CRFsuite on feature lists of sentences for n iterations, and open its model."""
    import pycrfsuite

    parameters = {**peers.PARAMETERS, "max_iterations": n}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=parameters, verbose=False)
    for sentence, labels in zip(sentences, gold, strict=True):
        trainer.append(sentence, labels)
    trainer.train(str(model))
    return peers.open_tagger(model)


def make_sides(
    nlp: Language, gold: list[Doc], recipe: Recipe, scratch: Path, n_iterations: int
) -> dict[str, Side]:
    """Return all sides; CRFsuite runs with its usual features, and with ours."""
    sides: dict[str, Side] = {
        BATCH: lambda nlp, docs: nlp.pipe(docs, batch_size=1000),
        EACH: lambda nlp, docs: map(nlp, docs),
    }
    if peers.has_crfsuite():
        plain, labels = fresh(nlp, gold), [labels_of(nlp, doc) for doc in gold]
        items = [dicts(recipe, doc) for doc in plain]
        usual = train_tagger(items, labels, scratch / "usual", n_iterations)
        same = train_tagger(attributes(nlp, plain), labels, scratch / "same", n_iterations)
        sides[USUAL] = partial(with_dicts, usual, recipe)
        # Only lookup and Viterbi: attribute names are already strings.
        sides[SAME] = lambda nlp, docs: map(same.tag, attributes(nlp, docs))
    # Lower bound for every labeller: read words, sentences and tags of each Doc, and write tags.
    sides[UNLABELLED] = lambda nlp, docs: (
        doc.from_array(_WRITTEN, doc.to_array(_READ)[:, -1:]) for doc in docs
    )
    sides[TOKENIZER] = lambda nlp, docs: map(nlp.tokenizer, [doc.text for doc in docs])
    return sides


def run(side: Side, nlp: Language, docs: list[Doc]) -> Cost:
    """Label Docs with a side, and return the cost."""
    work = side(nlp, docs)
    gc.collect()
    # A full collection would traverse all corpora in memory, which takes as long as the labelling.
    gc.freeze()
    try:
        return timed(lambda: deque(work, maxlen=0))
    finally:
        gc.unfreeze()


def accuracy(nlp: Language, side: Side, gold: list[Doc]) -> float:
    """Return the accuracy of the labels that a side writes."""
    docs = fresh(nlp, gold)
    run(side, nlp, docs)
    pairs = [
        pair
        for x, y in zip(docs, gold, strict=True)
        for pair in zip(labels_of(nlp, x), labels_of(nlp, y), strict=True)
    ]
    return sum(a == b for a, b in pairs) / len(pairs)


def measure(options: Options) -> None:
    """Label both test parts with all sides alternately."""
    repeats, n_iterations = options.times(3), 3 if options.quick else _ITERATIONS
    record = options.record("decode", repeats=repeats, **{"CRFsuite iterations": n_iterations})
    for data, name in ((CHUNKS, "conll2000"), (TAGS, "ud")):
        model = options.folder / "training" / name / "model-best"
        nlp = spacy.load(model)
        folder, n = options.folder / "corpus", _QUICK_DOCS if options.quick else None
        learnt, gold = (
            list(DocBin().from_disk(folder / f"{name}-{part}.spacy").get_docs(nlp.vocab))[:n]
            for part in ("train", "test")
        )

        def once(side: Side, model: Path = model, learnt=learnt, gold=gold) -> Cost:
            own = spacy.load(model)
            run(side, own, fresh(own, learnt))
            return run(side, own, fresh(own, gold))

        with TemporaryDirectory() as scratch:
            sides = make_sides(nlp, learnt, RECIPES[name], Path(scratch), n_iterations)
            run(sides[BATCH], nlp, fresh(nlp, gold))  # kernels
            costs = alternate(repeats, {tool: partial(once, side) for tool, side in sides.items()})
            for tool, side in sides.items():
                labels = tool not in (SAME, UNLABELLED, TOKENIZER)
                own = {"accuracy": accuracy(nlp, side, gold)} if labels else {}
                items = sum(map(len, gold))
                record.compare(data, WHAT, {tool: costs[tool]}, items=items, **own)


def tables(rows: list[Row], absent: list[str]) -> list[str]:
    """Return speed and accuracy of each tool."""
    lines = []
    for row in measurements(rows):
        shown = f"{100 * row['accuracy']:.2f} %" if "accuracy" in row else ""
        lines.append([row["data"], row["tool"], cell(row), f"{number(middle(row))} s", shown])
    return [table(["", "", "tokens", "the test part", "labels right"], lines)]


# Feature extraction


def read_twice(templates: tuple[str, ...], docs: list[Doc]) -> tuple[Cost, Cost]:
    """Read Docs twice with a new featurizer, and return both costs."""
    features = Featurizer(templates)
    return timed(lambda: features(docs)), timed(lambda: features(docs))


def measure_features(options: Options) -> None:
    """Read the test part with all sets of templates alternately."""
    repeats = options.times(3)
    path = options.folder / "corpus" / "ud-test.spacy"
    docs = list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))
    docs = docs[: _QUICK_DOCS if options.quick else None]
    record = options.record("templates", repeats=repeats)
    for templates in SETS.values():
        read_twice(templates, docs[:1])
    costs = alternate(
        repeats, {name: partial(read_twice, given, docs) for name, given in SETS.items()}
    )
    n_tokens, words = sum(map(len, docs)), {token.orth for doc in docs for token in doc}
    for name, pairs in costs.items():
        for tool, part in zip((COLD, STEADY), zip(*pairs, strict=True), strict=True):
            record.compare(FEATURES_DATA, name, {tool: list(part)}, items=n_tokens)
    record.remark(f"{n_tokens:,} tokens, {len(words):,} distinct words.")


def tables_features(rows: list[Row], absent: list[str]) -> list[str]:
    """Return a table of thousands of tokens per processor second."""
    speeds: dict[str, list[str]] = {}
    for row in measurements(rows):
        speed = number(row["items"] / median(row["cpu"]) / 1e3)
        speeds.setdefault(row["what"], []).append(f"{speed} k/s")
    return [table(["", COLD, STEADY], [[what, *found] for what, found in speeds.items()])]
