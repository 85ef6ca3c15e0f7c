"""Training gives the same files in every process."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import SHIPPED_CONFIG
from ..support.commands import run_spacy


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
    command = [sys.executable, "-m", "spacy", "train", *map(str, options), n_threads, "2"]
    done = subprocess.run(
        [*command, "--output", str(there)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "2"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    files = [
        read_files(path / "model-last", lambda data, n=n: data.replace(b"n_threads = %d" % n, b""))
        for n, path in ((1, here), (2, there))
    ]
    assert files[0].keys() == files[1].keys()
    assert [name for name in files[0] if files[0][name] != files[1][name]] == []
    assert "sparse_crf/model" in files[0]
