"""The same training gives the same files, whatever the process."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from spacy_sparsecrf.distributed.training import WorkerShard

from ..conftest import SHIPPED_CONFIG, Corpus
from ..reference import random_problem


def read_files(directory: Path, replace: Callable[[bytes], bytes]) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): replace(path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_model_directories_are_the_same_whatever_hash_seed_and_threads(
    corpus: Corpus, tmp_path: Path
):
    directories = []
    for hash_seed, n_threads in (("1", 1), ("2", 2)):
        output = tmp_path / hash_seed
        command = [sys.executable, "-m", "spacy", "train", str(SHIPPED_CONFIG), *corpus.arguments]
        command += ["--output", str(output), "--training.max_steps", "3"]
        command += ["--components.sparse_crf.n_threads", str(n_threads)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        setting = f"n_threads = {n_threads}".encode()
        directories.append(
            read_files(output / "model-last", lambda data, s=setting: data.replace(s, b""))
        )
    assert directories[0].keys() == directories[1].keys()
    different = [name for name in directories[0] if directories[0][name] != directories[1][name]]
    assert different == []
    assert "sparse_crf/model" in directories[0]


# What a member of a run tells of its part.


def test_digests_do_not_depend_on_the_numbers_of_sets() -> None:
    problem, _ = random_problem(3, 3, [4, 3, 2])
    corpus = problem.corpus
    corpus.labels[[1, 5]], corpus.labels[7] = [-2, -3], -1
    sets = np.array([[True, True, False], [False, True, True]])
    one, other, third = WorkerShard(), WorkerShard(), WorkerShard()
    one.corpus = replace(corpus, sets=sets)
    swapped = corpus.labels.copy()
    swapped[[1, 5]] = [-4, -2]
    other.corpus = replace(corpus, labels=swapped, sets=np.array([sets[1], ~sets[1], sets[0]]))
    third.corpus = replace(corpus, sets=sets[::-1])
    for share in (one, other, third):
        share.shard_ptr = np.array([0, 1, 1, 3])
    assert one.digests() == other.digests()
    assert one.digests()[1:] != third.digests()[1:] and one.digests()[0] != third.digests()[0]
