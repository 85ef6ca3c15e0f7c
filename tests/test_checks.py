"""Checks of parts: our parts pass, and faulty parts are detected."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.crf.corpus.encoded import Observations
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.perceptron import AveragedPerceptron
from spacy_sparsecrf.crf.solvers.sag.sag import SAG
from spacy_sparsecrf.crf.solvers.sgd import SGD
from spacy_sparsecrf.crf.solvers.solver import StepReport
from spacy_sparsecrf.interop.patterns.pattern_featurizer import CRFPPTemplates, WapitiPatterns
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.pipeline.targets.entities import Entities
from spacy_sparsecrf.pipeline.targets.token_attribute import TokenAttribute, make_token_attribute

from .support.checks import check_features, check_loss, check_solver, check_target
from .support.feature_cases import EVERY_TEMPLATE
from .support.minimisers import ALL_SOLVERS, STOCHASTIC

SOLVERS = {name: make() for name, make in ALL_SOLVERS.items()}
SOLVERS |= {name: solver for name, (solver, _) in STOCHASTIC.items()}
SOLVERS |= {"perceptron": AveragedPerceptron()}
SOLVERS |= {f"sag-{sampling}": SAG(sampling=sampling) for sampling in ("uniform", "nus")}
NLP = spacy.blank("xx")
TAGGED = [
    Doc(NLP.vocab, words=["a", "dog", "runs"], tags=["DT", "NN", "VB"]),
    Doc(NLP.vocab, words=["it", "rains"], tags=["NN", "VB"]),
]


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers(name):
    check_solver(SOLVERS[name])


@pytest.mark.parametrize("options", [{}, {"templates": EVERY_TEMPLATE}, {"start_label": False}])
def test_templates_and_patterns(options):
    check_features(Featurizer(**options))
    for make in (WapitiPatterns, CRFPPTemplates):
        check_features(make(text="U01:%x[-1,0]/%x[0,0]\nB"), TAGGED)


@pytest.mark.usefixtures("own_extensions")
@pytest.mark.parametrize("attr", ["tag", "pos", "morph", "_.role"])
def test_attributes_of_tokens(attr):
    docs = [Doc(NLP.vocab, words=["a", "dog", "runs"]), Doc(NLP.vocab, words=["it", "rains"])]
    target, labels = make_token_attribute(attr), ["DET", "NOUN", "VERB"]
    if attr == "morph":
        labels = ["Case=Nom|Number=Sing", "_", "Tense=Past"]
    for doc, row in zip(docs, ([0, 1, 2], [1, 2]), strict=True):
        target.write([doc], [np.array(row, np.int32)], labels, overwrite=False)
    check_target(target, docs)


TEMPLATES = Featurizer(["b:", "u:lower[0]"])


def changing(docs: Sequence[Doc], sequences: str) -> Observations:
    for doc in docs:
        doc.user_data["seen"] = True
    return TEMPLATES(docs, sequences)


def with_numbers(docs: Sequence[Doc], sequences: str) -> Observations:
    """Return features that depend on the other Docs."""
    found = TEMPLATES(docs, sequences)
    found.hashes[-1:] += np.uint64(len(docs))
    return found


def by_vocab(docs: Sequence[Doc], sequences: str) -> Observations:
    found = TEMPLATES(docs, sequences)
    return replace(found, hashes=found.hashes + np.uint64(len(docs) and id(docs[0].vocab)))


def signed(docs: Sequence[Doc], sequences: str) -> Observations:
    found = TEMPLATES(docs, sequences)
    return replace(found, unigram_columns=found.unigram_columns - np.int32(5))


def uncut(docs: Sequence[Doc], sequences: str) -> Observations:
    return TEMPLATES(docs, "docs")


FAULTS: dict[Any, str] = {changing: "it changes Docs", with_numbers: "Docs change each other"}
FAULTS |= {by_vocab: "another vocab", signed: "columns are not distinct int32"}
FAULTS |= {uncut: "sequences = 'words'"}


@pytest.mark.parametrize(("features", "fact"), FAULTS.items())
def test_features_with_a_fault(features, fact):
    with pytest.raises(AssertionError, match=fact):
        check_features(features, TAGGED)


class Swapped(TokenAttribute):
    """A target that writes labels other than the given ones."""

    def write(self, docs: Any, label_ids: Any, labels: Any, **named: Any) -> None:
        super().write(docs, label_ids, labels[::-1], **named)


class Late(TokenAttribute):
    """A target that allows no label at the start."""

    def valid_transitions(self, labels: Sequence[str]) -> np.ndarray:
        mask = np.ones((len(labels) + 1, len(labels) + 1), np.bool_)
        mask[-1] = False
        return mask


class Short(TokenAttribute):
    def gold(self, example: Example) -> list[Any]:
        return super().gold(example)[1:]


@pytest.mark.parametrize(
    ("target", "fact"),
    [
        (Swapped(), "what it writes is not what it reads"),
        (Late(), "gold labels .'DT', 'NN', 'VB'. are not valid"),
        (Short(), "gold is not as long"),
        (Entities(), "references must have gold labels"),
    ],
)
def test_targets_with_a_fault(target, fact):
    with pytest.raises(AssertionError, match=fact):
        check_target(target, TAGGED)


class Careless(OWLQN):
    def __post_init__(self) -> None:
        """Skip the checks of settings that all solvers have."""


class Hasty(OWLQN):
    def step(self, loss: Any, penalty: ElasticNet, state: Any) -> StepReport:
        return replace(super().step(loss, penalty, state), optimality=0.0)


class Forgetful(OWLQN):
    n_steps = 0

    def step(self, loss: Any, penalty: ElasticNet, state: Any) -> StepReport:
        self.n_steps += 1
        return replace(super().step(loss, penalty, state), passes=float(self.n_steps))


class Drifting(OWLQN):
    def remap(self, *given: Any) -> Any:
        state = super().remap(*given)
        return replace(state, theta=state.theta + 0.1)


class Boasting(SGD):
    def step(self, loss: Any, penalty: ElasticNet, state: Any) -> StepReport:
        super().step(loss, penalty, state)
        state.value *= 0.9
        return self.report(penalty, state)


@pytest.mark.parametrize(
    ("solver", "fact"),
    [
        (Careless(), "it takes tolerance = -1.0"),
        (Drifting(), "another working set changes its weights"),
        (Boasting(), "it reports an objective of"),
        (Hasty(inner_iterations=1), "its minimum is .*, that of OWL-QN"),
        (Forgetful(inner_iterations=1), "threads change it"),
    ],
)
def test_solvers_with_a_fault(solver, fact):
    with pytest.raises(AssertionError, match=fact):
        check_solver(solver)


class Sloping:
    """A loss theta^2 that returns a multiple of its gradient."""

    def __init__(self, factor: float, moves: bool = False) -> None:
        self.factor, self.moves = factor, moves

    def value_and_grad(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        if self.moves:
            theta += 1.0
        return float(theta @ theta), self.factor * theta


def test_losses_with_a_fault():
    theta = np.array([1.0, -2.0])
    check_loss(Sloping(2.0), theta)
    for loss, fact in (
        (Sloping(1.0), "not the slope"),
        (Sloping(2.0, True), "changes the weights"),
    ):
        with pytest.raises(AssertionError, match=fact):
            check_loss(loss, theta)
    with pytest.raises(AssertionError, match="not finite"):
        check_loss(Sloping(2.0), theta * np.inf)
