"""The tables after Lavergne et al. (2010): what is run."""

import gzip
import importlib
import itertools
from pathlib import Path
from subprocess import CalledProcessError

import numpy as np
import pytest
import srsly
import typer

from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.registry import crf_solvers
from spacy_sparsecrf.solvers.base import check_supported, unsupported

from ..reference import random_problem
from .lavergne_cases import experiments, figures, figures_of, record_of

child = importlib.import_module("lavergne.child")
corpora = importlib.import_module("lavergne.corpora")
goals = importlib.import_module("lavergne.goals")
gradients = importlib.import_module("lavergne.gradients")
paper = importlib.import_module("lavergne.paper")
report = importlib.import_module("lavergne.report")
run = importlib.import_module("lavergne.run")
sections = importlib.import_module("lavergne.sections")

WORDS = "cat", "tack", "act", "back", "cab", "tab", "bat", "kit", "tick", "bit"
SOUNDS = {"c": "k", "k": "-"}


def rows_of(word: str) -> str:
    """A letter a line: its sound, stress, and both."""
    sounds = [SOUNDS.get(letter, letter) for letter in word]
    stress = ["1" if letter in "ai" else ">" for letter in word]
    return "".join(
        f"{a}\t{b}\t{c}\t{b}/{c}\n" for a, b, c in zip(word, sounds, stress, strict=True)
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Ten words in ten folds, of which the last is for testing and the one before for stopping."""
    directory = tmp_path / "data"
    directory.mkdir()
    parts = {"train": WORDS[:8], "dev": WORDS[8:9], "test": WORDS[9:]}
    dealt = []
    for split, words in parts.items():
        with gzip.open(directory / f"nettalk.{split}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("".join(rows_of(word) + "\n" for word in words))
        dealt += [f"{split}\t{i}\t{WORDS.index(w)}\t{w}\t0\t1\n" for i, w in enumerate(words)]
    with gzip.open(directory / "nettalk.folds.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("".join(dealt) + "excluded\t0\t-1\tbad\t_\t1\n\n")
    return directory


def words_of(part: list) -> list[str]:
    return ["".join(row[0] for row in rows) for rows in part]


# Experiments


def test_experiments_have_names_of_their_own_and_are_in_tables() -> None:
    names = [one.name for one in experiments.EXPERIMENTS]
    assert len(set(names)) == len(names)
    unknown = set(paper.PUBLISHED) - set(names)
    assert all(name.startswith("joint") and name.endswith("bcd") for name in unknown)
    assert {goal.name for goal in goals.GOALS} <= set(names)
    assert set(run.QUICK) <= set(names)
    everything = {name: figures_of(name) for name in names}
    text = report.render(everything, {}, trial=False)
    for title, _ in sections.SECTIONS:
        assert (f"## {title}\n" in text) == (title != "Sparse evaluation (table 2)")


def test_solvers_take_the_settings_and_the_penalty() -> None:
    for one in experiments.EXPERIMENTS:
        solver = crf_solvers.get(f"spacy_sparsecrf.{one.solver}.v1")(**one.settings)
        check_supported(solver, unsupported(ElasticNet(one.l1, one.l2), "chain"))
        assert one.data in corpora.TASKS


def test_templates_of_feature_sets() -> None:
    assert experiments.ngrm("5++") == ("*:ngrm(5, orth)++",)
    assert experiments.ngrm("7", pairs=False) == ("b:", "u:ngrm(7, orth)")
    staged = experiments.by_name("phonemes-5grm+-owlqn-by-labels").schedule
    assert [stage["templates"] for stage in staged] == [f"*:ngrm({n}, orth)+" for n in (1, 3, 5)]
    assert "admit" not in staged[0] and staged[2]["admit"] == "labels"
    assert "*:suffix(4)[0]" in experiments.PAIR_TEMPLATES
    assert "u:suffix(3)[-1]" in experiments.PAIR_TEMPLATES


# Data


def test_folds_are_those_of_the_file(data: Path) -> None:
    task = corpora.TASKS["phonemes"]
    train, dev, test = corpora.split_rows(task, corpora.CANONICAL, [str(data)], 0)
    assert (words_of(train), words_of(dev), words_of(test)) == (
        list(WORDS[:8]),
        ["tick"],
        ["bit"],
    )
    for fold in range(9):
        train, dev, test = corpora.split_rows(task, fold, [str(data)], 0)
        assert words_of(test) == [WORDS[fold]]
        assert words_of(dev) == [WORDS[(fold - 1) % 10]]
        assert sorted(words_of(train + dev + test)) == sorted(WORDS)


def test_parts_of_labels_are_scored_by_themselves() -> None:
    class Decoder:
        def __init__(self, model) -> None:
            pass

        def viterbi(self, observations):
            return np.array([0, 1, 2, 0])

    # Labels a/1, a/2 and b/1; the last gold label is not known, but its part is.
    gold, partial = np.array([0, 0, 0, -1]), np.array([0, 0, 0, 0])
    scored = corpora.Scored(None, gold, partial, np.array([0, 0, 1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "Decoder", Decoder)
        assert scored.errors(None) == (75.0, 25.0)


# Training


def test_steady_is_wapitis_rule() -> None:
    assert child.is_steady([9.0, 7.51, 7.5, 7.5, 7.5, 7.51])
    assert not child.is_steady([7.5, 7.5, 7.5, 7.5])
    assert not child.is_steady([7.53, 7.5, 7.5, 7.5, 7.5])


@pytest.mark.parametrize(
    "name",
    [
        "joint-1grm-owlqn",
        "phonemes-5grm-owlqn-by-labels",
        "phonemes-1grm-owlqn-l2=0.1",
        "phonemes-5grm+-owlqn-fold0",
    ],
)
def test_experiments_are_measured(name: str, data: Path) -> None:
    one = experiments.by_name(name)
    found = child.measure(one, [str(data)], quick=True)
    course, n = found["course"], len(found["course"]["dev"])
    assert course["ended"] in ("steady", "converged", "cap")
    assert n == len(course["cpu"]) == len(course["objective"]) == len(course["passes"])
    assert found["errors"]["dev"] == course["dev"][-1]
    assert found["best"]["dev"] == min(course["dev"])
    assert 0.0 <= found["best"]["test_part"] <= found["best"]["test"] <= 100.0
    assert set(found["polished"]) == {str(n) for n in one.polish}
    assert found["sequences"] == 8 and found["peak_mb"] > 1.0
    assert [stage["number"] for stage in course["stages"] if stage["ended"]] == list(
        range(1, len(one.schedule) + 1)
    )
    summed = figures.Figures.of(srsly.json_loads(srsly.json_dumps(found)))
    assert summed.admitted <= summed.potential and (summed.polished is None) == (not one.polish)
    assert "the figures mean nothing" in report.render({name: summed}, {}, trial=True)


def test_experiments_that_are_done_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, broken = [], "phonemes-3grm-sgd"

    def run_child(one, path, directories, quick):
        if one.name == broken:
            raise CalledProcessError(1, ["x"], "out of memory")
        ran.append(one.name)
        srsly.write_json(path, {**record_of(one.name), "quick": quick})

    monkeypatch.setattr(run, "run_child", run_child)
    monkeypatch.setattr(run, "compile_kernels", lambda *args: None)
    with pytest.raises(typer.Exit):
        run.main(tmp_path, [], only="phonemes-[13]grm-sgd phonemes-1grm-owlqn")
    assert ran == ["phonemes-1grm-owlqn", "phonemes-1grm-sgd"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}.json" for name in ran]
    broken = ""
    run.main(tmp_path, [], only="phonemes-[13]grm-sgd phonemes-1grm-owlqn")
    assert ran[2:] == ["phonemes-3grm-sgd"]
    # Another limit is another experiment, a setting that is gone is none; and a trial does not
    # count.
    stored = srsly.read_json(tmp_path / "phonemes-1grm-owlqn.json")
    stored["experiment"]["gone"] = False
    srsly.write_json(tmp_path / "phonemes-1grm-owlqn.json", stored)
    run.main(tmp_path, [], only="phonemes-1grm-owlqn")
    assert len(ran) == 3
    stored = srsly.read_json(tmp_path / "phonemes-1grm-sgd.json")
    stored["experiment"]["cap"] += 1.0
    srsly.write_json(tmp_path / "phonemes-1grm-sgd.json", stored)
    run.main(tmp_path, [], only="phonemes-1grm-*", quick=True)
    assert {"phonemes-1grm-sgd", "phonemes-1grm-owlqn"} < set(ran[3:])
    with pytest.raises(typer.BadParameter, match="nothing"):
        run.main(tmp_path, [], only="nothing")


def test_a_trial_runs_one_experiment_of_each_kind() -> None:
    assert [one.name for one in run.chosen([], quick=True)] == [
        one.name for one in experiments.EXPERIMENTS if one.name in run.QUICK
    ]
    assert len(run.chosen([], quick=False)) == len(experiments.EXPERIMENTS)


def test_zeros_are_counted_pair_by_pair() -> None:
    problem, _ = random_problem(3, 3, [6, 4, 7], n_values=3)
    corpus, rng = problem.corpus, np.random.default_rng(0)
    n_potential = corpus.n_potential(3)
    coordinates = np.sort(rng.permutation(n_potential)[: n_potential // 4])
    first, previous = len(corpus.unigram_keys) * 3, 3 + int(corpus.start_label)
    active = set(coordinates.tolist())
    zero = []
    for context in corpus.context:
        tests = corpus.ctx_indices[corpus.ctx_indptr[context] : corpus.ctx_indptr[context + 1]]
        for before, label in itertools.product(range(3), repeat=2):
            there = {first + (o * previous + before) * 3 + label for o in tests.tolist()}
            zero.append(not there & active)
    assert 0.0 < np.mean(zero) < 1.0
    assert gradients.zeros(corpus, 3, coordinates) == pytest.approx(100.0 * np.mean(zero))
