"""Training in stages: problems of stages, certificates, and resumption."""

import numpy as np
import pytest

from spacy_sparsecrf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.corpus.schedule import FeatureAncestry, Stage, TemplateTree
from spacy_sparsecrf.loss.chain import ChainLoss, places_of
from spacy_sparsecrf.model.coordinates import coordinates_of as by_names
from spacy_sparsecrf.model.model import WeightNames
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.base import optimality
from spacy_sparsecrf.solvers.bcd.bcd import BCD
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training.stages import InTurn, Trainer

from ..features.reference_values import random_value_problem
from ..reference import Problem, random_problem
from ..runs import training_of
from .learning_cases import admitted_alone

PENALTY = {"l1": 0.3, "l2": 0.1, "n_threads": 1, "dtype": "float64"}
LABELS = list("abc")
LENGTHS = [9, 8, 10, 3] * 5


def make_problem(seed=50, **options) -> tuple[Problem, Observations]:
    options = {"n_unigram": 3, "n_bigram": 3, "n_values": 5} | options
    return random_problem(seed, 3, LENGTHS, **options)


def make_kin(observations: Observations, corpus) -> TemplateTree:
    """Return a tree: columns 1 and 4 are of stage 1, with columns 0 and 3 as parents if present;
    column 2 is of stage 2, with columns 0 and 1 as parents.
    """
    descents = []
    for column, stage, parents in ((1, 1, [0]), (4, 1, [3]), (2, 2, [0, 1])):
        hashes, first = np.unique(observations.hashes[:, column], return_index=True)
        kept = hashes != 0
        of_tests = observations.hashes[first[kept]][:, parents]
        descents.append(FeatureAncestry(stage, "u" if column < 3 else "b", hashes[kept], of_tests))
    return TemplateTree.of(corpus, descents)


def make_run(
    require="all", steps=(0, 0, 0), solver=None, problem=None, admit="features", **options
):
    found, observations = make_problem() if problem is None else problem
    reports: list[tuple[int, ...]] = []
    solver = OWLQN(inner_iterations=2, tolerance=1e-7, window=0.0) if solver is None else solver
    kin = make_kin(observations, found.corpus)
    own = {"make": InTurn, "tree": kin, "report": lambda *report: reports.append(report)}
    own |= {**PENALTY, **options}
    own["stages"] = [Stage(("*",), n, require, admit) for n in steps]
    return training_of(found.corpus, LABELS, solver, **own), kin, reports


def finish(run: Trainer, n: int = 300) -> Trainer:
    for _ in range(n):
        if run.step().converged:
            return run
    raise AssertionError(f"not converged in {n} outer iterations")


def finish_stage(run: InTurn) -> None:
    run.step()
    while not run._is_over:
        run.step()


def weights_of(run: Trainer, corpus: EncodedCorpus) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates in the whole corpus and values of a run's weights."""
    keys, model = (corpus.unigram_keys, corpus.bigram_keys), run.model()
    names = WeightNames(*keys, tuple(LABELS), (), corpus.start_label, model.kind)
    coordinates, values = by_names(names, model)
    order = np.argsort(coordinates)
    return coordinates[order], values[order]


def with_weights(run: Trainer, corpus) -> np.ndarray:
    """Return a mask of features [U + B] that have weights, weight by weight."""
    n, n_unigram = len(LABELS), len(corpus.unigram_keys)
    n_pairs = n * (n + int(corpus.start_label))
    active = np.zeros(n_unigram + len(corpus.bigram_keys), np.bool_)
    for c in weights_of(run, corpus)[0].tolist():
        base = n_unigram * n
        active[c // n if c < base else n_unigram + (c - base) // n_pairs] = True
    return active


@pytest.mark.parametrize(
    ("solver", "kind"), [(OWLQN, "chain"), (BCD, "chain"), (BCD, "memm"), (OWLQN, "maxent")]
)
@pytest.mark.filterwarnings("ignore:.*SCW340")
def test_with_everything_admitted_the_end_is_the_minimiser_of_the_full_problem(solver, kind):
    problem, _ = made = make_problem()
    both = [solver(tolerance=1e-7, window=0.0) for _ in range(2)]
    run, _, reports = make_run("none", (1, 2, 0), both[0], made, kind=kind)
    finish(run)
    full = finish(training_of(problem.corpus, LABELS, both[1], kind=kind, **PENALTY))
    # If rounding ends progress (SCW340), a solver stops just above its tolerance.
    assert run.report.optimality <= 2e-7
    assert run.objective == pytest.approx(full.objective, rel=1e-10)
    own, others = (weights_of(each, problem.corpus) for each in (run, full))
    np.testing.assert_array_equal(own[0], others[0])
    np.testing.assert_allclose(own[1], others[1], atol=1e-5)
    assert [(number, of) for number, of, *_ in reports] == [(1, 3), (2, 3), (3, 3)]
    assert full.n_potential == reports[-1][2]


@pytest.mark.parametrize("admit", ["features", "labels"])
def test_real_values_enter_in_stages(admit):
    options = {"n_unigram": 3, "n_bigram": 3, "n_values": 5, "n_real": 3}
    problem, observations = random_value_problem(54, 3, LENGTHS, **options)
    corpus = problem.corpus
    # The second and third; the third's parent is absent, so that the third never enters.
    keys, unknown = observations.value_keys[1:], np.array([[7]], np.uint64)
    none = np.empty((1, 0), np.uint64)
    pairs = ((keys[:1], none), (keys[1:], unknown))
    kin = TemplateTree.of(corpus, [FeatureAncestry(1, "u", *pair) for pair in pairs])
    solver = OWLQN(inner_iterations=5, tolerance=1e-7, window=0.0)
    own = {"tree": kin, "stages": [Stage(("*",), n, "all", admit) for n in (1, 0)]}
    run = finish(training_of(corpus, LABELS, solver, make=InTurn, **own, **PENALTY))
    admitted = np.ones(len(kin.stage), np.bool_)
    admitted[corpus.value_features[2]] = False
    alone = training_of(admitted_alone(corpus, admitted), LABELS, solver, **PENALTY)
    assert run.objective == pytest.approx(finish(alone).objective, rel=1e-10)
    assert with_weights(run, corpus)[corpus.value_features].tolist() == [True, True, False]


@pytest.mark.parametrize("require", ["all", "any"])
def test_a_stage_ends_at_the_minimiser_of_the_problem_of_its_tests(require):
    problem, _ = made = make_problem()
    run, kin, reports = make_run(require, problem=made, l1=2.0)
    corpus, admitted = problem.corpus, kin.stage == 0
    active = np.zeros(len(admitted), np.bool_)
    for stage in range(3):
        if stage:
            own, more = kin.admitted(stage, require, np.flatnonzero(active), 1)
            admitted |= own
            admitted[more] = True
        n_active = len(weights_of(run, corpus)[0])
        finish_stage(run)
        active = with_weights(run, corpus)
        assert not (active & ~admitted).any()
        n_admitted = admitted_alone(corpus, admitted).n_potential(3)
        assert reports[-1] == (stage + 1, 3, n_admitted, n_active)
        solver = OWLQN(tolerance=1e-7, window=0.0)
        alone = training_of(
            admitted_alone(corpus, admitted), LABELS, solver, **(PENALTY | {"l1": 2.0})
        )
        assert run.objective == pytest.approx(finish(alone).objective, rel=1e-10)
        # The whole problem has the same loss at these weights, by the names of features.
        there = training_of(corpus, LABELS, OWLQN(), init=run.model(), **(PENALTY | {"l1": 2.0}))
        assert there.objective == pytest.approx(run.objective, rel=1e-12)
    assert run.converged
    # Otherwise the test would be trivial.
    assert 0 < admitted.sum() < len(admitted)
    assert active[kin.stage > 0].any()


def test_steps_end_a_stage_and_the_last_stage_ends_the_run():
    run, _, reports = make_run("any", (2, 1, 3))
    steps = [(run.step().end, reports[-1][0]) for _ in range(6)]
    assert steps == list(zip([""] * 5 + ["no steps left"], [1, 1, 2, 3, 3, 3], strict=True))
    assert len(reports) == 3


def test_tests_of_initial_weights_are_admitted_from_the_start():
    problem, _ = made = make_problem()
    full = finish(training_of(problem.corpus, LABELS, OWLQN(), **PENALTY))
    run, kin, reports = make_run("all", problem=made, init=full.model())
    assert run.objective == pytest.approx(full.objective, rel=1e-9)
    run.step()
    known, first = with_weights(full, problem.corpus), kin.stage == 0
    sizes = [admitted_alone(problem.corpus, x).n_potential(3) for x in (known | first, first)]
    assert reports[0][2] == sizes[0] > sizes[1]


def slow_labels(kin: TemplateTree, stage: int, require: str, active: set[tuple[int, int]]) -> set:
    """Return the admitted pairs (feature, label) of a stage; label None for all labels."""
    found = set()
    blocks = active | {(int(kin.counterpart[test]), label) for test, label in active}
    # Remove the id that represents no feature.
    blocks -= {(len(kin.stage), label) for label in range(3)}
    for test in np.flatnonzero(kin.stage == stage).tolist():
        parents = kin.parents[kin.parent_ptr[test] : kin.parent_ptr[test + 1]].tolist()
        if require == "none" or not parents:
            found.add((test, None))
            continue
        enough = {"all": all, "any": any}[require]
        found |= {(test, y) for y in range(3) if enough((p, y) in blocks for p in parents)}
    return found


def coordinates_of(pairs: set, corpus) -> np.ndarray:
    """Return the coordinates of weights of pairs (feature, label); None for all labels."""
    n, n_unigram = 3, len(corpus.unigram_keys)
    n_previous, found = n + int(corpus.start_label), []
    for test, y in pairs:
        for label in range(n) if y is None else [y]:
            if test < n_unigram:
                found.append(test * n + label)
                continue
            first = n_unigram * n + (test - n_unigram) * n_previous * n
            found += [first + previous * n + label for previous in range(n_previous)]
    return np.array(sorted(set(found)))


@pytest.mark.parametrize("solver", [OWLQN, BCD])
@pytest.mark.parametrize("require", ["all", "any"])
@pytest.mark.parametrize("observed_only", [False, True])
def test_a_stage_of_labels_ends_at_the_minimiser_of_its_weights(solver, require, observed_only):
    problem, _ = made = make_problem()
    corpus, l1 = problem.corpus, 1.5
    run, kin, reports = make_run(
        require,
        solver=solver(tolerance=1e-7, window=0.0),
        problem=made,
        l1=l1,
        admit="labels",
        observed_only=observed_only,
    )
    loss = ChainLoss(corpus, 3, Workers(1))
    pairs = {(test, None) for test in np.flatnonzero(kin.stage == 0).tolist()}
    for stage in range(3):
        if stage:
            there = weights_of(run, corpus)[0]
            tests = places_of(there, len(corpus.unigram_keys), corpus.widths(3))[0]
            active = set(zip(tests.tolist(), (there % 3).tolist(), strict=True))
            pairs |= slow_labels(kin, stage, require, active)
        finish_stage(run)
        own = coordinates_of(pairs, corpus)
        if observed_only:
            own = np.intersect1d(own, loss.observed_coordinates())
        else:
            assert reports[-1][2] == len(own)
        assert np.isin(weights_of(run, corpus)[0], own).all()
        # The same minimum, on only these weights and without screening.
        working, penalty = loss.restrict(own), ElasticNet(l1, 0.1)
        alone = OWLQN(tolerance=1e-6)
        state = alone.start(working, penalty, np.zeros(len(own)))
        for _ in range(500):
            if alone.step(working, penalty, state).converged:
                break
        assert optimality(penalty, state.theta, state.gradient) <= 1e-5
        assert run.objective == pytest.approx(state.value, rel=1e-10)
    assert {y for _, y in pairs} == {None, 0, 1, 2}
    assert len(own) < corpus.n_potential(3)
