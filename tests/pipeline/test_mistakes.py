"""Errors of a component, and their causes."""

import pytest
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.analysis.error_analysis import Report, find_mistakes

from ..toy import Sentence, examples_of


def mistagged(sentences: list[Sentence]) -> list[Sentence]:
    """Return sentences; in every second one, one gold tag differs from the prediction."""
    found = []
    for n, (words, tags) in enumerate(sentences):
        wrong = n // 2 % len(tags)
        other = {"NN": "VB", "VB": "NN"}.get(tags[wrong], "NN")
        found.append((words, [*tags[:wrong], other, *tags[wrong + 1 :]] if n % 2 else tags))
    return found


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
    assert report.labels == ["DT", "IN", "JJ", "NN", "VB", "ZZ"]


def test_mistakes_tell_what_and_why(trained, examples, report):
    pipe = trained.get_pipe("sparse_crf")
    for mistake in report.mistakes:
        doc = examples[mistake.doc].predicted
        assert [mistake.text_of(mistake.gold)] == [*mistake.words] == [doc[mistake.gold.start].text]
        p = pipe.marginals(doc)[mistake.gold.start]
        assert mistake.predicted.probability == pytest.approx(p.max())
        (token,) = mistake.tokens
        assert token.label == mistake.predicted.label
        if mistake.gold.label != "ZZ":
            assert token.runner_up == mistake.gold.label
            assert mistake.gold.probability == pytest.approx(p[pipe.labels.index(token.runner_up)])
            gap = sum(each.difference for _, each in mistake.strongest(999))
            assert gap == pytest.approx(sum(each.difference for each in token.contributions))
    (odd,) = [mistake for mistake in report.mistakes if mistake.gold.label == "ZZ"]
    assert (odd.doc, odd.words) == (30, ("plan",))
    assert (odd.before, odd.after) == (("the",), ("of", "the", "fentovtion"))
    assert odd.gold.probability == 0.0 and odd.tokens[0].runner_up in pipe.labels
    sure = [mistake.predicted.probability for mistake in report.mistakes]
    assert sure == sorted(sure, reverse=True)


def test_mistakes_are_chosen_by_label_and_word(trained, examples, report):
    pipe = trained.get_pipe("sparse_crf")
    for label, word in (("ZZ", ""), ("NN", ""), ("", "PLAN"), ("VB", "plan"), ("", "nowhere")):
        found = find_mistakes(pipe, examples, label=label, word=word, most=1)
        wanted = [each for each in report.mistakes if not label or label in each.labels]
        wanted = [each for each in wanted if not word or word.lower() in each.words]
        assert (found.mistakes, found.n_mistakes) == (tuple(wanted[:1]), len(wanted))
        assert (found.scores, found.pairs) == (report.scores, report.pairs)
