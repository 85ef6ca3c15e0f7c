"""Partly annotated entities: sampled negatives, and the expected ratio."""

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.reader import with_negatives
from spacy_sparsecrf.targets.entities import Entities
from spacy_sparsecrf.targets.spans import SpanGroups

# In these tests, most tokens have no gold label.
pytestmark = pytest.mark.filterwarnings("ignore:.*SCW201")

WORDS = [f"w{i}" for i in range(200)]


def pipeline(factory: str = "sparse_crf_ner", solver: str = "OWLQN", **learning) -> Language:
    own = {"@crf_solvers": f"spacy_sparsecrf.{solver}.v1"}
    config = {"n_threads": 1, "l1": 0.1, "solver": own, "learning": learning}
    nlp = spacy.blank("en")
    nlp.add_pipe(factory, name="names", config=config)
    return nlp


def partial(nlp: Language, words=WORDS, starts=(3, 50), predicted=None) -> Example:
    """Return an Example with entities of two words at `starts`; other tokens are unannotated."""
    reference = Doc(nlp.vocab, words=words)
    entities = [Span(reference, i, i + 2, label="X") for i in starts]
    reference.set_ents(entities, default="missing")
    return Example(Doc(nlp.vocab, words=predicted or words), reference)


def sampled(example: Example, rate: float, seed: int = 0) -> list[str | None]:
    target = Entities()
    return list(with_negatives(target.gold(example), example, target, rate, seed))


def test_a_share_of_what_is_open_is_outside():
    nlp = spacy.blank("en")
    example = partial(nlp)
    gold = Entities().gold(example)
    found = {rate: sampled(example, rate) for rate in (0.0, 0.1, 0.5, 1.0)}
    assert found[0.0] == gold
    for labels in found.values():
        assert [a for a, b in zip(labels, gold, strict=True) if b] == [x for x in gold if x]
    counts = {rate: labels.count("O") for rate, labels in found.items()}
    assert counts[1.0] == len(WORDS) - 4
    assert 8 <= counts[0.1] <= 32 and 70 <= counts[0.5] <= 126
    # A higher rate includes the negatives of a lower rate.
    assert all(b == "O" for a, b in zip(found[0.1], found[0.5], strict=True) if a == "O")
    assert sampled(example, 0.5) == found[0.5] != sampled(example, 0.5, seed=1)


def test_docs_that_are_annotated_throughout_or_not_at_all_are_left_alone():
    nlp = spacy.blank("en")
    nothing, everything = partial(nlp, starts=()), partial(nlp)
    everything.reference.set_ents(list(everything.reference.ents), default="outside")
    for example in (nothing, everything):
        assert Entities().unknown(example) is None
        assert sampled(example, 1.0) == Entities().gold(example)
    assert SpanGroups().unknown(nothing) is None
    quiet = pipeline(negative_rate=1.0)
    quiet.initialize(lambda: [partial(quiet, starts=())])
    with pytest.raises(SparseCRFError, match="SC203"):
        quiet.update([partial(quiet, starts=())])


def test_labels_that_alignment_loses_are_no_negatives():
    nlp = spacy.blank("en")
    # Predicted tokens split the entity differently, so that no part has a label.
    words, predicted = ["a", "bc", "de", "f", "g"], ["a", "b", "cd", "e", "f", "g"]
    reference = Doc(nlp.vocab, words=words, spaces=[True, False, True, True, False])
    reference.set_ents([Span(reference, 1, 2, label="X")], default="missing")
    spaces = [True, False, False, True, True, False]
    example = Example(Doc(nlp.vocab, words=predicted, spaces=spaces), reference)
    unknown = Entities().unknown(example)
    assert unknown is not None and unknown.tolist() == [True, False, False, True, True, True]
    assert sampled(example, 1.0)[1:3] == [None, None]
