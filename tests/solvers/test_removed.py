"""A removed solver: its models load and predict, but cannot be retrained with it."""

from pathlib import Path

import pytest
import spacy
from confection import Config

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.solvers.newton.orthant_newton import OrthantNewton
from spacy_sparsecrf.training.training import Training

from ..conftest import Corpus
from ..reference import random_problem
from ..toy import docs_of, examples_of, tags_of

# Settings in the config of a pipeline that was saved before the removal.
SOLVER = {"@crf_solvers": "spacy_sparsecrf.OrthantNewton.v1", "stored": -1, "xi": 0.1, "max_cg": 50}
SOLVER |= {"max_line_search": 5, "tolerance": 0.001, "window": 1e-05, "inner_iterations": 5}
SOLVER |= {"warm_start_epochs": 6, "seed": 0, "polish_iterations": 0, "polish_l2": 1e-05}


def test_what_it_trained_predicts_and_is_not_trained_again(
    trained_dir: Path, corpus: Corpus, tmp_path: Path
):
    plain = spacy.load(trained_dir)
    expected = tags_of(list(plain.pipe(docs_of(plain, corpus.dev))))
    plain.to_disk(tmp_path / "saved")
    config = Config().from_disk(tmp_path / "saved" / "config.cfg", interpolate=False)
    config["components"]["sparse_crf"]["solver"] = SOLVER
    config.to_disk(tmp_path / "saved" / "config.cfg")
    for source, target in ("saved", "again"), ("again", "last"):
        nlp = spacy.load(tmp_path / source)
        assert isinstance(nlp.get_pipe("sparse_crf").solver, OrthantNewton)
        solver = nlp.config["components"]["sparse_crf"]["solver"]
        assert solver == SOLVER | {"tolerance_gap": 0.0}
        assert tags_of(list(nlp.pipe(docs_of(nlp, corpus.dev)))) == expected
        nlp.to_disk(tmp_path / target)
    with pytest.raises(SparseCRFError, match=r"SC396.*OrthantNewton.*OWLQN\.v1.*NewtonCG\.v1"):
        nlp.initialize(lambda: examples_of(nlp, corpus.train))


@pytest.mark.parametrize("l1", [0.5, 0.0])
def test_a_run_refuses_it(l1):
    problem, _ = random_problem(89, 3, [6, 4])
    with pytest.raises(SparseCRFError, match="SC396"):
        Training(problem.corpus, list("abc"), OrthantNewton(), l1=l1, l2=1.0)
