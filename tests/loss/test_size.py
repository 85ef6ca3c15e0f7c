"""Estimates of memory for training, available memory, and refusals before training starts."""

import gc
import logging
from pathlib import Path

import numpy as np
import pytest

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.size import Size
from spacy_sparsecrf.crf.loss.workspace import LIMITS
from spacy_sparsecrf.crf.memory import as_text, available_memory
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.warm_start import WarmStart
from spacy_sparsecrf.errors import SparseCRFError

from ..reference import random_observations, random_problem
from ..support.runs import training_of
from ..support.toy import blank_with, examples_of, make_sentences

ROOT = Path(__file__).parents[2]
USAGE = {"Max address space": "VmSize", "Max data size    ": "VmData"}
MEMINFO = "MemTotal:  8000 kB\nMemAvailable:    5000 kB\n"


# Control groups of a process: directory, limit, usage, and inactive file pages.
OUTER, INNER = ("a", "10000", 4_000, 500), ("a/b", "max", 100, 0)
MACHINE = 5000 * 1024
MEMORY = {
    "unknown": ("", "", [], None),
    "machine": (MEMINFO, "", [], MACHINE),
    "no limit": (MEMINFO, "0::/a/b\n", [INNER], MACHINE),
    "high limit": (MEMINFO, "0::/a/b\n", [("a/b", "900000000", 100, 0)], MACHINE),
    "own group": (MEMINFO, "0::/a/b\n", [("a/b", "10000", 4_000, 500)], 6_500),
    "outer group": (MEMINFO, "0::/a/b\n", [INNER, OUTER], 6_500),
    "root group": (MEMINFO, "0::/a/b\n", [INNER, (".", "10000", 4_000, 500)], 6_500),
    "used up": (MEMINFO, "0::/a/b\n", [INNER, ("a", "10000", 14_000, 0)], 0),
    "version 1": (MEMINFO, "3:cpu:/x\n2:memory:/x\n", [("memory/x", "10000", 4_000, 0)], 6_000),
}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("name", MEMORY)
def test_available_memory_is_the_least_of_the_machine_and_its_groups(tmp_path, name):
    meminfo, own, groups, expected = MEMORY[name]
    proc, cgroup = tmp_path / "proc", tmp_path / "sys" / "fs" / "cgroup"
    for path, text in ((proc / "meminfo", meminfo), (proc / "self" / "cgroup", own)):
        if text:
            write(path, text)
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    for folder, limit, usage, inactive in groups:
        limits = names if name == "version 1" else ("memory.max", "memory.current")
        for file, value in zip(limits, (limit, usage), strict=True):
            write(cgroup / folder / file, f"{value}\n")
        write(cgroup / folder / "memory.stat", f"anon 1\ninactive_file {inactive}\n")
    assert available_memory(tmp_path) == expected


@pytest.mark.parametrize("what", ["Max address space", "Max data size    "])
@pytest.mark.parametrize(("limit", "expected"), [("7340032", 4 << 20), ("unlimited", MACHINE)])
def test_available_memory_is_within_the_limit_of_the_process(tmp_path, what, limit, expected):
    write(tmp_path / "proc" / "meminfo", MEMINFO)
    limits = f"Limit  Soft Limit  Hard Limit\n{what}         {limit}  unlimited  bytes\n"
    write(tmp_path / "proc" / "self" / "limits", limits)
    write(tmp_path / "proc" / "self" / "status", f"Name: x\n{USAGE[what]}:    3072 kB\n")
    assert available_memory(tmp_path) == expected


@pytest.mark.parametrize(
    ("l1", "history", "n_bytes"), [(0.0, 0, 13_812), (0.0, 5, 16_452), (0.5, 5, 10_612)]
)
def test_the_estimate_is_what_was_recorded(l1, history, n_bytes):
    problem, _ = random_problem(0, 3, [5, 3, 8])
    loss = ChainLoss(problem.corpus, 3, Workers(1), limits=LIMITS._replace(shared=2))
    found = loss.size(l1, history) if history else loss.size(l1)
    n_observed = len(loss.coordinates("observed"))
    n_features = len(problem.corpus.unigram_keys) + len(problem.corpus.bigram_keys)
    assert found == Size(n_features, len(problem.theta), n_observed, n_bytes)
    assert str(Size(3, 9, None, None)) == "3 features, 9 potential weights"
    texts = [as_text(n) for n in (123_456_789, 999_999_999, 10**9)]
    assert texts == ["123 MB", "1000 MB", "1.0 GB"]


@pytest.mark.parametrize(("l1", "code"), [(0.0, "SC320"), (0.5, "SC321")])
def test_a_run_that_does_not_fit_is_refused(monkeypatch, l1, code):
    problem, _ = random_problem(0, 3, [5, 3, 8])
    monkeypatch.setattr("spacy_sparsecrf.crf.training.training.available_memory", lambda: 1000)
    with pytest.raises(SparseCRFError, match=code) as caught:
        training_of(problem.corpus, ["a", "b", "c"], OWLQN(), l1=l1, l2=0.1, n_threads=1)
    assert str(problem.corpus.n_potential(3)) in str(caught.value)


@pytest.mark.parametrize("l1", [0.0, 0.5, 1.0])
def test_counts_are_those_of_the_problem(l1):
    problem, _ = random_problem(1, 3, [5, 3, 8], n_values=20)
    corpus = problem.corpus
    training = training_of(corpus, ["a", "b", "c"], OWLQN(), l1=l1, l2=0.1, n_threads=1)
    assert training.size.n_potential == corpus.n_potential(3)
    assert training.size.n_bytes > 0
    pairs = set()
    for t, label in enumerate(corpus.labels):
        previous = 3 if t in corpus.offsets else corpus.labels[t - 1]
        pairs |= {("u", o, label) for o in problem.unigram_tests(t)}
        pairs |= {("b", o, previous, label) for o in problem.bigram_tests(t)}
    n_features = len(corpus.unigram_keys) + len(corpus.bigram_keys)
    if l1 < 1.0:
        assert (training.size.n_observed, training.size.n_features) == (len(pairs), n_features)
    else:
        assert training.size.n_observed < len(pairs)


def test_the_size_is_logged_before_training_frees_the_corpus_and_first_working_sets(caplog):
    nlp = blank_with()
    with caplog.at_level(logging.INFO, logger="spacy"):
        nlp.initialize(lambda: examples_of(nlp, make_sentences(20, seed=1)))
    [told] = [r.getMessage() for r in caplog.records if "potential" in r.getMessage()]
    assert "observed weights" in told and "memory" in told
    gc.disable()
    before = [type(each).__name__ for each in gc.get_objects()]
    nlp.update(examples_of(nlp, make_sentences(20, seed=1)))
    after = [type(each).__name__ for each in gc.get_objects()]
    gc.enable()
    assert before.count("EncodedCorpus") - after.count("EncodedCorpus") == 1
    assert after.count("CurvedChainLoss") - before.count("CurvedChainLoss") == 1


def test_no_array_is_as_long_as_the_potential_weights():
    """A thousand labels and as many bigram features: hundreds of millions of weights."""
    rng, builder = np.random.default_rng(2), CorpusBuilder()
    observations = random_observations(rng, [20] * 25, n_values=1000)
    builder.add(observations, rng.integers(0, 1000, 500).astype(np.int32))
    options = {"n_threads": 1, "warm_start": WarmStart(epochs=0)}
    labels = [str(i) for i in range(1000)]
    training = training_of(builder.build(), labels, OWLQN(), l1=0.5, l2=0.1, **options)
    assert training.size.n_potential > 3e8
    training.step()
    assert training.size.n_bytes < training.size.n_potential


def test_the_estimate_covers_the_arrays_that_training_holds():
    problem, _ = random_problem(1, 3, [5, 3, 8] * 50, n_values=20)
    training = training_of(problem.corpus, ["a", "b", "c"], OWLQN(), l1=0.5, l2=0.1, n_threads=1)
    training.step()
    (run,) = training._runs
    space, working, state = run.loss.space, run._working, run.state.solver
    lattice = space.lattice
    held = [*space.vectors, space.residual, lattice.token_weight, lattice.allowed]
    held += [working.table, *lattice.feature_sites, *lattice.token_bundles]
    held += [*lattice.bundle_tokens, *working.site_blocks]
    vectors = [state.theta, state.gradient, state.metric, state.steps, state.changes]
    assert sum(array.nbytes for array in held + vectors) <= training.size.n_bytes
    tokens = sum(array.nbytes for array in held[5:])
    assert tokens <= 12 * len(lattice.feature_tokens.indices) + 80 * lattice.n_tokens


def test_a_run_that_rests_holds_no_vectors_and_makes_the_same_steps():
    problem, _ = random_problem(1, 3, [5, 3, 8] * 50, n_values=20)
    runs = [training_of(problem.corpus, ["a", "b", "c"], OWLQN(), l1=0.5, l2=0.1) for _ in range(2)]
    runs[1]._runs[0].loss.rest = lambda: None
    for _ in range(4):
        reports = [run.step() for run in runs]
        assert reports[0] == reports[1]
        held = [bool(run._runs[0].loss.space.residual.any()) for run in runs]
        assert held == [False, True]
    assert np.array_equal(runs[0].weights[1], runs[1].weights[1])
