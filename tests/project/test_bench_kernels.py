"""What is measured of kernels, and of the recursion beside plain C."""

import importlib
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from .bench_cases import FLAGS, SENTENCES

data = importlib.import_module("bench.data")
floor = importlib.import_module("bench.floor")
kernels = importlib.import_module("bench.kernels")
report = importlib.import_module("bench.report")


@pytest.fixture
def problem():
    """Tokens with different numbers of tests."""
    return data.encode("flags", data.Source((), 0, 2, FLAGS), SENTENCES)


def contents(kernels) -> dict[str, dict]:
    """What the modules of the package hold."""
    return {
        name: dict(vars(module))
        for name, module in sys.modules.items()
        if name.startswith(kernels.PACKAGE)
    }


def test_kernels_are_clocked_and_put_back(problem) -> None:
    loss = kernels.chain_loss(problem)
    every = loss.restrict(loss.all_coordinates())
    theta = kernels.small_weights(loss.n_potential)
    every.value_and_grad(theta)
    before = contents(kernels)
    with kernels.clocked() as seconds:
        within = contents(kernels)
        assert not seconds
        every.value_and_grad(theta)
    assert seconds and all(value > 0.0 for value in seconds.values())
    clocks = [
        name
        for name, values in within.items()
        if any(isinstance(value, kernels.Clock) for value in values.values())
    ]
    assert clocks and not any(name.startswith(kernels.KERNELS) for name in clocks)
    assert contents(kernels) == before


def test_formulas_count_the_problem(problem) -> None:
    shape = kernels.shape_of(problem, "float32")
    lattice = kernels.chain_loss(problem).space.lattice
    assert (shape.n, shape.s, shape.y, shape.padded, shape.item) == (8, 3, 3, 8, 4)
    assert shape.entries == len(lattice.tests.indices)
    few = replace(problem.corpus, weights=np.array([1.0, 0.0, 1.0]))
    shape = kernels.shape_of(replace(problem, corpus=few), "float64")
    assert (shape.n, shape.s, shape.item) == (7, 2, 8)
    assert shape.products == 2.0 * 3 * 8 * 5
    peaks = {"peak": 2.0, "triad": 4.0}
    whole, slow, fast, rest = kernels.rows(
        {"fast": 0.25, "slow": 0.5}, 1.0, shape, lambda _: (1e9, 1e9), peaks
    )
    assert whole["of_peak"] == 0.5 and whole["of_triad"] == 0.25 and whole["share"] == 1.0
    assert [row["kernel"] for row in (slow, fast, rest)] == ["slow", "fast", "not in kernels"]
    assert [row["share"] for row in (slow, fast, rest)] == [0.5, 0.25, 0.25]


@pytest.mark.skipif(not shutil.which(floor.COMPILER), reason="gcc is not on PATH")
@pytest.mark.parametrize(("n_labels", "n_contexts"), [(3, 1), (8, 4), (22, 1)])
def test_plain_c_and_the_package_agree(n_labels: int, n_contexts: int, tmp_path: Path) -> None:
    problem = floor.make_problem(n_labels, n_contexts, 5)
    loss = floor.chain_loss(problem)
    working = loss.restrict(loss.all_coordinates())
    theta = np.random.default_rng(0).normal(scale=3.0, size=len(working.coordinates))
    chains = floor.make_chains(problem, theta)
    floor.run_floor(floor.compile_floor(n_labels, tmp_path), chains)
    working.value_and_grad(theta)
    np.testing.assert_allclose(np.sort(chains.log_z), floor.run_chain(working, theta), rtol=1e-12)
    scores = chains.scores[:, :n_labels].reshape(5, floor.LENGTH, n_labels)
    log_pairs = np.log(chains.pairs[..., :n_labels])[chains.context.reshape(5, floor.LENGTH)]
    for s, marginals in enumerate(chains.marginals[:, :n_labels].reshape(scores.shape)):
        log_alpha, log_beta = log_vectors(scores[s], log_pairs[s])
        log_z = np.logaddexp.reduce(log_alpha[-1])
        assert chains.log_z[s] == pytest.approx(log_z, rel=1e-13)
        expected = np.exp(log_alpha + log_beta - log_z)
        np.testing.assert_allclose(marginals, expected, rtol=1e-10, atol=1e-14)
    assert not chains.marginals[:, n_labels:].any()
    assert np.nextafter(np.zeros(1), 1.0)[0] * 2.0 > 0.0, "subnormal numbers are off from now on"


@pytest.mark.skipif(not shutil.which(floor.COMPILER), reason="gcc is not on PATH")
def test_the_gradient_in_plain_c_is_the_packages(problem, tmp_path: Path) -> None:
    loss = floor.chain_loss(problem)
    working = loss.restrict(loss.all_coordinates())
    theta = np.random.default_rng(0).normal(size=len(working.coordinates))
    plain = floor.Gradient(problem, theta)
    plain.run(floor.compile_floor(problem.n_labels, tmp_path))
    _, gradient = working.value_and_grad(theta)
    split, n = len(plain.unigram), problem.n_labels
    np.testing.assert_allclose(plain.unigram, gradient[:split], atol=1e-12)
    observed = working.observed[split:].reshape(n, n)
    np.testing.assert_allclose(
        plain.pairs[:, :n] - observed, gradient[split:].reshape(n, n), atol=1e-12
    )


def log_vectors(scores: np.ndarray, log_pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forward and backward vectors of a sequence, as logarithms. log_pairs: [length, Y, Y]."""
    alpha, beta = np.zeros((2, *scores.shape))
    alpha[0] = scores[0]
    for t in range(1, len(scores)):
        alpha[t] = scores[t] + np.logaddexp.reduce(alpha[t - 1][:, None] + log_pairs[t], axis=0)
    for t in range(len(scores) - 2, -1, -1):
        beta[t] = np.logaddexp.reduce(log_pairs[t + 1] + scores[t + 1] + beta[t + 1], axis=1)
    return alpha, beta


@pytest.mark.parametrize("there", [True, False])
def test_the_floor_is_left_out_without_a_compiler(
    there: bool, problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not there:
        monkeypatch.setattr(floor, "COMPILER", "no-such-compiler")
    elif not shutil.which(floor.COMPILER):
        pytest.skip("gcc is not on PATH")
    monkeypatch.setattr(floor, "CASES", ((3, 1),))
    data.save(replace(problem, name="conll2000-sample"), tmp_path)
    floor.main(tmp_path / "floor.json", tmp_path, quick=True)
    text = report.render(report.read(tmp_path), [])
    found = re.search(r"\| us a token \|.*\n.*\n\| 3 labels \| [\d.]+ \|(.*)\|(.*)\|\n", text)
    assert bool(found[1].strip()) == bool(found[2].strip()) == there
    assert "| conll2000-sample, gradient of all weights |" in text
    assert ("was not on PATH: C was left out." in text) != there
