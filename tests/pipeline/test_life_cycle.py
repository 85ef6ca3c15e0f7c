"""Operations on a component in any order: each succeeds, or is refused and changes nothing."""

import copy
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import spacy
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFError

from ..support.toy import pickled

TEMPLATES = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": ["b:", "u:lower[0]"]}
SOLVERS = [
    {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1", "inner_iterations": 1},
    {"@crf_solvers": "spacy_sparsecrf.SGDL1.v1"},
]
WORDS = ["a", "b", "c", "d", "e"]
LABELS = st.sampled_from(["A", "B", "C", "Ü"])
SENTENCES = st.lists(st.tuples(st.sampled_from(WORDS), LABELS), min_size=1, max_size=5)
CORPORA = st.lists(SENTENCES, min_size=1, max_size=3)
# Warnings of batches that differ from the initial examples, or have one example.
pytestmark = pytest.mark.filterwarnings("ignore:.*SCW2")


def blank(solver: dict[str, Any], named: bool = True) -> Language:
    nlp = spacy.blank("xx")
    if named:
        config = {"solver": solver, "features": TEMPLATES, "n_threads": 1, "l1": 0.01}
        nlp.add_pipe("sparse_crf", config=config)
    return nlp


class LifeCycle(RuleBasedStateMachine):
    """A component, with its expected labels, and whether it can continue learning."""

    @initialize(solver=st.sampled_from(SOLVERS))
    def begin(self, solver: dict[str, Any]) -> None:
        self.solver = solver
        self.nlp = blank(solver)
        self.labels: list[str] = []
        self.seen: set[str] = set()
        self.learns = self.resumed = False

    @property
    def pipe(self) -> Any:
        return self.nlp.get_pipe("sparse_crf")

    def refused(self, codes: str, do: Callable[[], object]) -> None:
        """Check that an operation is refused, and changes nothing."""
        before = self.pipe.to_bytes()
        with pytest.raises(SparseCRFError, match=codes):
            do()
        assert self.pipe.to_bytes() == before

    def examples(self, corpus: list[list[tuple[str, str]]]) -> list[Example]:
        made = []
        for sentence in corpus:
            words, tags = map(list, zip(*sentence, strict=True))
            reference = Doc(self.nlp.vocab, words=words, tags=tags)
            made.append(Example(Doc(self.nlp.vocab, words=words), reference))
        return made

    def predictions(self, nlp: Language) -> list[str]:
        return [token.tag_ for token in nlp(Doc(nlp.vocab, words=[*WORDS, *WORDS[::2]]))]

    def replace(self, nlp: Language, learns: bool = False) -> None:
        """Continue with another pipeline, which must be equal."""
        assert nlp.get_pipe("sparse_crf").label_data == tuple(self.labels)
        assert list(nlp.get_pipe("sparse_crf").dump()) == list(self.pipe.dump())
        if self.labels:
            assert self.predictions(nlp) == self.predictions(self.nlp)
        self.nlp, self.learns, self.resumed = nlp, learns, learns and self.resumed

    @rule(label=LABELS)
    def add_label(self, label: str) -> None:
        assert self.pipe.add_label(label) == int(label not in self.labels)
        if label not in self.labels:
            self.labels.append(label)

    @rule(label=st.sampled_from(["", None, 3]))
    def add_no_label(self, label: object) -> None:
        self.refused("SC212", lambda: self.pipe.add_label(label))

    @rule(corpus=CORPORA)
    def initialize(self, corpus: list[list[tuple[str, str]]]) -> None:
        examples = self.examples(corpus)
        self.nlp.initialize(lambda: examples)
        gold = {tag for sentence in corpus for _, tag in sentence}
        found = list(self.pipe.label_data)
        assert gold <= set(found) and set(self.labels) <= set(found)
        assert len(found) == len(set(found)) and set(found) == gold | set(self.labels)
        self.labels, self.learns, self.resumed = found, True, False
        self.seen = set(found)

    @rule()
    def initialize_without_examples(self) -> None:
        self.refused("SC217", lambda: self.pipe.initialize(lambda: [], nlp=self.nlp))

    @rule(corpus=CORPORA)
    def update(self, corpus: list[list[tuple[str, str]]]) -> None:
        examples = self.examples(corpus)
        gold = {tag for sentence in corpus for _, tag in sentence}

        def do() -> None:
            losses = self.pipe.update(examples)
            self.pipe.finish_update(None)
            assert np.isfinite(losses["sparse_crf"])

        if not self.learns and not self.pipe.model.n_active:
            self.refused("SC202", do)
            return
        if not self.learns:  # without a corpus
            self.seen = set(self.labels)
        resumed = self.resumed or not self.learns
        if resumed and gold - self.seen:
            self.refused("SC206|SC3", do)
            return
        do()
        self.learns, self.resumed = True, resumed
        # With a corpus, examples that it does not have are ignored; without one, labels are known.
        assert list(self.pipe.label_data) == self.labels

    @rule()
    def predict(self) -> None:
        if not self.labels:
            self.refused("SC201", lambda: self.predictions(self.nlp))
            return
        found = self.predictions(self.nlp)
        assert set(found) <= set(self.labels) and self.predictions(self.nlp) == found

    @rule()
    def to_bytes(self) -> None:
        nlp = blank(self.solver)
        self.replace(nlp.from_bytes(self.nlp.to_bytes()))

    @rule()
    def to_disk(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.nlp.to_disk(folder)
            self.replace(spacy.load(folder))

    @rule(damage=st.integers(0, 10_000))
    def from_damaged_bytes(self, damage: int) -> None:
        data = bytearray(self.pipe.model.to_bytes())
        data[damage % len(data)] ^= 1
        self.refused("SC3", lambda: copy.deepcopy(self.pipe.model).from_bytes(bytes(data)))

    @rule(word=st.sampled_from(WORDS), weight=st.floats(-5, 5, width=32), label=LABELS)
    def patch(self, word: str, weight: float, label: str) -> None:
        lines = [f"u\tlower[0]={word}\t#\t{label}\t{weight!r}"]
        if label not in self.labels:
            self.refused("SC603", lambda: self.pipe.patch(lines))
            return
        assert self.pipe.patch(lines) == 1
        told = [line for line in self.pipe.dump() if line.startswith(lines[0].rpartition("\t")[0])]
        found = [np.float32(line.rpartition("\t")[2]) for line in told]
        assert found == ([np.float32(weight)] if weight else [])

    @rule()
    def source(self) -> None:
        nlp = blank(self.solver, named=False)
        nlp.add_pipe("sparse_crf", source=self.nlp)
        self.replace(nlp, self.learns)

    @rule(copied=st.sampled_from([copy.copy, copy.deepcopy, pickled]))
    def copy(self, copied: Callable[[Any], Any]) -> None:
        other = copied(self.pipe)
        assert other.label_data == self.pipe.label_data
        assert list(other.dump()) == list(self.pipe.dump())
        assert other.to_bytes(exclude=["vocab"]) == self.pipe.to_bytes(exclude=["vocab"])

    @invariant()
    def labels_are_those_of_the_model(self) -> None:
        if hasattr(self, "nlp"):
            assert list(self.pipe.label_data) == self.labels
            assert tuple(self.pipe.labels) == tuple(self.labels)


# Shrinking a failing case takes minutes.
PHASES = [Phase.explicit, Phase.generate]
LifeCycle.TestCase.settings = settings(max_examples=6, stateful_step_count=20, phases=PHASES)
TestLifeCycle = LifeCycle.TestCase


@pytest.mark.slow
def test_any_order_for_longer():
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        LifeCycle, settings=settings(max_examples=400, stateful_step_count=50)
    )
