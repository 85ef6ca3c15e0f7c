"""A solver that is gone: what it trained is loaded and predicts, but is not trained again."""

from pathlib import Path

import pytest
import spacy
from confection import Config

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.solvers.newton.orthant_newton import OrthantNewton
from spacy_sparsecrf.training.training import Training

from ..reference import random_problem
from ..toy import examples_of

# As the config of a pipeline has it that was saved when the solver was there.
SOLVER = {
    "@crf_solvers": "spacy_sparsecrf.OrthantNewton.v1",
    "stored": -1,
    "xi": 0.1,
    "max_cg": 50,
    "max_line_search": 5,
    "tolerance": 0.001,
    "window": 1e-05,
    "inner_iterations": 5,
    "warm_start_epochs": 6,
    "seed": 0,
    "polish_iterations": 0,
    "polish_l2": 1e-05,
}


SENTENCES = [
    (["the", "plan", "fails"], ["DT", "NN", "VB"]),
    (["plan", "the", "trip"], ["VB", "DT", "NN"]),
    (["a", "trip"], ["DT", "NN"]),
]


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Path, list[str]]:
    """A stored pipeline whose config names the solver, and what it predicted."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", config={"n_threads": 1, "l1": 0.1})
    examples = examples_of(nlp, SENTENCES)
    nlp.initialize(lambda: examples)
    for _ in range(5):
        nlp.update(examples)
    nlp.to_disk(tmp_path / "saved")
    path = tmp_path / "saved" / "config.cfg"
    config = Config().from_disk(path, interpolate=False)
    config["components"]["sparse_crf"]["solver"] = SOLVER
    config.to_disk(path)
    return path.parent, [token.tag_ for token in nlp("the plan fails a trip")]


def test_what_it_trained_is_loaded_and_predicts(stored, tmp_path: Path):
    path, predicted = stored
    nlp = spacy.load(path)
    assert isinstance(nlp.get_pipe("sparse_crf").solver, OrthantNewton)
    assert [token.tag_ for token in nlp("the plan fails a trip")] == predicted
    nlp.to_disk(tmp_path / "again")
    again = spacy.load(tmp_path / "again")
    assert again.config["components"]["sparse_crf"]["solver"] == SOLVER
    assert [token.tag_ for token in again("the plan fails a trip")] == predicted


def test_what_it_trained_is_not_trained_again(stored):
    nlp = spacy.load(stored[0])
    with pytest.raises(SparseCRFError, match=r"SC396.*OrthantNewton.*OWLQN\.v1.*NewtonCG\.v1"):
        nlp.initialize(lambda: examples_of(nlp, SENTENCES))


@pytest.mark.parametrize("l1", [0.5, 0.0])
def test_a_run_refuses_it(l1):
    problem, _ = random_problem(89, 3, [6, 4])
    with pytest.raises(SparseCRFError, match="SC396"):
        Training(problem.corpus, list("abc"), OrthantNewton(), l1=l1, l2=1.0)
