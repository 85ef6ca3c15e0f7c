"""Corpora in files together with what else learning can do, and what fails in the middle of it."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy

from spacy_sparsecrf.corpus.arrays import MEMORY, Files
from spacy_sparsecrf.corpus.encoded import EncodedCorpus
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.loss.subproblems import Part, ReducedPart, without_idle_tests
from spacy_sparsecrf.solvers.owlqn import OWLQN
from spacy_sparsecrf.training import training as training_module
from spacy_sparsecrf.training.training import Training

from ..corpus.file_cases import cut_small, train
from ..features.reference_values import random_value_problem
from ..reference import random_problem
from ..toy import examples_of, make_sentences, run_steps
from .learning_cases import admitted_alone

SCHEDULE = [
    {"templates": ["b:", "*:lower[0]"], "steps": 1},
    {"templates": "*", "admit": "labels", "require": "any"},
]
TEMPLATES = {
    "@crf_features": "spacy_sparsecrf.Templates.v1",
    "templates": ["b:", "*:lower[0]", "*:lower[-1]|lower[0]", "u:suffix(2)[0]"],
}
LENGTHS = [5, 3, 0, 1, 8, 2] * 8


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


@pytest.fixture(scope="module")
def examples():
    return examples_of(spacy.blank("en"), make_sentences(40, seed=1))


def rare_problem(store: object = MEMORY, n_real: int = 0) -> EncodedCorpus:
    """Most tests are rare, and weights are no sums without rounding; n_real: of real values."""
    options = {"n_values": 40, "n_bigram": 3, "weighted": True, "missing": 0.3}
    if n_real:
        made = random_value_problem(0, 3, LENGTHS, n_real=n_real, **options)
    else:
        made = random_problem(0, 3, LENGTHS, **options)
    return replace(made[0].corpus, store=store)


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_the_number_of_threads_does_not_matter(tmp_path: Path, examples, n_threads: int):
    in_memory = train(examples, None, features=TEMPLATES)
    in_files = train(examples, tmp_path, features=TEMPLATES, n_threads=n_threads)
    assert in_files[1] == in_memory[1]
    models = []
    for cache_dir, n in ((None, 1), (tmp_path, n_threads)):
        pipe = spacy.blank("en").add_pipe("sparse_crf", config={"n_threads": n})
        pipe.initialize(lambda: examples, cache_dir=cache_dir)
        pipe.update([])
        pipe.predict([examples[0].predicted])
        models.append(pipe.model.to_bytes())
    assert models[0] == models[1]


@pytest.mark.parametrize("min_freq", [1, 2])
def test_stages_admit_and_learn_the_same(tmp_path: Path, examples, min_freq: int):
    config = {
        "features": TEMPLATES,
        "learning": {"schedule": SCHEDULE, "min_freq": min_freq},
        "l1": 0.2,
    }
    assert train(examples, tmp_path, **config) == train(examples, None, **config)


def test_label_weights_count_the_same(tmp_path: Path, examples):
    config = {"learning": {"label_weights": {"NN": 2.5, "DT": 0.3}}, "features": TEMPLATES}
    found = train(examples, tmp_path, **config)
    assert found == train(examples, None, **config)
    assert found[1] != train(examples, None, features=TEMPLATES)[1]


@pytest.mark.parametrize("l1", [0.6, 1.5, 3.0])
def test_the_same_tests_are_left_out(tmp_path: Path, l1: float):
    parts = []
    for store in (MEMORY, Files(tmp_path)):
        parts.append(without_idle_tests(Part(rare_problem(store), 3), l1))
        assert isinstance(parts[-1], ReducedPart)
        assert parts[-1].corpus.store is store
    for name, array in parts[0].corpus.arrays.items():
        np.testing.assert_array_equal(array, parts[1].corpus.arrays[name], name)
    assert len(parts[0].corpus.unigram_keys) < len(rare_problem().unigram_keys)


@pytest.mark.parametrize("n_real", [0, 6])
def test_the_same_tests_are_admitted(tmp_path: Path, n_real: int):
    corpus = rare_problem(n_real=n_real)
    n = len(corpus.unigram_keys) + len(corpus.bigram_keys)
    admitted = np.random.default_rng(0).random(n) < 0.5
    stores = MEMORY, Files(tmp_path)
    found = [admitted_alone(rare_problem(store, n_real), admitted) for store in stores]
    assert 0 < len(found[0].value_tests) < n_real or not n_real
    for name, array in found[0].arrays.items():
        np.testing.assert_array_equal(array, found[1].arrays[name], name)


def size_of(store: object, times: int) -> int:
    problem, _ = random_problem(0, 3, LENGTHS, n_values=4)
    one = problem.corpus
    tokens, tests = np.arange(one.n_tokens * times), np.arange(len(one.uni_indices) * times)
    ends = one.uni_indptr[1:] + len(one.uni_indices) * np.arange(times)[:, None]
    corpus = replace(
        one,
        offsets=np.concatenate(([0], np.cumsum(np.tile(np.diff(one.offsets), times)))),
        labels=one.labels[tokens % one.n_tokens],
        weights=np.tile(one.weights, times),
        uni_indptr=np.concatenate(([0], ends.ravel())),
        uni_indices=one.uni_indices[tests % len(one.uni_indices)],
        context=one.context[tokens % one.n_tokens],
        store=store,
    )
    return Training(corpus, list("abc"), OWLQN(), l1=0.3, l2=0.1, n_threads=1).size.n_bytes


def test_the_estimate_knows_of_files(tmp_path: Path):
    in_files, in_memory = (
        [size_of(store, n) for n in (5, 50)] for store in (Files(tmp_path), MEMORY)
    )
    n_more = 45 * sum(LENGTHS)
    # Of sequences a little stays in memory.
    assert in_files[1] - in_files[0] < 64 * 45 * len(LENGTHS) + 1
    assert in_memory[1] - in_memory[0] > 100 * n_more


def test_what_does_not_fit_in_memory_may_fit_in_files(tmp_path: Path, monkeypatch):
    examples = examples_of(spacy.blank("en"), make_sentences(200, seed=1))
    sizes = []
    for cache_dir in (None, tmp_path):
        pipe = spacy.blank("en").add_pipe("sparse_crf", config={"n_threads": 1})
        pipe.initialize(lambda: examples, cache_dir=cache_dir)
        sizes.append(pipe._session.training.size.n_bytes)
    between = sum(sizes) // 2
    assert sizes[1] < between < sizes[0]
    monkeypatch.setattr(training_module, "available_memory", lambda: between)
    pipe.initialize(lambda: examples, cache_dir=tmp_path)
    with pytest.raises(SparseCRFError, match=r"SC321.*memory"):
        pipe.initialize(lambda: examples)


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
    with pytest.raises(SparseCRFError, match="SC349.*encoded is there"):
        pipe.initialize(lambda: examples, cache_dir=tmp_path)
    assert sorted(map(str, tmp_path.rglob("*"))) == before


def test_a_directory_that_cannot_be_read_is_said(tmp_path: Path, examples, monkeypatch):
    def denied(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)
    pipe = spacy.blank("en").add_pipe("sparse_crf")
    with pytest.raises(SparseCRFError, match="SC345.*Permission denied"):
        pipe.initialize(lambda: examples, cache_dir=tmp_path)


def test_a_directory_that_is_gone_loses_no_model(tmp_path: Path, examples):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("sparse_crf", config={"n_threads": 1})
    pipe.initialize(lambda: examples, nlp=nlp, cache_dir=tmp_path / "corpus")
    run_steps(nlp, examples, 1)
    pipe.predict([examples[0].predicted])
    before = pipe.model.to_bytes()
    shutil.rmtree(tmp_path / "corpus")
    with pytest.raises(SparseCRFError, match="SC345.*No such file"):
        run_steps(nlp, examples, 5)
    pipe.predict([examples[0].predicted])
    assert len(pipe.model.to_bytes()) > len(before) / 2
    assert spacy.blank("en").add_pipe("sparse_crf").from_bytes(pipe.to_bytes()).labels


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
