"""The benchmarks: what the peers get and write, and statistics that are easily wrong."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench import (
    agreement,
    brown,
    entities,
    floor,
    kernels,
    ours,
    peers,
    report,
    startup,
    targets,
    user_program,
    whole,
)
from bench.record import Options, find, ratio
from measure.data import Problem, Source, sample, sources
from measure.document import read_published
from measure.processes import Cost
from measure.race import Course
from measure.results import read_rows

from spacy_sparsecrf.features.featurizer import Featurizer

from .toy_data import FLAGS, LETTERS, PROJECT, SENTENCES

needs_gcc = pytest.mark.skipif(not shutil.which(floor.COMPILER), reason="gcc is not on PATH")


@pytest.fixture
def problems() -> dict[str, Problem]:
    """Tokens with equally many features, with pairs too, and with different numbers."""
    flags = Source("", 2, FLAGS)
    return {
        "chunks": Problem.of("chunks", sources()["conll2000"], SENTENCES),
        "letters": Problem.of("letters", sources()["nettalk-3grm"], LETTERS),
        "flags": Problem.of("flags", flags, SENTENCES),
    }


# Corpora


def test_samples_keep_their_order_and_labels() -> None:
    sentences = [[["word", f"rare{i}" if i % 40 == 0 else "common"]] for i in range(200)]
    chosen = sample(sentences, 10)
    assert chosen == sample(sentences, 10) and len(chosen) == 10 and chosen != sentences[:10]
    assert sample(sentences, 0) is sentences
    chosen = brown.covering_sample(sentences, 3, label=1)
    assert len({row[1] for rows in chosen for row in rows}) == 6 and 5 < len(chosen) <= 8


# Peers


def test_what_peers_cannot_have_is_refused(problems: dict[str, Problem]) -> None:
    with pytest.raises(ValueError, match="plain transitions"):
        next(peers.crfsuite_sequences(problems["letters"]))
    source = sources()["conll2000"]
    labels = source.labels(SENTENCES)
    corpus = source.corpus(Featurizer(source.templates, start_label=True), SENTENCES, labels)
    with pytest.raises(ValueError, match="no start label"):
        next(peers.tokens_of(Problem("x", corpus, labels), 0))


FAKE = """
import sys, time
print("    nb features: 5", flush=True)
print("* Train the model with l-bfgs", flush=True)
for i in range({n}):
    print(f"  [ {{i}}] obj={{10 - i}}  act=3  err= 1.0%/2.0% time=1.0s/2.0s", flush=True)
    time.sleep({pause})
sys.exit({code})
"""


def fake(n: int, pause: float = 0.0, code: int = 0, **limits: float) -> Course:
    command = [sys.executable, "-c", FAKE.format(n=n, pause=pause, code=code)]
    return peers.follow(command, peers.LOGS[peers.WAPITI], **limits)


def test_peers_are_followed_to_their_end_goal_or_cap() -> None:
    run = fake(4)
    assert run.n_weights == 5 and run.objective == [10, 9, 8, 7] and not run.cut
    assert run.wall == sorted(run.wall) and len(run.step_costs()) == 3
    run = fake(100, 0.02, stop_at=8.0)
    assert run.cut and len(run.objective) == 3
    run = fake(2, 60.0, cap=0.5)
    assert run.cut and len(run.objective) == 1


def test_crfsuite_has_our_objective(problems: dict[str, Problem], tmp_path: Path) -> None:
    pytest.importorskip("pycrfsuite", reason="python-crfsuite (extra `bench`) is not installed")
    problem = Problem.of("chunks", sources()["conll2000"], SENTENCES * 20)
    path, model = problem.save(tmp_path), tmp_path / "model"
    run = peers.train_crfsuite(path, model, 8)
    n_weights = len(ours.chain_loss(problem).observed_coordinates())
    assert len(run.objective) == 8
    weights = peers.crfsuite_weights(problem, model)
    found = agreement.check("CRFsuite", problem, n_weights, weights, run)
    assert found["ours"] == pytest.approx(run.objective[-1], abs=1e-3)
    run.objective[-1] *= 1.001
    with pytest.raises(ValueError, match="another problem"):
        agreement.check("CRFsuite", problem, n_weights, weights, run)


@pytest.mark.skipif(not peers.has_wapiti(), reason="wapiti is not on PATH")
@pytest.mark.parametrize("name", ["chunks", "letters", "flags"])
def test_wapiti_has_our_objective(problems: dict[str, Problem], name: str, tmp_path: Path) -> None:
    run = peers.train_wapiti(problems[name], tmp_path, 5)
    weights = peers.wapiti_weights(problems[name], tmp_path)
    assert run.n_weights == problems[name].n_potential
    assert ours.objective_at(problems[name], *weights) == pytest.approx(run.objective[-1], abs=6e-3)


def test_peers_get_no_features_of_pairs() -> None:
    templates = ["b:", "u:", "u:lower[0]", "*:shape[0]", "b:shape[1]", "*:lower[0]"]
    assert entities.plain(templates) == ["b:", "u:", "u:lower[0]", "u:shape[0]"]


def test_scores_of_whole_runs() -> None:
    gold = [["B-X", "I-X", "O"], ["B-Y"]]
    found = [["B-X", "O", "O"], ["B-Y"]]
    assert whole.score(found, gold, user_program.Kind.ENTITIES) == 50.0
    assert whole.score(found, gold, user_program.Kind.TAGS) == 75.0


# Kernels and plain C


def test_kernels_are_clocked_and_put_back(problems: dict[str, Problem]) -> None:
    def held() -> dict[str, dict]:
        modules = {n: m for n, m in sys.modules.items() if n.startswith(kernels.PACKAGE)}
        return {name: dict(vars(module)) for name, module in modules.items()}

    every, theta = ours.whole_loss(problems["flags"], 0)
    before = held()
    with kernels.clocked() as seconds:
        every.value_and_grad(theta)
    assert seconds and all(value > 0.0 for value in seconds.values())
    assert held() == before


def test_formulas_leave_sequences_without_weight_out(problems: dict[str, Problem]) -> None:
    problem = problems["flags"]
    few = replace(problem.corpus, weights=np.array([1.0, 0.0, 1.0]))
    flops, traffic = kernels.counts(replace(problem, corpus=few), "float64", kernels.WORKING)
    # 7 tokens in 2 sequences, 3 labels, padded to 8.
    assert flops == 3 * 2.0 * 3 * 8 * 5 + (kernels.EXP_FLOPS + 10) * 7 * 8
    assert traffic == 7.0 * 8 * 7 * 8
    assert kernels.counts(problem, "float64", kernels.OUTER) is None


@needs_gcc
def test_plain_c_has_the_packages_evidence_and_gradient(
    problems: dict[str, Problem], tmp_path: Path
) -> None:
    problem = floor.make_problem(8, 4, 5)
    working, theta = ours.whole_loss(problem, 0, 3.0)
    plain = floor.Chains(problem, theta, tmp_path)
    plain.fill()
    plain.infer()
    np.testing.assert_allclose(np.sort(plain.log_z), floor.infer_ours(working, theta), rtol=1e-12)
    np.testing.assert_allclose(plain.marginals.sum(axis=1), 1.0, rtol=1e-12)
    assert np.nextafter(np.zeros(1), 1.0)[0] * 2.0 > 0.0, "subnormal numbers are off from now on"
    working, theta = ours.whole_loss(problems["flags"], 0, 1.0)
    plain = floor.Chains(problems["flags"], theta, tmp_path)
    plain.differentiate()
    _, gradient = working.value_and_grad(theta)
    split, n = len(plain.unigram), problems["flags"].n_labels
    np.testing.assert_allclose(plain.unigram, gradient[:split], atol=1e-12)
    pairs = plain.counts[:, :n] - working.observed[split:].reshape(n, n)
    np.testing.assert_allclose(pairs, gradient[split:].reshape(n, n), atol=1e-12)


# The report


def measured(folder: Path, benchmark: str, what: str, sides: dict[str, list[float]]) -> list[dict]:
    """Rows of a benchmark on chunks, written and read back."""
    record = Options(folder).record(benchmark, repeats=3)
    costs = {tool: [Cost(value, value) for value in walls] for tool, walls in sides.items()}
    record.compare("conll2000", what, costs)
    return read_rows(record.path)


def test_a_record_replaces_its_section_and_its_targets(tmp_path: Path) -> None:
    published = read_published(PROJECT / "BENCHMARKS.md")
    assert report.render({}, [], published, False) == (PROJECT / "BENCHMARKS.md").read_text("utf-8")
    sides = {"sparsecrf": [0.3, 0.2, 0.25], "Wapiti": [2.0, 2.5, 3.0]}
    rows = measured(tmp_path, "gradient", "all weights", sides)
    (tmp_path / "B.md").write_text(report.render({"gradient": rows}, [], published, False), "utf-8")
    after = read_published(tmp_path / "B.md")
    changed = {k for k, v in after.sections.items() if v != published.sections[k]}
    assert changed == {"Targets", "One gradient"} and after.head[0] == published.head[0]
    assert after.sections["One gradient"][0] == published.sections["One gradient"][0]
    row = "| conll2000: all weights | 0.25 s (0.25) | 2.5 s (2.5) | 10.0x |"
    assert (
        row in after.sections["One gradient"][1]
        and "Settings: repeats 3." in after.sections["One gradient"]
    )
    pairs = zip(*(x.sections["Targets"][0].splitlines() for x in (published, after)), strict=True)
    new = [line for old, line in pairs if old != line]
    assert new and all("full gradient" in line or "observed pairs" in line for line in new)
    assert "| conll2000: full gradient, Wapiti | 10.0x | 12x | 20x | missed |" in new
    # The machine of the section that was measured comes first.
    assert after.measured.splitlines()[2].startswith(
        f"| date | {rows[0]['session']['machine']['date']}"
    )


def test_rows_of_whole_runs_that_were_not_measured_again_stay() -> None:
    published = read_published(PROJECT / "BENCHMARKS.md").sections["Whole runs"]
    body = "| a | b |\n| --- | ---: |\n| EWT | sparsecrf | 1 |"
    rows = report.with_kept_rows(body, published, 2).splitlines()
    assert "| EWT | sparsecrf | 1 |" in rows and sum("| EWT |" in row for row in rows) == 4


def test_ratios_verdicts_and_differences(tmp_path: Path) -> None:
    fast, slow = {"wall": [1.0]}, {"wall": [4.0], "at_least": True}
    assert ratio(fast, slow) == (4.0, True)
    assert ratio(slow, fast) is ratio(fast, None) is None
    assert targets.verdict(4.0, 5.0, 9.0, bound=True) == "not known"
    assert targets.verdict(4.0, 5.0, 9.0) == "missed"
    assert targets.verdict(6.0, 5.0, 9.0) == "reached"
    record = Options(tmp_path).record("startup")
    # The median of differences within repetitions, not the difference of medians.
    for what, walls in ((startup.IMPORT, (1.2, 3.3, 2.1)), (startup.NOTHING, (1, 3, 2))):
        record.compare(what, startup.WHAT, {"sparsecrf": [Cost(wall, 0.0) for wall in walls]})
    rows = read_rows(record.path)
    assert startup.added_seconds(rows, startup.IMPORT) == pytest.approx(0.2)
    assert startup.added_seconds(rows, startup.COLD) is None
    assert find(rows, startup.IMPORT, startup.WHAT, "sparsecrf")["threads"] == 1
