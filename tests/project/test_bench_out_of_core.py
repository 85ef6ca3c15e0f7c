"""The benchmark of corpora in files: what a process of it trains on, and what is reported."""

import importlib
import json
from pathlib import Path

import pytest

from ..toy import make_sentences

bench = importlib.import_module("bench.out_of_core")
child = importlib.import_module("bench.out_of_core_child")
measurements = importlib.import_module("bench.measurements")
timing = importlib.import_module("bench.timing")


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.tsv"
    sentences = make_sentences(20, seed=1)
    blocks = ["\n".join(map("\t".join, zip(*sentence, strict=True))) for sentence in sentences]
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf8")
    return path


def test_both_train_the_same_and_say_what_they_took(words: Path, tmp_path: Path, capsys):
    found = []
    for cache_dir in ("", str(tmp_path / "corpus")):
        child.main(words, 2, 1, cache_dir, sentences=5)
        found.append(json.loads(capsys.readouterr().out))
    assert (tmp_path / "corpus" / "encoded").is_dir()
    assert found[0]["model"] == found[1]["model"]
    for figures in found:
        assert 10.0 < figures["anonymous MB"] < figures["resident MB"]
    child.main(words, 3, 1, "", sentences=5)
    assert json.loads(capsys.readouterr().out)["objective"] > found[0]["objective"]


def test_models_that_differ_are_told(words: Path, tmp_path: Path, monkeypatch):
    def train(path: Path, times: int, cache_dir: str, sentences: int):
        model = f"{times}{cache_dir if times == 10 else ''}"
        peaks = {"resident MB": 300.0, "anonymous MB": 200.0, "model": model}
        return timing.ProcessCost(2.0, 1.0, 310.0, ""), peaks

    monkeypatch.setattr(bench, "train", train)
    monkeypatch.setattr(bench, "find", lambda *arguments, **options: words)
    bench.main(tmp_path / "record.json", [], tmp_path / "scratch", quick=True)
    record = measurements.read_record(tmp_path / "record.json")
    assert record.remarks == [
        "brown x 1: both models are the same bytes.",
        "brown x 10: both models are NOT the same.",
    ]
    peak = record.find("brown x 10", bench.RESIDENT, bench.FILES)
    assert peak.median == 310.0
    assert record.find("brown x 1", bench.ANONYMOUS, bench.MEMORY).median == 200.0
