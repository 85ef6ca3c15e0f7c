"""Training on a corpus in files finds exactly the weights of training in memory."""

import os
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.training import Example

import spacy_sparsecrf.corpus.arrays as arrays
from spacy_sparsecrf.corpus.arrays import MEMORY, Files
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.chain import ChainLoss
from spacy_sparsecrf.loss.workspace import Limits
from spacy_sparsecrf.parallel import Workers
from spacy_sparsecrf.registry import crf_solvers
from spacy_sparsecrf.training.training import Training

from ..corpus.file_cases import SMALL_PARTS, cut_small, full_disk, train
from ..reference import Problem, random_problem
from ..toy import blank_with, examples_of, make_sentences, run_steps
from .learning_cases import partial_problem

PROBLEMS = {
    "complete": lambda: random_problem(0, 5, [7, 0, 3, 1, 9, 4] * 12)[0],
    "no start label": lambda: random_problem(1, 3, [4, 2, 6] * 20, start_label=False)[0],
    "partial": lambda: partial_problem(2, 4, [5, 3, 0, 8] * 15),
    "constrained": lambda: partial_problem(3, 4, [5, 3, 0, 8] * 15, constrained=True),
    "few": lambda: random_problem(4, 3, [3, 2, 0, 1] * 3)[0],
    "few, constrained": lambda: partial_problem(5, 3, [3, 0, 2, 4] * 2, constrained=True),
}
SOLVERS = ["OWLQN", "RPROP", "SGDL1", "AdaGrad"]
DENSE_SOLVERS = ["OWLQN", "SGD", "SMD", "Hybrid", "Perceptron"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


def losses(problem: Problem, directory: Path, **options: object) -> list[ChainLoss]:
    rest = problem.n_labels, Workers(1)
    options = {"valid": problem.valid, "limits": SMALL_PARTS} | options
    return [
        ChainLoss(replace(problem.corpus, store=store), *rest, **options)
        for store in (MEMORY, Files(directory))
    ]


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("case", PROBLEMS)
def test_values_gradients_and_screening_are_the_same_bits(tmp_path: Path, case, precision):
    problem = PROBLEMS[case]()
    rng = np.random.default_rng(0)
    found = []
    limits = SMALL_PARTS._replace(shard_bytes=300) if "few" in case else SMALL_PARTS
    for loss in losses(problem, tmp_path, precision=precision, limits=limits):
        assert len(loss.space.shards) > 2
        everything = loss.all_coordinates()
        rng = np.random.default_rng(0)
        chosen = everything[rng.random(len(everything)) < 0.4]
        # All labels of some features.
        chosen = np.union1d(chosen, everything[: 3 * problem.n_labels])
        theta = rng.normal(size=len(chosen))
        working = loss.restrict(chosen)
        value, gradient = working.value_and_grad(theta)
        screened = loss.screen(working, theta, 0.01, 10**9)
        curvature = working.curvature(gradient)
        # Curvature of other coordinates at the last evaluated point.
        loss.screen(working, theta, 0.01, 10**9)
        other = loss.restrict(everything)
        more = other.curvature(np.zeros(len(everything)))
        again = working.value_and_grad(0.5 * theta)
        stochastic = loss.restrict(chosen, stochastic=True).value_and_grad(theta)
        seen = loss.observed_coordinates(), loss.descent_coordinates()
        found.append((value, gradient, *screened, curvature, more, *again, *stochastic, *seen))
    assert len(found[0][2]) > 20
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("solver", "l1", "n_threads"),
    [(name, 0.3, 1) for name in SOLVERS]
    + [(name, 0.0, 1) for name in DENSE_SOLVERS]
    + [("OWLQN", 0.3, 3), ("SGD", 0.0, 3)],
)
def test_models_are_the_same_bytes(tmp_path: Path, solver: str, l1: float, n_threads: int):
    problem = PROBLEMS["complete"]()
    names = [f"L{y}" for y in range(problem.n_labels)]
    options = {"warm_start_epochs": 2} if solver == "OWLQN" and l1 else {}
    found = []
    for store in (MEMORY, Files(tmp_path)):
        made = crf_solvers.get(f"spacy_sparsecrf.{solver}.v1")(**options)
        l2 = 0.0 if solver == "Perceptron" else 0.01
        penalty = {"l1": l1, "l2": l2, "n_threads": n_threads}
        training = Training(replace(problem.corpus, store=store), names, made, **penalty)
        reports = [training.step() for _ in range(4)]
        found.append((reports, training.model().to_bytes()))
    assert found[0] == found[1]
    assert os.listdir(tmp_path) == []


def peak_memory(problem: Problem, directory: Path | None) -> int:
    """Return the peak number of bytes that a training run allocates."""
    names = [f"L{y}" for y in range(problem.n_labels)]
    tracemalloc.start()
    try:
        store = MEMORY if directory is None else Files(directory)
        solver = crf_solvers.get("spacy_sparsecrf.OWLQN.v1")(warm_start_epochs=1)
        corpus = replace(problem.corpus, store=store)
        # A shard is about as large as the small corpus, so that Python objects hardly matter.
        options = {"l1": 0.3, "l2": 0.01, "n_threads": 1, "limits": Limits(shard_bytes=1 << 18)}
        training = Training(corpus, names, solver, **options)
        training.step()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_hardly_grows_with_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(arrays, "CHUNK", 256)
    monkeypatch.setattr(arrays, "_LARGEST_FILE", 1 << 20)
    small, large = (random_problem(0, 4, [40] * n)[0] for n in (100, 2000))
    # The first run compiles or loads kernels, and fills Python's caches of calls.
    peak_memory(small, tmp_path)
    n_more = large.corpus.n_tokens - small.corpus.n_tokens
    more = [peak_memory(large, where) - peak_memory(small, where) for where in (tmp_path, None)]
    assert more[0] < 8 * n_more < 100 * n_more < more[1]


@pytest.mark.parametrize("solver", ["SAG", "NewtonCG", "BCD", "SCGIS", "GIS"])
def test_other_solvers_are_refused(tmp_path: Path, solver: str):
    problem = PROBLEMS["complete"]()
    names = [f"L{y}" for y in range(problem.n_labels)]
    made = crf_solvers.get(f"spacy_sparsecrf.{solver}.v1")()
    kind = "maxent" if solver in ("SCGIS", "GIS") else "chain"
    l1 = 0.3 if "no l1" not in made.requires else 0.0
    corpus = replace(problem.corpus, store=Files(tmp_path))
    with pytest.raises(SparseCRFError, match="SC347"):
        Training(corpus, names, made, l1=l1, l2=0.1, kind=kind)


SCHEDULE = [
    {"templates": ["b:", "*:lower[0]"], "steps": 1},
    {"templates": "*", "admit": "labels", "require": "any"},
]
TEMPLATES = {
    "@crf_features": "spacy_sparsecrf.Templates.v1",
    "templates": ["b:", "*:lower[0]", "*:lower[-1]|lower[0]", "u:suffix(2)[0]"],
}
TARGET = {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", "attr": "tag", "alternatives": "|"}
CONFIGS = [
    {},
    {"learning": {"min_freq": 3, "observed_only": True}},
    {"precision": "float32"},
    {"features": TEMPLATES, "learning": {"schedule": SCHEDULE}, "l1": 0.2},
    {"features": TEMPLATES, "learning": {"schedule": SCHEDULE, "min_freq": 2}, "l1": 0.2},
    {"features": TEMPLATES, "learning": {"label_weights": {"NN": 2.5, "DT": 0.3}}},
    {"target": TARGET},
]


@pytest.mark.parametrize(
    ("batch_size", "config"), [((1, 7, 512)[i % 3], each) for i, each in enumerate(CONFIGS)]
)
def test_a_component_learns_the_same(tmp_path: Path, monkeypatch, batch_size: int, config: dict):
    examples = examples_of(spacy.blank("en"), make_sentences(40, seed=1))
    for example in examples[::3] if "target" in config else ():
        # A missing label, and an ambiguous label.
        example.reference[0].tag_ = ""
        example.reference[1].tag_ += "|NN|VB"
    in_memory = train(examples, None, **config)
    monkeypatch.setattr("spacy_sparsecrf.pipeline.encoding.BATCH_SIZE", batch_size)
    assert train(examples, tmp_path / "a" / "b", **config) == in_memory
    assert os.listdir(tmp_path / "a" / "b") == ["encoded"]
    if "label_weights" in config.get("learning", {}):
        assert in_memory[1] != train(examples, None, features=TEMPLATES)[1]


def test_settings_that_need_memory_are_refused_first(tmp_path: Path):
    def unread() -> Iterator[Example]:
        raise AssertionError("examples were read")
        yield

    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sparse_crf", config={"model": "memm"})
    with pytest.raises(SparseCRFError, match="SC346"):
        pipe.initialize(unread, nlp=nlp, cache_dir=tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()


def test_a_full_disk_keeps_the_trained_model(tmp_path: Path):
    examples = examples_of(spacy.blank("en"), make_sentences(40, seed=1))
    nlp = blank_with()
    pipe = nlp.get_pipe("sparse_crf")
    nlp.initialize(lambda: examples)
    run_steps(nlp, examples, 2)
    before = pipe.to_bytes()
    with full_disk(5000), pytest.raises(SparseCRFError, match="SC345"):
        pipe.initialize(lambda: examples, nlp=nlp, cache_dir=tmp_path)
    assert pipe.to_bytes() == before
    assert os.listdir(tmp_path) == []


def test_a_failure_while_reading_leaves_nothing(tmp_path: Path):
    examples = examples_of(spacy.blank("en"), make_sentences(40, seed=1))

    def failing() -> Iterator[Example]:
        yield from examples
        raise RuntimeError("made up")

    pipe = spacy.blank("en").add_pipe("sparse_crf")
    with pytest.raises(RuntimeError, match="made up"):
        pipe.initialize(failing, cache_dir=tmp_path)
    assert os.listdir(tmp_path) == []


# Failures, and other features of training


@pytest.fixture(scope="module")
def examples():
    return examples_of(spacy.blank("en"), make_sentences(40, seed=1))


def test_real_values_are_refused(tmp_path: Path):
    nlp = spacy.blank("en")
    nlp.vocab.set_vector("the", np.ones(4, np.float32))
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": ["u:vector[0]"]}
    pipe = nlp.add_pipe("sparse_crf", config={"features": features})
    known = examples_of(nlp, make_sentences(5, seed=1))
    with pytest.raises(SparseCRFError, match=r"SC346.*real-valued"):
        pipe.initialize(lambda: known, cache_dir=tmp_path)
    assert os.listdir(tmp_path) == []


FOREIGN = {
    "file": lambda path: path.write_text("mine"),
    "directory": lambda path: (path / "photos").mkdir(parents=True),
    "corpus and more": lambda path: (
        path.mkdir(),
        (path / "corpus.json").write_text("{}"),
        (path / "mine.txt").write_text("mine"),
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_no_corpus_is_not_replaced(tmp_path: Path, examples, kind: str):
    FOREIGN[kind](tmp_path / "encoded")
    before = sorted(map(str, tmp_path.rglob("*")))
    pipe = spacy.blank("en").add_pipe("sparse_crf")
    with pytest.raises(SparseCRFError, match="SC349.*encoded exists"):
        pipe.initialize(lambda: examples, cache_dir=tmp_path)
    assert sorted(map(str, tmp_path.rglob("*"))) == before


@pytest.mark.parametrize("learning", [{}, {"schedule": SCHEDULE}])
def test_a_file_that_is_cut_off_is_no_crash(tmp_path: Path, examples, learning: dict):
    nlp = spacy.blank("en")
    config = {"features": TEMPLATES, "learning": learning, "n_threads": 1}
    pipe = nlp.add_pipe("sparse_crf", config=config)
    checkpoint = tmp_path / "checkpoint"
    options = {} if learning else {"checkpoint": checkpoint}
    pipe.initialize(lambda: examples, nlp=nlp, cache_dir=tmp_path / "corpus", **options)
    if learning:
        run_steps(nlp, examples, 1)
    os.truncate(tmp_path / "corpus" / "encoded" / "labels.npy", 200)
    with pytest.raises(SparseCRFError, match="SC348.*200 bytes"):
        run_steps(nlp, examples, 2)
    pipe.predict([examples[0].predicted])
    assert pipe.model.to_bytes()
    assert not checkpoint.exists()


def test_pages_are_let_go_while_a_kernel_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = Files(tmp_path)
    array = files.zeros(1 << 16, np.float64)
    counts, released = iter([0, 0, 1 << 40]), []
    monkeypatch.setattr(
        "spacy_sparsecrf.corpus.arrays._resident_of_files", lambda: next(counts, 1 << 40)
    )
    whole = files.release
    monkeypatch.setattr(files, "release", lambda: released.append(whole()))
    with files.bounded():
        array[:] = 7.0
        while len(released) < 4:
            assert array.min() == array.max() == 7.0
    n_released = len(released)
    assert array.sum() == 7.0 * len(array)
    assert n_released == len(released) >= 5
