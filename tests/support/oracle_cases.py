"""Runs on the corpus whose minima were found by independent programs; each runs once."""

from functools import cache

import numpy as np

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.solver import StepReport
from spacy_sparsecrf.crf.training.training import Training

from .data import ORACLE, crfpp_observations, read_columns, read_oracle
from .runs import training_of


@cache
def oracle_observations() -> Observations:
    oracle = read_oracle()
    return crfpp_observations(read_columns(ORACLE / oracle["data"]), oracle["template"])


@cache
def oracle_corpus() -> EncodedCorpus:
    oracle = read_oracle()
    column, names = oracle["label_column"], oracle["labels"]
    tokens = [token for sentence in read_columns(ORACLE / oracle["data"]) for token in sentence]
    builder = CorpusBuilder()
    gold = [names.index(token[column]) for token in tokens]
    builder.add(oracle_observations(), np.array(gold, dtype=np.int32))
    return builder.build()


@cache
def oracle_run(case: str, n_steps: int) -> tuple[Training, list[StepReport]]:
    """Return a run, converged or after `n_steps` outer iterations, and its reports."""
    oracle = read_oracle()
    penalty = oracle["cases"][case]
    solver = OWLQN(tolerance=1e-5 if case == "l2" else 1e-4, window=0.0)
    options = {"l1": penalty["rho1"], "l2": penalty["rho2"], "dtype": "float64"}
    training = training_of(oracle_corpus(), oracle["labels"], solver, **options)
    reports: list[StepReport] = []
    while len(reports) < n_steps and not (reports and reports[-1].converged):
        reports.append(training.step())
    return training, reports


def oracle_training(case: str, n_steps: int) -> Training:
    return oracle_run(case, n_steps)[0]
