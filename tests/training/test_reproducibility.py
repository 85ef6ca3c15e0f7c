"""Training gives the same files in every process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import SHIPPED_CONFIG
from ..support.commands import run_spacy
from ..support.processes import run_python


def read_files(directory: Path, replace: Callable[[bytes], bytes]) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): replace(path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.usefixtures("level_of_the_logger")
def test_model_directories_are_the_same_whatever_hash_seed_and_threads(corpus, tmp_path):
    """Compares this process, with a random hash seed, and another one with two threads."""
    here, there = tmp_path / "here", tmp_path / "there"
    options = [SHIPPED_CONFIG, *corpus.arguments, "--training.max_steps", "3"]
    n_threads = "--components.sparse_crf.n_threads"
    run_spacy("train", *options, "--output", here, n_threads, 1)
    command = ["-m", "spacy", "train", *options, n_threads, 2, "--output", there]
    run_python(*command, env={"PYTHONHASHSEED": "2"})
    files = [
        read_files(path / "model-last", lambda data, n=n: data.replace(b"n_threads = %d" % n, b""))
        for n, path in ((1, here), (2, there))
    ]
    assert files[0].keys() == files[1].keys()
    assert [name for name in files[0] if files[0][name] != files[1][name]] == []
    assert "sparse_crf/model" in files[0]
