"""The benchmarks: what they hand to the peers, what they read from them."""

import importlib
import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from .bench_cases import FLAGS, LETTERS, SENTENCES

PROJECT = Path(__file__).resolve().parents[2] / "project"

brown = importlib.import_module("bench.brown")
crfsuite = importlib.import_module("bench.crfsuite")
crfsuite_features = importlib.import_module("bench.crfsuite_features")
script = importlib.import_module("bench.crfsuite_script")
data = importlib.import_module("bench.data")
follow = importlib.import_module("bench.follow")
objective = importlib.import_module("bench.objective")
peer_files = importlib.import_module("bench.peer_files")
report = importlib.import_module("bench.report")
startup = importlib.import_module("bench.startup")
templates = importlib.import_module("bench.templates")
wapiti = importlib.import_module("bench.wapiti")


@pytest.fixture
def problems() -> dict:
    """Tokens with equally many tests, with bigram tests too, and with different numbers."""
    sources = data.sources()
    flags = data.Source((), 0, 2, FLAGS)
    return {
        "chunks": data.encode("chunks", sources["conll2000"], SENTENCES),
        "letters": data.encode("letters", sources["nettalk-3grm"], LETTERS),
        "flags": data.encode("flags", flags, SENTENCES),
    }


def repeated(problem, times: int):
    """The same problem with its sentences several times, so that there is something to learn."""
    sentences = SENTENCES * times
    return data.encode(problem.name, data.sources()["conll2000"], sentences)


# Corpora


def test_ngrams_are_centred_windows() -> None:
    assert data.centred_ngrams(1) == ["*:", "*:orth[0]"]
    assert data.centred_ngrams(5)[2:] == [
        "*:orth[-1]|orth[0]|orth[1]",
        "*:orth[-2]|orth[-1]|orth[0]|orth[1]|orth[2]",
    ]


def test_problem_survives_storage(problems: dict, tmp_path: Path) -> None:
    problem = problems["letters"]
    stored = data.load(data.save(problem, tmp_path))
    assert (stored.name, stored.labels) == ("letters", ("A", "B", "C"))
    assert stored.n_potential == problem.n_potential
    assert vars(stored.corpus).keys() == vars(problem.corpus).keys()
    for name, value in vars(problem.corpus).items():
        np.testing.assert_array_equal(getattr(stored.corpus, name), value)


def test_sample_keeps_order_and_is_always_the_same() -> None:
    sentences = [[[str(i)]] for i in range(50)]
    chosen = data.sample(sentences, 10)
    assert chosen == sorted(chosen, key=lambda rows: int(rows[0][0])) == data.sample(sentences, 10)
    assert len(chosen) == 10 and chosen != sentences[:10]
    assert data.sample(sentences, 0) is sentences


def test_covering_sample_has_every_label() -> None:
    sentences = [[["word", f"rare{i}" if i % 40 == 0 else "common"]] for i in range(200)]
    chosen = brown.covering_sample(sentences, 3, label=1)
    labels = {row[1] for rows in chosen for row in rows}
    assert len(labels) == 6
    assert 5 < len(chosen) <= 8


# What peers are given


def wapiti_counts(files) -> int:
    """How many weights Wapiti makes of its input: Y a unigram observation, Y² a bigram one."""
    rows = [line.split() for line in files.train.read_text().splitlines() if line]
    labels = {row[-1] for row in rows}
    if files.pattern is None:
        observations = {value for row in rows for value in row[:-1]}
    else:
        patterns = files.pattern.read_text().split()
        observations = {
            f"{pattern[0].lower()}{row[i]}" for row in rows for i, pattern in enumerate(patterns)
        }
    n = len(labels)
    return sum(n if value.startswith("u") else n * n for value in observations)


@pytest.mark.parametrize(("name", "regular"), [("chunks", 1), ("letters", 1), ("flags", 0)])
def test_wapiti_gets_our_weights(problems: dict, name: str, regular: bool, tmp_path: Path) -> None:
    problem = problems[name]
    files = peer_files.write_wapiti(problem, tmp_path)
    assert (files.pattern is not None) == regular
    assert wapiti_counts(files) == problem.n_potential
    blocks = files.train.read_text().strip().split("\n\n")
    lengths = np.diff(problem.corpus.offsets)
    assert [len(block.split("\n")) for block in blocks] == lengths.tolist()
    assert len(files.dev.read_text().split("\n\n")) == 2
    gold = [line.split()[-1] for block in blocks for line in block.split("\n")]
    assert gold == [str(label) for label in problem.corpus.labels]


def test_wapiti_columns_are_our_tests(problems: dict, tmp_path: Path) -> None:
    problem = problems["letters"]
    files = peer_files.write_wapiti(problem, tmp_path)
    patterns = files.pattern.read_text().split()
    assert patterns == [*(f"U%x[0,{i}]" for i in range(3)), *(f"B%x[0,{i}]" for i in range(3, 6))]
    block = files.train.read_text().split("\n\n")[0].split("\n")
    for line, (unigrams, bigrams, label) in list(
        zip(block, peer_files.tokens_of(problem.corpus, 0), strict=True)
    )[1:]:
        assert list(map(int, line.split())) == [*unigrams, *bigrams, int(label)]
    # A first token has no pair: the second token's tests stand in.
    assert block[0].split()[3:6] == block[1].split()[3:6]


def test_crfsuite_and_crfpp_get_our_tests(problems: dict, tmp_path: Path) -> None:
    corpus = problems["flags"].corpus
    attributes, labels = next(peer_files.crfsuite_sequences(corpus))
    assert labels == ["0", "1", "2"]
    assert [[int(a[1:]) for a in token] for token in attributes] == [
        tests for tests, _, _ in peer_files.tokens_of(corpus, 0)
    ]
    with pytest.raises(ValueError, match="plain transitions"):
        next(peer_files.crfsuite_sequences(problems["letters"].corpus))
    with pytest.raises(ValueError, match="as many unigram tests"):
        peer_files.write_crfpp(problems["flags"], tmp_path)
    template, train = peer_files.write_crfpp(problems["chunks"], tmp_path)
    assert template.read_text().split() == [*(f"U:%x[0,{i}]" for i in range(19)), "B"]
    assert {len(line.split()) for line in train.read_text().splitlines()} == {0, 20}


def test_start_label_is_refused() -> None:
    source = data.sources()["conll2000"]
    featurizer = data.Featurizer(source.templates, start_label=True)
    docs = list(data.make_docs(source, SENTENCES, data.spacy.blank("en").vocab))
    builder = data.CorpusBuilder()
    builder.add(featurizer(docs, "docs"), np.zeros(8, dtype=np.int32))
    with pytest.raises(ValueError, match="no start label"):
        next(peer_files.tokens_of(builder.build(), 0))


def test_features_of_a_dict_user() -> None:
    first, second = crfsuite_features.tagging_items(["The", "cats"], ["", ""])
    assert first["begin"] and first["istitle"] and first["+1lower"] == "cats"
    assert second["suffix3"] == "ats" and second["-1istitle"] and second["end"]
    first, second = crfsuite_features.chunking_items(["The", "cats"], ["DT", "NNS"])
    assert len(first) == len(data.chunking_templates()) - 1
    assert first["w-1|w"] == "_B-1|The" and first["t|t+1|t+2"] == "DT|NNS|_B+1"
    assert second["w-1|w"] == "The|cats" and second["t-2|t-1"] == "_B-1|DT"


# The same objective


def agrees(problem, weights: tuple, its: float, digits: float) -> None:
    ours = importlib.import_module("bench.ours")
    assert ours.objective_at(problem, *weights) == pytest.approx(its, abs=digits)


def test_crfsuite_has_our_objective(problems: dict, tmp_path: Path) -> None:
    pytest.importorskip("pycrfsuite", reason="python-crfsuite (extra `bench`) is not installed")
    problem = repeated(problems["chunks"], 20)
    path, model = data.save(problem, tmp_path), tmp_path / "model"
    run = crfsuite.train(path, model, 8)
    ours = importlib.import_module("bench.ours")
    assert run.n_weights == len(ours.chain_loss(problem).observed_coordinates())
    assert len(run.points) == 8 and run.points[-1].wall > 0.0
    agrees(problem, crfsuite.weights(problem, model), run.points[-1].objective, 1e-3)


@pytest.mark.skipif(not shutil.which("wapiti"), reason="wapiti is not on PATH")
@pytest.mark.parametrize("name", ["chunks", "letters", "flags"])
def test_wapiti_has_our_objective(problems: dict, name: str, tmp_path: Path) -> None:
    problem = problems[name]
    run = wapiti.train(problem, tmp_path, 5)
    assert run.n_weights == problem.n_potential
    agrees(problem, wapiti.weights(problem, tmp_path), run.points[-1].objective, 0.006)


# The machine


def test_what_is_added_is_told_within_repetitions() -> None:
    costs = [[startup.Cost(wall, 0.0) for wall in walls] for walls in ((1.2, 3.3, 2.1), (1, 3, 2))]
    assert startup.added_seconds(*costs) == pytest.approx(0.2)


def test_installed_and_hidden_differ_in_this_package_only(tmp_path: Path) -> None:
    found = {}
    for hidden in (True, False):
        directory = tmp_path / str(hidden)
        directory.mkdir()
        startup.link_installed(directory, hidden=hidden)
        found[hidden] = {path.name for path in directory.iterdir()}
    assert found[False] - found[True] == {"spacy_sparsecrf", "spacy_sparsecrf-0.dist-info"}
    points = tmp_path / "False" / "spacy_sparsecrf-0.dist-info" / "entry_points.txt"
    assert "sparse_crf" in points.read_text()


def test_templates_meet_words_for_the_first_time_and_again(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    docs = [Doc(nlp.vocab, words=["Being", "well-known", "in", "1999", "."])] * 3
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    templates.main(tmp_path / "templates.json", tmp_path / "a.spacy", quick=True)
    record = report.read(tmp_path)["templates"]
    places = {(one.what, one.tool, one.items) for one in record.measurements}
    assert places == {(name, tool, 15) for name in templates.SETS for tool in ("cold", "steady")}
    text = report.render({"templates": record}, [])
    assert "15 tokens, 5 distinct words." in text and "6 regular expressions | " in text


def test_goal_is_reached_or_bounded() -> None:
    points = [follow.Point(float(t), None, 10.0 - t) for t in range(5)]
    one = objective.Comparison("d", "w", 1, {})
    found = objective.measure(one, "Wapiti", [follow.Run(points)], goal=7.5)
    assert found.wall == [3.0] and not found.at_least
    found = objective.measure(one, "Wapiti", [follow.Run(points)], goal=1.0)
    assert found.wall == [4.0] and found.at_least and "6" in found.note


def test_best_objective_of_a_run_that_was_cut_is_doubted() -> None:
    fell = follow.Run([follow.Point(1.0, None, 5.0)], cut=True)
    ended = follow.Run([follow.Point(1.0, None, 6.0)])
    assert "sparsecrf's" in objective.doubt({"sparsecrf": [fell], "Wapiti": [ended]})
    ended.points.append(follow.Point(2.0, None, 4.0))
    assert objective.doubt({"sparsecrf": [fell], "Wapiti": [ended]}) == ""


def test_plots_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib (extra `bench`) is not installed")
    run = {"wall": [1.0, 2.0], "objective": [20.0, 10.0]}
    race = {"runs": {"sparsecrf": [run], "Wapiti": [run]}}
    for name in ("a", "b"):
        objective.draw(race, 10.0, "title", tmp_path / name)
    assert (tmp_path / "a.png").stat().st_size > 1000
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("kind", list(script.Kind))
def test_a_users_program_trains_and_labels(kind, tmp_path: Path) -> None:
    pytest.importorskip("pycrfsuite")
    data = tmp_path / "data.tsv"
    lines = ["\n".join("\t".join(row) for row in rows) for rows in SENTENCES * 9]
    data.write_text("\n\n".join(lines) + "\n\n", encoding="utf8")
    assert list(script.read(data)) == SENTENCES * 9
    paths = data, tmp_path / "model", tmp_path / "labels"
    script.train(kind, *paths[:2], 0.1, 0.1, 20)
    script.label(kind, *paths)
    found = [line.split("\t") for line in paths[2].read_text().splitlines()]
    assert found == [[row[-1] for row in rows] for rows in SENTENCES * 9]


def test_shapes_of_a_users_program() -> None:
    assert script.shape("McDonalds-1234567") == "XxXxxxx-dddd"
    assert script.short_shape("McDonalds-1234567") == "XxXx-d"
