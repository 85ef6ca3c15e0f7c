"""Whole training runs: the peer's features and scores, samples of the stack, and the tables."""

import ast
import json
from importlib.util import find_spec
from pathlib import Path
from subprocess import CalledProcessError

import numpy as np
import pytest
import srsly
from measure.processes import run
from measure.report import rows_of
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..support.projects import run as run_command
from ..support.projects import write_all

strings = pytest.importorskip("bench.strings")
sampled = pytest.importorskip("bench.sampled")
whole = pytest.importorskip("bench.whole")
intervals = pytest.importorskip("bench.intervals")


@pytest.mark.parametrize(
    ("words", "i", "there", "missing"),
    [
        (
            "Ríos secos",
            0,
            "bias word=Ríos lower=ríos shape=Xxx first1=r last3=íos istitle",
            "first4=ríos",
        ),
        ("Ríos secos", 1, "-1:lower=ríos -2:lower= -1:pair=ríos|secos 1:shape=", "istitle"),
        ("AB-2024", 0, "shape=XX-dd last4=2024 isupper 0:pair=ab-2024|", "isdigit"),
    ],
)
def test_features_of_the_peer_are_strings(words, i, there, missing):
    found = strings.features(words.split())[i]
    assert set(there.split()) <= set(found)
    assert missing not in found
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("pipe", "labels", "key", "score"),
    [
        # An entity may begin with I, as conlleval reads it.
        ("ner", ["I-P", "I-P", "O", "B-Q"], "ents_f", 1.0),
        ("ner", ["B-P", "O", "O", "B-Q"], "ents_f", 0.5),
        ("tagger", ["A", "A", "B", "A"], "tag_acc", 0.75),
    ],
)
def test_peer_is_scored_by_the_scorer_of_spacys_pipe(
    pipe, labels, key, score, tmp_path, monkeypatch
):
    class Tagger:
        def open(self, path):
            assert path == "model"

        def tag(self, features):
            return labels

    monkeypatch.setattr(strings.pycrfsuite, "Tagger", Tagger)
    words = ["Ana", "Ruiz", "y", "Bo"]
    gold = {"ents": ["B-P", "I-P", "O", "B-Q"]} if pipe == "ner" else {"tags": list("AABB")}
    doc = Doc(Vocab(), words, **gold)
    DocBin(["TAG", "ENT_IOB", "ENT_TYPE"], docs=[doc]).to_disk(tmp_path / "gold.spacy")
    assert strings.score(Path("model"), pipe, str(tmp_path / "gold.spacy"))[key] == score


def _functions(package: str) -> list[str]:
    """Return FILE:FUNCTION of all functions of a package."""
    (folder,) = find_spec(package).submodule_search_locations
    return [
        f"{path}:{node.name}"
        for path in Path(folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8")))
        if isinstance(node, ast.FunctionDef)
    ]


def test_groups_of_samples_name_functions():
    names = [*_functions("spacy_sparsecrf"), *_functions("spacy.training")]
    names.append(f"{Language.to_disk.__code__.co_filename}:to_disk")
    for pattern in "|".join(sampled.GROUPS.values()).split("|"):
        assert pattern == "importlib" or any(pattern in name for name in names), pattern


def test_samples_of_a_run_are_seconds_by_group():
    cost = run(
        ["python", "-m", "bench.sampled", "timeit", "-n", "1", "-r", "1", "sum(range(4_000_000))"]
    )
    *output, last = cost.output.splitlines()
    seconds = json.loads(last)
    assert "1 loop" in output[0]
    assert set(seconds) <= set(sampled.GROUPS)
    assert 0.0 < seconds["rest"] <= sum(seconds.values()) <= cost.cpu


def test_failure_of_a_sampled_run_is_one():
    with pytest.raises(CalledProcessError):
        run(["python", "-m", "bench.sampled", "timeit", "unknown()"])


def test_chosen_rows_are_measured_again_and_others_stay(tmp_path, monkeypatch):
    write_all(tmp_path)
    monkeypatch.setenv("SPARSECRF_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run_command(["python", "-m", "measure.convert", "conll2002-es", "corpus"])
    name, path = "CoNLL-2002 es, 50 sentences", tmp_path / "metrics" / "bench" / "whole.jsonl"
    base = ["python", "-m", "bench", "whole", "--quick", "--name", name]
    for tool in whole.PEERS:
        run_command([*base, "--tool", tool])
    rows = [row for row in srsly.read_jsonl(path) if "tool" in row]
    assert [row["tool"] for row in rows] == list(whole.PEERS)
    assert all(row["cpu"][0] > 0.0 and row["mb"] > 0.0 and row["model_mb"] > 0.0 for row in rows)
    shown = rows_of(whole.tables(rows))
    assert [row[:2] for row in shown] == [[name, tool] for tool in whole.PEERS]


def test_tables_of_threads_and_samples():
    common = {"mb": 100.0, "digest": "a"}
    rows = [
        {**common, "data": data, "tool": tool, "wall": [wall], "cpu": [3.0]}
        for data in ("EWT, 40 sentences", "EWT, 80 sentences")
        for tool, wall in (("1", 3.0), ("2", 2.0))
    ]
    rows[-1]["digest"] = "b"
    costs = ["3", "3", "3", "2", "100", "100", "1.50x"]
    expected = [["EWT, 40 sentences", *costs, "yes"], ["EWT, 80 sentences", *costs, "no"]]
    assert rows_of(whole.scaling_table(rows)) == expected
    row = {"data": "EWT", "tool": "sampled", "cpu": [4.2], "seconds": {"saving": 1.0, "rest": 3.0}}
    (found,) = rows_of(whole.sampled_table([row]))
    shares = {"saving": "25 %", "rest": "75 %"}
    assert found == ["EWT", "4.2", *(shares.get(group, "0 %") for group in sampled.GROUPS)]


def test_intervals_of_scores_are_those_of_drawn_documents():
    # A hundred documents of one entity, of which half are found: the standard error is 5 %.
    counts = np.array([[1, 1, 1]] * 50 + [[0, 1, 1]] * 50)
    scores = intervals.draws(counts)
    low, high = intervals.interval(scores[1:])
    assert scores[0] == 50.0 and abs(low - 40.2) < 1.0 and abs(high - 59.8) < 1.0
    row = {"data": "es", "tool": "sparsecrf", "documents": 100, "test": [50.0, low, high]}
    (shown,) = rows_of(intervals.tables([row]))
    assert shown[:4] == ["es", "sparsecrf", "100", "50.00"] and shown[5:] == ["", ""]
