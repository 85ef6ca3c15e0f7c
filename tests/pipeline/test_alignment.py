"""Gold labels lost by alignment are counted; more than one in a hundred raise a warning."""

from typing import Any

import pytest
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.pipeline.data_checks import AlignmentCount
from spacy_sparsecrf.targets.base import Target
from spacy_sparsecrf.targets.entities import Entities
from spacy_sparsecrf.targets.spans import SpanGroups
from spacy_sparsecrf.targets.token_attribute import TokenAttribute

from ..conftest import Corpus
from ..toy import blank_with, examples_of

CUT = {"words": ["a", "bc", "d"], "spaces": [False, True, True]}
GOLD = {"words": ["ab", "c", "d"], "spaces": [False, True, True]}


def reference(nlp: Language, **annotation: Any) -> Doc:
    doc = Doc(nlp.vocab, **GOLD, **annotation)
    doc.spans["sc"] = [Span(doc, 0, 2, label="X")]
    return doc


def counted(example: Example, target: Target) -> AlignmentCount:
    count = AlignmentCount()
    count.add(example, target.gold(example), target)
    return count


@pytest.mark.parametrize(
    ("target", "annotation", "n_gold", "n_lost", "word"),
    [
        (TokenAttribute("tag"), {"tags": ["X", "Y", "Z"]}, 3, 1, "c"),
        (TokenAttribute("tag"), {"tags": ["X", "", "Z"]}, 2, 0, ""),
        (TokenAttribute("tag"), {}, 0, 0, ""),
        (TokenAttribute("tag", "|"), {"tags": ["X", "Y|X", ""]}, 2, 1, "c"),
        (Entities(), {"ents": ["O", "B-X", "O"]}, 3, 1, "c"),
        (SpanGroups(), {}, 3, 0, ""),
    ],
)
def test_labels_that_no_predicted_token_has(
    nlp: Language, target: Target, annotation: Any, n_gold: int, n_lost: int, word: str
):
    gold = reference(nlp, **annotation)
    count = counted(Example(Doc(nlp.vocab, **CUT), gold), target)
    assert (count.n_gold, count.n_lost, count.word) == (n_gold, n_lost, word)
    assert count.share == (n_lost / n_gold if n_gold else 0)
    assert counted(Example(Doc(nlp.vocab, **GOLD), gold), target).n_lost == 0


@pytest.mark.filterwarnings("ignore:.*SCW220")
@pytest.mark.parametrize(("n", "warns"), [(1, False), (60, True)])
def test_training_warns_above_one_in_a_hundred(corpus: Corpus, n: int, warns: bool):
    nlp = blank_with()
    examples = examples_of(nlp, corpus.train)
    n_gold = sum(len(words) for words, _ in corpus.train)
    for _ in range(n):
        gold = Doc(nlp.vocab, **GOLD, tags=["NN", "VB", "NN"])
        examples.append(Example(Doc(nlp.vocab, **CUT), gold))
        n_gold += 3
    if not warns:
        nlp.initialize(lambda: examples)
        return
    match = rf"SCW208.*'sparse_crf': {n} of {n_gold} gold labels \(.*%\).*'c'.*begins 'abc d"
    with pytest.warns(SparseCRFWarning, match=match):
        nlp.initialize(lambda: examples)
