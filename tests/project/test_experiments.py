"""The papers' experiments: statistics, data and claims that are easily wrong."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import study.report
from lattices import pictures
from lattices import report as lattice_report
from lavergne import experiments
from lavergne import report as tables
from lavergne import run as lavergne
from measure.data import Problem, Scored
from measure.document import read_published
from measure.race import Course
from measure.results import Results, read_rows
from study import contestants, race

from spacy_sparsecrf.penalty import ElasticNet

from ..reference import random_problem
from ..solvers.in_use import SOLVERS_IN_USE
from .toy_data import PROJECT, WORDS, write_letters

# Lavergne et al. (2010)


def test_the_published_report_is_of_the_kept_figures() -> None:
    known = tables.read_kept(PROJECT)
    assert list(known) == [name for name in experiments.EXPERIMENTS if name in known]
    published = read_published(PROJECT / "LAVERGNE.md")
    text = tables.render(known, published, trial=False)
    assert text == (PROJECT / "LAVERGNE.md").read_text(encoding="utf-8")


def test_unknown_figures_leave_cells_empty_and_folds_have_means() -> None:
    names = experiments.EXPERIMENTS
    known = {name: tables.with_paper({"name": name, "test": 8.25}) for name in names}
    for fold, error in ((0, 8.0), (1, 8.2), (9, 8.4)):
        known[f"phonemes-7grm-owlqn-fold{fold}"]["test"] = error
    for fold in range(2, 9):
        del known[f"phonemes-7grm-owlqn-fold{fold}"]
    known["phonemes-1grm-owlqn-l2=0.3"] |= {"dev": 7.0, "test": 17.5}
    known |= {n: {**r, "dev": 9.0} for n, r in known.items() if "-l2=" in n and "dev" not in r}
    (text,) = tables.methods(known)
    assert f"| 5-grm+, OWL-QN |  | 8.25 | 7.89 |{'  |' * 5} 43,429 |  |  |  | 97 |" in text
    (text,) = tables.folds(known)
    row = "| 8.20 | 0.20 | 3 | 8.12 | 8.00 | 8.20 |  |  |  |  |  |  |  | 8.40 |  |"
    assert f"| 7-grm, at the stop {row}" in text and "best dev" not in text
    assert "| 1-grm | 17.50 (l2 = 0.3) | 17.81 | 8.25 | 17.86 |" in tables.penalties(known)[0]
    one = {"name": "phonemes-5grm+-owlqn", "best_test_part": 7.9, "cpu": 599.0, "peak_mb": 700.0}
    assert tables.goals({one["name"]: one})[0].endswith("| yes |")
    assert tables.goals({one["name"]: {**one, "best_test_part": 7.91}})[0].endswith("| no |")


def test_folds_are_those_of_the_file(tmp_path: Path) -> None:
    write_letters(tmp_path)

    def words(fold: int) -> list[list[str]]:
        parts = lavergne.split_rows(lavergne.TASKS["phonemes"], fold, str(tmp_path))
        return [["".join(row[0] for row in rows) for rows in part] for part in parts]

    assert words(experiments.CANONICAL) == [list(WORDS[:8]), ["tick"], ["bit"]]
    for fold in range(9):
        train, dev, test = words(fold)
        assert (dev, test) == ([WORDS[(fold - 1) % 10]], [WORDS[fold]])
        assert sorted(train + dev + test) == sorted(WORDS)


def test_parts_of_labels_are_scored_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    class Decoder:
        def __init__(self, model) -> None:
            pass

        def viterbi(self, observations):
            return np.array([0, 1, 2, 0])

    # Labels a/1, a/2 and b/1; the last gold label is unknown, but its part is known.
    gold, partial = np.array([0, 0, 0, -1]), np.array([0, 0, 0, 0])
    monkeypatch.setattr("measure.data.Decoder", Decoder)
    assert Scored(None, gold, partial, np.array([0, 0, 1])).errors(None) == (75.0, 25.0)


def test_steady_is_wapitis_rule() -> None:
    assert lavergne.is_steady([9.0, 7.51, 7.5, 7.5, 7.5, 7.51])
    assert not lavergne.is_steady([7.5, 7.5, 7.5, 7.5])
    assert not lavergne.is_steady([7.53, 7.5, 7.5, 7.5, 7.5])


def test_zeros_are_counted_pair_by_pair() -> None:
    problem, _ = random_problem(3, 3, [6, 4, 7], n_values=3)
    corpus, n_potential = problem.corpus, problem.corpus.n_potential(3)
    coordinates = np.random.default_rng(0).permutation(n_potential)[: n_potential // 4]
    first, previous = len(corpus.unigram_keys) * 3, 3 + int(corpus.start_label)
    active, zero = set(coordinates.tolist()), []
    for context in corpus.context:
        own = corpus.ctx_indices[corpus.ctx_indptr[context] : corpus.ctx_indptr[context + 1]]
        for before, label in itertools.product(range(3), repeat=2):
            pairs = {first + (o * previous + before) * 3 + label for o in own.tolist()}
            zero.append(not pairs & active)
    found = lavergne.zeros(corpus, 3, np.sort(coordinates))
    assert 0.0 < np.mean(zero) < 1.0 and found == pytest.approx(100.0 * np.mean(zero))


# The study of solvers


@pytest.fixture
def toy() -> tuple[Problem, Scored]:
    problem, observations = random_problem(5, 3, [6, 4, 7], n_values=3)
    gold = problem.corpus.labels
    return Problem("toy", problem.corpus, ("a", "b", "c")), Scored(observations, gold, gold, gold)


def test_every_solver_takes_part() -> None:
    racing = {c.solver for one in contestants.RACES for c in one.contestants}
    known = {name.removeprefix("spacy_sparsecrf.")[: -len(".v1")] for name in SOLVERS_IN_USE}
    assert racing == known


def test_contestants_are_tuned_run_and_reported(
    toy: tuple[Problem, Scored], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problem, test = toy
    step = {"schedule": "constant"}
    sgd = contestants.Contestant("SGD", "SGD", step, tuned="eta0", values=(1e-4, 0.1, 1e6))
    batch = contestants.Contestant("L-BFGS", "OWLQN", {"classic": True})
    one = contestants.Race("toy", ElasticNet(0.0, 1.0), (sgd, batch))
    assert race.tune(one, problem, sgd, 10.0, 50.0).settings == {**step, "eta0": 0.1}
    results = Results(tmp_path / "toy-l2.jsonl", settings={"cap": 9.0, "most": 12.0})
    race.run_race(one, problem, test, results, None)
    course = results.rows["L-BFGS"]
    assert course["objective"] == sorted(course["objective"], reverse=True)
    assert course["passes"][-1] >= 12.0 or not course["cut"]
    monkeypatch.setattr(race, "run", lambda *given, **more: pytest.fail("was run again"))
    race.run_race(one, problem, test, results, None)
    courses = study.report.Courses(one, read_rows(results.path))
    assert courses.minimum <= min(course["objective"])
    (row,) = (row for row in study.report.gap_rows(courses) if row[0] == "L-BFGS")
    assert float(row[2]) <= float(row[3].replace("-", "inf"))


# Lattices


def test_graphs_of_pictures_have_the_weights_of_the_paper() -> None:
    truth = np.array([[0, 1], [1, 1]])
    graphs = pictures.encode([truth], [truth + 0.25])
    assert graphs.ends.tolist() == [[0, 1], [2, 3], [0, 2], [1, 3]]
    assert graphs.nodes.values.tolist() == [1.0, 0.25, 1.0, 1.25, 1.0, 1.25, 1.0, 1.25]
    steps = graphs.pairs.values[graphs.pairs.indptr[graphs.row][:, None] + np.arange(2)]
    assert steps.tolist() == [[1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]


def test_claims_are_told_from_courses() -> None:
    def course(name: str, eta: float, objective: list[float]) -> dict:
        own = {"name": f"lbp, {name}, {eta}", "method": "lbp", "optimiser": name, "eta": eta}
        passes = [float(i) for i in range(len(objective))]
        own |= vars(Course(passes=passes, objective=objective, errors=[(0, 1.0)], cpu=[1.0]))
        return own | {"open": [0]}

    rows = [
        {"name": "nodes", "logistic": 2.0},
        course("L-BFGS", 0.0, [9.0, 5.0, 4.0]),
        course("SGD", 0.1, [9.0, 6.0, 5.0, 4.0]),
        course("SMD", 0.1, [9.0, 4.0]),
        course("SGD", 0.2, [9.0, 4.0]),
        course("SMD", 0.2, [9.0, 10.0, 4.0]),
        course("ASG", 0.2, [9.0, 8.0]),
    ]
    told = lattice_report
    assert told.smd_first(rows, "lbp", "SMD") == "with some gains (0.1: 3 → 1, 0.2: 1 → 2)"
    assert told.is_faster(rows) == "yes (L-BFGS 2, SGD 1, SMD 1)"
    assert told.anneals_slowly(rows) == "yes (ASG –, SGD 1)"
    assert told.highest(rows, "lbp") == "no (0.1 here, 0.0001 there)"
    text = told.findings({"gaussian": rows[:2]})
    assert text.count("not run") == text.count("\n| ") - 2 and "yes (nodes 2.00, LBP 1.00)" in text
