"""Ray workers learn the same as workers in this process, also if workers are lost."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_sparsecrf.distributed.ray_engine import Ray
from spacy_sparsecrf.errors import SparseCRFError

from ..cli.commands import run
from ..conftest import Corpus
from ..toy import docs_of, tags_of
from .cases import Here, begun, learnt, steps, write_parts

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'spacy-sparsecrf[ray]'")

# Ray relies on the garbage collector to close sockets and processes.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parts(tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Start one cluster for all tests; components in this process use it."""
    settings = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 200_000_000}
    ray.init(address="local", log_to_driver=False, logging_level="ERROR", **settings)
    try:
        yield
    finally:
        ray.shutdown()


@pytest.fixture(scope="module")
def expected(folder: Path) -> bytes:
    _, pipe = begun(folder, Here(num_workers=2))
    steps(pipe)
    return learnt(pipe)


def test_two_workers_learn_the_same_though_both_are_lost(
    folder: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("spacy_sparsecrf.distributed.ray_pool._PAUSE", 0.0)
    caplog.set_level("DEBUG", "spacy")
    _, pipe = begun(folder, Ray(num_workers=2))
    team = pipe.training_run().partition.pool
    for i in (0, 1):
        pipe.update([], sgd=object())
        ray.kill(team._actors[i])
    steps(pipe, 1)
    assert learnt(pipe) == expected
    assert "worker 1 was lost and is replaced" in caplog.text
    told = re.findall(r"workers computed for .* held (\d+) to (\d+) MB", caplog.text)
    assert told and all(0 < int(low) <= int(high) for low, high in told)
    assert "worker 1 computed for" in caplog.text
    team.close()


def test_workers_that_are_lost_too_often_end_the_run(folder: Path) -> None:
    _, pipe = begun(folder, Ray(num_workers=1, max_restarts=0))
    team = pipe.training_run().partition.pool
    ray.kill(team._actors[0])
    with pytest.raises(SparseCRFError, match="SC907"):
        pipe.update([])
    team.close()


def test_errors_of_workers_are_told_as_our_own(folder: Path) -> None:
    with pytest.raises(SparseCRFError, match="SC206"):
        begun(folder, Ray(num_workers=2), {"labels": ["NN"]})


def test_more_cores_than_there_are_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spacy_sparsecrf.distributed.ray_pool._PATIENCE", 0.1)
    with pytest.raises(SparseCRFError, match=r"SC910.*num_workers = 3"):
        begun(folder, Ray(num_workers=3))


def test_a_cluster_that_is_not_there_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)

    def fail(**settings: object) -> None:
        raise ConnectionError("no one answers")

    monkeypatch.setattr("ray.init", fail)
    with pytest.raises(SparseCRFError, match=r"SC909.*no one answers"):
        begun(folder, Ray(address="ray://nowhere:10001"))


def test_files_are_annotated_by_workers(folder: Path, trained_dir: Path, tmp_path: Path) -> None:
    given = "annotate", trained_dir, folder, "-n", 2
    run(*given, "-o", tmp_path / "ray", "--engine", "ray")
    run(*given[:-2], "-o", tmp_path / "here")
    files = sorted(path.name for path in folder.glob("*.spacy"))
    assert sorted(path.name for path in (tmp_path / "ray").iterdir()) == files
    for name in files:
        own = (tmp_path / "ray" / name).read_bytes()
        assert own == (tmp_path / "here" / name).read_bytes()


# `annotate` writes the pipeline's predictions, and skips existing files.


def read(path: Path) -> list[list[str]]:
    return tags_of(list(DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)))


def test_files_are_annotated_and_those_that_are_there_stay(
    trained_dir: Path, corpus: Corpus, tmp_path: Path
) -> None:
    nlp, source = spacy.load(trained_dir), tmp_path / "in"
    source.mkdir()
    docs = docs_of(nlp, corpus.dev)
    DocBin(docs=docs[:10]).to_disk(source / "a.spacy")
    lines = [" ".join(words) for words, _ in corpus.dev[10:20]]
    (source / "b.txt").write_text("\ufeff" + "\n\n".join(lines), encoding="utf8")
    records = "".join(f"{json.dumps({'text': line})}\n" for line in lines)
    (source / "c.jsonl.gz").write_bytes(gzip.compress(records.encode()))
    (source / "notes.md").write_text("x")
    output = tmp_path / "out"
    done = run("annotate", trained_dir, source, "-o", output, "-n", 2)  # a process for each file
    assert "1 entries" in done.output and "notes.md" in done.output
    assert read(output / "a.spacy") == tags_of(list(nlp.pipe(docs[:10])))
    expected = tags_of(list(nlp.pipe(lines)))
    assert read(output / "b.spacy") == read(output / "c.spacy") == expected
    (output / "a.spacy").unlink()
    (output / "b.spacy").write_bytes(b"kept")
    assert "2 files are in" in run("annotate", trained_dir, source, "-o", output).output
    assert read(output / "a.spacy") == tags_of(list(nlp.pipe(docs[:10])))
    assert (output / "b.spacy").read_bytes() == b"kept"


def test_files_that_cannot_be_annotated_are_told(trained_dir: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "x.csv"
    wrong.write_text("a", encoding="utf8")
    given = trained_dir, wrong, "-o", tmp_path / "out"
    assert "SC920" in run("annotate", *given, code=1).output
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text("a", encoding="utf8")
    given = trained_dir, tmp_path / "one", tmp_path / "two", "-o", tmp_path / "out"
    assert "SC921" in run("annotate", *given, code=1).output
    bad = tmp_path / "bad.spacy"
    bad.write_bytes(b"no")
    latin = tmp_path / "latin.txt"
    latin.write_bytes("caf\xe9".encode("latin1"))
    given = trained_dir, latin, "-o", tmp_path / "out"
    assert "SC610" in run("annotate", *given, code=1).output
    assert "--soft" in run("annotate", *given, "-c", "sparse_crf", code=2).output
    assert "SC922" in run("annotate", trained_dir, bad, "-o", tmp_path, code=1).output
    assert "SC621" in run("annotate", trained_dir, bad, "-o", tmp_path / "out", code=1).output
    assert not (tmp_path / "out").exists()
