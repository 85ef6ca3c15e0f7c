"""Graph models in components: edges of Docs, training, prediction, storage, refusals."""

import copy

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Token
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.graphs.edges import read_links
from spacy_sparsecrf.graphs.encoded import Links
from spacy_sparsecrf.graphs.loss import GraphLoss
from spacy_sparsecrf.graphs.training import linked
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.model.model import CRFModel
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.pipeline.graph_settings import Edge, parse_edges

from ..reference import random_problem
from ..toy import examples_of, make_sentences

SKIP = ["chain", "same(lower, if=is_alpha, most=2)"]
NOBODY = np.empty(0, np.int64)
NO_LINKS = Links(np.empty((0, 2), np.int64), NOBODY, NOBODY.astype(np.uint64))


def doc_of(*words: str) -> Doc:
    return Doc(spacy.blank("en").vocab, words=list(words))


def pairs_of(text: str, doc: Doc, offsets: list[int] | None = None) -> list[list[int]]:
    edges = parse_edges("x", [text])
    found = read_links(edges, [doc], np.array(offsets or [0, len(doc)]))
    return found.ends.tolist()


@pytest.fixture
def places():
    for name in ("row", "column", "other"):
        Token.set_extension(name, default=None, force=True)
    yield
    for name in ("row", "column", "other"):
        Token.remove_extension(name)


def test_equal_tokens_are_joined() -> None:
    doc = doc_of("Ann", "met", "ann", ",", "Ann", "and", "Ann", ",")
    assert pairs_of("same(orth)", doc) == [[0, 4], [4, 6], [3, 7]]
    assert pairs_of("same(lower, if=is_alpha)", doc) == [[0, 2], [2, 4], [4, 6]]
    assert pairs_of("same(lower, if=is_title)", doc) == [[0, 4], [4, 6]]
    assert pairs_of("same(orth, most=2, if=is_alpha)", doc) == [[0, 4], [0, 6], [4, 6]]
    assert pairs_of("same(orth, far=2)", doc) == [[4, 6]]
    for i in (1, 5):
        doc[i].set_morph("Tense=Past")
    assert pairs_of("same(morph, if=morph)", doc) == [[1, 5]]
    # Edges do not cross sequences.
    assert pairs_of("same(orth)", doc, [0, 4, 8]) == [[4, 6]]
    assert pairs_of("chain", doc) == []
    assert pairs_of("same(tag)", doc) == []


def test_links_of_extensions_and_places(places: None) -> None:
    doc = doc_of("a", "b", "c", "d")
    for token, other in zip(doc, (2, [0, 3], None, []), strict=True):
        token._.other = other
    assert pairs_of("link(_.other)", doc) == [[0, 2], [0, 1], [1, 3]]
    # A table, whose cells are in the Doc column by column.
    for token, place in zip(doc, ((0, 0), (1, 0), (0, 1), (1, 1)), strict=True):
        token._.row, token._.column = place
    assert sorted(pairs_of("rows", doc)) == [[0, 2], [1, 3]]
    assert sorted(pairs_of("columns", doc)) == [[0, 1], [2, 3]]
    doc[1]._.other = 7
    with pytest.raises(SparseCRFError, match=r"SC235.*'link\(_.other\)' read 7 at token 'b'"):
        pairs_of("link(_.other)", doc)
    with pytest.raises(SparseCRFError, match="SC234.*gone"):
        pairs_of("link(_.gone)", doc)


@pytest.mark.parametrize(
    "text",
    ["", "same", "same()", "same(nothing)", "same(orth, most=0)", "same(orth, x=1)", "chain(orth)"],
)
def test_bad_edges_are_refused(text: str) -> None:
    others = ["link(_.to, most=2)", "link(head)", "same(orth, if=nothing)", "same(glued)", 3]
    with pytest.raises(SparseCRFError, match=r"SC233.*components\.here"):
        parse_edges("here", [text])
    for other in others:
        with pytest.raises(SparseCRFError, match="SC233"):
            parse_edges("here", [other])


def test_very_many_equal_words_have_few_edges() -> None:
    doc = doc_of(*["same"] * 100_000)
    found = read_links([Edge("s", "same", "orth", most=3)], [doc], np.array([0, len(doc)]))
    assert len(found.ends) == 3 * 100_000 - 6


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from((0.0, 0.4)), st.booleans())
def test_neighbours_alone_are_a_chain(seed: int, missing: float, start_label: bool) -> None:
    problem, _ = random_problem(
        seed, 3, [4, 1, 3], missing=missing, start_label=start_label, n_values=2
    )
    if (problem.corpus.labels == -1).all():
        return
    graphs, places = linked(problem.corpus, NO_LINKS, 3)
    assert len(places) == len(set(places)) == len(problem.theta)
    loss = GraphLoss(graphs, 3, Workers(1))
    chain = ChainLoss(problem.corpus, 3, Workers(1))
    value, gradient = chain.restrict(chain.all_coordinates()).value_and_grad(problem.theta)
    found, own = loss.value_and_grad(problem.theta[places])
    assert found == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(own, gradient[places], atol=1e-8)


def train(model: str, steps: int = 3, **config):
    nlp = spacy.blank("en")
    config = {"model": model, "n_threads": 1, "dtype": "float64", **config}
    pipe = nlp.add_pipe("sparse_crf", config=config)
    examples = examples_of(nlp, make_sentences(30, seed=1))
    nlp.initialize(lambda: examples)
    for _ in range(steps):
        nlp.update(examples, sgd=True)
    return nlp, pipe


def test_a_graph_of_neighbours_predicts_as_the_chain() -> None:
    nlp, chain = train("chain")
    _, graph = train("graph", steps=1)
    chain.to_bytes()  # completes the model
    weights = chain.model
    tables = weights.unigram, weights.bigram
    graph.model = CRFModel(weights.labels, "float64", *tables, kind="graph")
    graph.cfg = copy.deepcopy(chain.cfg)
    graph.end_training(graph.model, 0.1)
    docs = [example.predicted for example in examples_of(nlp, make_sentences(20, seed=5))]
    for mine, theirs in zip(graph.marginals(docs), chain.marginals(docs), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-8)
    for mine, theirs in zip(graph.predict(docs), chain.predict(docs), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_graph_trains_and_is_stored() -> None:
    nlp, pipe = train("graph", edges=SKIP, decoding={"scores": True})
    examples = examples_of(nlp, make_sentences(20, seed=5))
    assert nlp.evaluate(examples)["tag_acc"] > 0.8
    docs = [example.predicted for example in examples]
    before = pipe.marginals(docs)
    assert all(abs(p.sum(axis=1) - 1.0).max() < 1e-9 for p in before)
    again = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    for mine, theirs in zip(again.get_pipe("sparse_crf").marginals(docs), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert any(r"edge=same(lower, if\=is_alpha, most\=2)" in line for line in pipe.dump())
    with pytest.raises(SparseCRFError, match="SC410"):
        pipe.nbest(docs[0], 2)
    with pytest.raises(SparseCRFError, match="SC410"):
        pipe.log_probability(docs[0], ["NN"] * len(docs[0]))


def test_entities_of_a_graph_are_legal() -> None:
    nlp = spacy.blank("en")
    config = {"model": "graph", "sequences": "docs", "edges": ["chain", "same(lower)"], "l1": 0.0}
    pipe = nlp.add_pipe("sparse_crf_ner", config={**config, "n_threads": 1})
    words = ["Ann", "Lee", "met", "Ann", "Lee", "."]
    spans = {"entities": [(0, 7, "PER"), (12, 19, "PER")]}
    examples = [Example.from_dict(Doc(nlp.vocab, words=words), spans) for _ in range(3)]
    nlp.initialize(lambda: examples)
    for method in ("viterbi", "posterior"):
        nlp.update(examples, sgd=True)
        pipe.settings.decoding.__dict__["method"] = method
        doc = nlp(Doc(nlp.vocab, words=words))
        assert [(e.start, e.end, e.label_) for e in doc.ents] == [(0, 2, "PER"), (3, 5, "PER")]
    # Preset entities are kept, and invalid labels are impossible.
    given = Doc(nlp.vocab, words=words)
    given.set_ents([spacy.tokens.Span(given, 2, 3, "PER")], default="unmodified")
    assert (2, 3) in [(e.start, e.end) for e in nlp(given).ents]
    assert pipe.marginals(Doc(nlp.vocab, words=["x"])).shape == (1, len(pipe.label_data))
