"""Explanations of models and of token labels; errors of a component, and their causes."""

import numpy as np
import pytest
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.crf.model.model import CRFModel, WeightTable
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.tools.analysis.error_analysis import Report, find_mistakes
from spacy_sparsecrf.tools.analysis.explanation import DocExplanation, explain_model, outcome_names

from ..support.toy import (
    PresetTags,
    blank_with,
    docs_of,
    examples_of,
    mistagged,
    tags_of,
    train,
)

TEMPLATES = ["u:", "u:lower[0]", "u:suffix(2)[0]", "u:lower[1]", "b:", "*:shape[-1]"]


@pytest.fixture(scope="module", params=[True, False], ids=["start", "no-start"])
def paired(corpus, request) -> Language:
    """A pipeline with label-pair features, with few zero weights."""
    nlp = blank_with(TEMPLATES, start_label=request.param, l1=0.0, l2=0.5)
    train(nlp, examples_of(nlp, corpus.train), 4)
    return nlp


def test_a_model_is_explained_by_its_strongest_weights():
    labels = ("A", "B")
    unigram = WeightTable(
        keys=np.array([5, 7, 9], dtype=np.uint64),
        indptr=np.array([0, 2, 3, 5]),
        previous=np.empty(0, np.uint16),
        labels=np.array([0, 1, 0, 0, 1], np.uint16),
        values=np.array([1.0, -2.0, 3.0, -0.5, -0.25], np.float32),
    )
    bigram = WeightTable(
        keys=np.array([5, 6], dtype=np.uint64),
        indptr=np.array([0, 2, 3]),
        previous=np.array([0, 2, 1], np.uint16),
        labels=np.array([1, 0, 0], np.uint16),
        values=np.array([-1.0, 4.0, 2.0], np.float32),
    )
    names = {5: "always", 6: "six", 7: "seven", 9: "nine"}
    model = CRFModel(labels, unigram=unigram, bigram=bigram)
    found = explain_model(model, names, always={5}, n=2)
    assert [(t.previous, t.label, t.weight) for t in found.transitions] == [
        ("", "A", 4.0),
        ("A", "B", -1.0),
    ]
    assert found.n_active == 8
    a, b = found.labels
    assert (a.label, a.n_active, b.label, b.n_active) == ("A", 4, "B", 2)
    shown = [(w.feature, w.previous, w.label, w.weight) for w in a.supporting]
    assert shown == [("seven", None, "A", 3.0), ("six", "B", "A", 2.0)]
    assert [(w.feature, w.weight) for w in a.opposing] == [("nine", -0.5)]
    assert [(w.feature, w.weight) for w in b.opposing] == [("always", -2.0), ("nine", -0.25)]
    assert b.supporting == ()
    assert explain_model(model, names, {5}, 0).labels[0].supporting == ()


def test_components_without_weights_are_explained():
    nlp = blank_with()
    pipe = nlp.get_pipe("sparse_crf")
    assert pipe.explain().labels == ()
    with pytest.raises(SparseCRFError, match="SC201"):
        pipe.explain_doc(Doc(nlp.vocab, words=["a"]))
    pipe.add_label("X")
    (label,) = pipe.explain().labels
    assert (label.label, label.n_active, label.supporting) == ("X", 0, ())
    # With a single label there is no runner-up.
    (token,) = pipe.explain_doc(nlp.make_doc("a")).tokens
    assert (token.label, token.probability) == ("X", 1.0)
    assert (token.runner_up, token.runner_up_probability) == (None, 0.0)
    assert token.contributions == ()
    assert pipe.explain_doc(Doc(nlp.vocab)) == DocExplanation(())


def test_clusters_are_explained_beside_the_labels():
    model = CRFModel(("A", "B", "C"), kind="maxent", bounds=(0, 2, 3))
    assert outcome_names(model) == ["A", "B", "C", "A .. B", "C .. C"]
    assert [x.label for x in explain_model(model, {}, {0}, 1).labels] == outcome_names(model)


def path_score(pipe, doc: Doc, labels: list[int]) -> float:
    """Return the score of a labelling, summed weight by weight, as a reference."""
    observations = pipe.features([doc], "docs")
    model, score = pipe.model, 0.0
    tables = {"u": model.unigram, "b": model.bigram}
    weights = {}
    for kind, table in tables.items():
        for i, key in enumerate(table.keys.tolist()):
            for k in range(table.indptr[i], table.indptr[i + 1]):
                previous = int(table.previous[k]) if kind == "b" else None
                weights[kind, key, previous, int(table.labels[k])] = float(table.values[k])
    for t, label in enumerate(labels):
        previous = labels[t - 1] if t else len(model.labels)
        for key in observations.unigram_hashes[t].tolist():
            score += weights.get(("u", key, None, label), 0.0)
        for key in observations.bigram_hashes[t].tolist():
            score += weights.get(("b", key, previous, label), 0.0)
    return score


def test_what_speaks_against_given_labels_sums_to_the_gap(paired, corpus):
    pipe = paired.get_pipe("sparse_crf")
    for doc in docs_of(paired, corpus.dev[:6]):
        found = pipe.explain_doc(doc).tokens
        labels = [pipe.labels.index(token.label) for token in found]
        for rivals in ({0: "VB", 1: "IN"}, {1: "JJ", 2: "JJ", 3: "DT"}, {len(doc) - 1: "DT"}):
            explained = pipe.explain_tokens(doc, rivals)
            assert [token.runner_up for token in explained] == list(rivals.values())
            gap = sum(c.difference for token in explained for c in token.contributions)
            other = [*labels]
            for t, rival in rivals.items():
                other[t] = pipe.labels.index(rival)
            expected = path_score(pipe, doc, labels) - path_score(pipe, doc, other)
            assert gap == pytest.approx(expected, abs=1e-5)
        assert pipe.explain_tokens(doc, {2: None}) == (found[2],)
    with pytest.raises(SparseCRFError, match="SC409"):
        pipe.explain_tokens(doc, {0: "ZZ"})


def test_labels_and_probabilities_are_those_of_the_component(trained, corpus):
    pipe = trained.get_pipe("sparse_crf")
    for doc in docs_of(trained, corpus.dev):
        before = doc.to_bytes()
        found = pipe.explain_doc(doc).tokens
        assert doc.to_bytes() == before
        marginals = pipe.predictor().decoder.marginals(pipe.features([doc], "sents"))
        assert [token.text for token in found] == [token.text for token in doc]
        for row, token in zip(marginals, found, strict=True):
            assert token.probability == row[pipe.labels.index(token.label)]
            assert token.runner_up_probability == row[pipe.labels.index(token.runner_up)]
            rest = [p for p, x in zip(row, pipe.labels, strict=True) if x != token.label]
            assert token.runner_up_probability == max(rest)
            differences = [c.difference for c in token.contributions]
            assert differences == sorted(differences, reverse=True)
            assert [c.difference for c in token.strongest(999)] == list(filter(None, differences))
        pipe(doc)
        assert [token.label for token in found] == tags_of([doc])[0]


def test_what_is_set_has_no_runner_up(trained):
    pipe = trained.get_pipe("sparse_crf")
    pipe.target = PresetTags()
    words = ["the", "plan", "of", "a", "plan"]
    free, doc = Doc(trained.vocab, words=words), Doc(trained.vocab, words=words)
    doc[1].tag_ = "JJ"
    tokens = pipe.explain_doc(doc, forced=True).tokens
    assert (tokens[1].label, tokens[1].probability) == ("JJ", pytest.approx(1.0))
    assert (tokens[1].runner_up, tokens[1].runner_up_probability) == (None, 0.0)
    assert all(c.rival == 0.0 for c in tokens[1].contributions)
    assert tokens[2].runner_up is not None
    [marginals] = pipe.marginals([doc], forced=True)
    assert tokens[0].probability == marginals[0, pipe.labels.index(tokens[0].label)]
    pipe.settings = pipe.settings.model_copy(update={"overwrite": True})
    assert pipe.explain_doc(doc, forced=True) == pipe.explain_doc(free)


@pytest.fixture
def examples(trained, corpus) -> list[Example]:
    """Held-out Examples; the last has an unknown gold tag, and tokens without a gold tag."""
    words = ["the", "plan", "of", "the", "fentovtion"]
    reference = Doc(trained.vocab, words=words, tags=["DT", "ZZ", "", "IN", ""])
    odd = Example(Doc(trained.vocab, words=words), reference)
    return [*examples_of(trained, mistagged(corpus.dev)), odd]


@pytest.fixture
def report(trained, examples) -> Report:
    return find_mistakes(trained.get_pipe("sparse_crf"), examples)


def test_scores_are_those_of_the_scorer(trained, examples, report):
    assert report.kinds == ("strict",)
    accuracy = trained.evaluate(examples)["tag_acc"]
    assert report.scores[0].rates["strict"].f == pytest.approx(accuracy)
    n_wrong = sum(n for (gold, predicted), n in report.pairs.items() if gold != predicted)
    assert n_wrong == report.n_mistakes == len(report.mistakes) > 2
    assert n_wrong == sum(confusion.n for confusion in report.confusions)
    assert sorted(report.labels) == ["DT", "IN", "JJ", "NN", "VB", "ZZ"]
    n_gold = [score.n_gold for score in report.scores[1:]]
    assert n_gold == sorted(n_gold, reverse=True) and report.labels[-1] == "ZZ"


def test_mistakes_tell_what_and_why(trained, examples, report):
    pipe = trained.get_pipe("sparse_crf")
    for mistake in report.mistakes:
        doc, (gold,), (predicted,) = (
            examples[mistake.doc].predicted,
            mistake.gold,
            mistake.predicted,
        )
        assert [mistake.text_of(gold)] == [*mistake.words] == [doc[gold.start].text]
        p = pipe.marginals(doc)[gold.start]
        assert predicted.probability == pytest.approx(p.max())
        (token,) = mistake.tokens
        assert (gold.label, token.label) == mistake.pair == (*mistake.labels,)
        assert token.label == predicted.label
        if gold.label != "ZZ":
            assert token.runner_up == gold.label
            assert gold.probability == pytest.approx(p[pipe.labels.index(token.runner_up)])
            gap = sum(each.difference for _, each in mistake.strongest(999))
            assert gap == pytest.approx(sum(each.difference for each in token.contributions))
    (odd,) = [mistake for mistake in report.mistakes if mistake.pair[0] == "ZZ"]
    assert (odd.doc, odd.words) == (30, ("plan",))
    assert (odd.before, odd.after) == (("the",), ("of", "the", "fentovtion"))
    assert odd.gold[0].probability == 0.0 and odd.tokens[0].runner_up in pipe.labels
    sure = [mistake.predicted[0].probability for mistake in report.mistakes]
    assert sure == sorted(sure, reverse=True)
    groups = [*report.groups()]
    assert [pair for pair, *_ in groups] == [*dict.fromkeys(pair for pair, *_ in groups)]
    assert [n for _, n, _ in groups] == sorted((n for _, n, _ in groups), reverse=True)
    assert all(report.pairs[pair] == n == len(found) for pair, n, found in groups)
    assert sum(n for _, n, _ in groups) == report.n_mistakes


def test_all_frequent_confusions_have_explained_mistakes(trained, examples, report):
    pipe, pairs = trained.get_pipe("sparse_crf"), [pair for pair, *_ in report.groups()]
    found = find_mistakes(pipe, examples, most=len(pairs))
    assert len(found.mistakes) == len(pairs) < found.n_mistakes == report.n_mistakes
    for most in range(3 * len(pairs), report.n_mistakes):
        found = find_mistakes(pipe, examples, most=most)
        assert [pair for pair, *_ in found.groups()] == pairs
        assert [x for x in report.mistakes if x in found.mistakes] == [*found.mistakes]


def test_mistakes_are_chosen_by_label_and_word(trained, examples, report):
    pipe = trained.get_pipe("sparse_crf")
    for label, word in (("ZZ", ""), ("NN", ""), ("", "PLAN"), ("VB", "plan"), ("", "nowhere")):
        found = find_mistakes(pipe, examples, label=label, word=word, most=1)
        wanted = [each for each in report.mistakes if not label or label in each.labels]
        wanted = [each for each in wanted if not word or word.lower() in each.words]
        assert (found.mistakes, found.n_mistakes) == (tuple(wanted[:1]), len(wanted))
        assert (found.scores, found.pairs) == (report.scores, report.pairs)
