"""Ahead-of-time compilation by `warmup`."""

import os
import shutil
import subprocess
import sys

import pytest

from spacy_sparsecrf.kernels import cache_dir

from .commands import run


def run_process(arguments: list[str], cache: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done


def test_after_warmup_nothing_is_left_to_compile(everything_compiled, tmp_path):
    cache = tmp_path / "cache"
    # Without one kernel of training and one of prediction, which are recompiled.
    ignored = shutil.ignore_patterns("minibatch.minibatch_pass*", "viterbi.viterbi*")
    shutil.copytree(everything_compiled.cache, cache, ignore=ignored)
    first = run_process(["-m", "spacy_sparsecrf", "warmup"], str(cache))
    assert "Kernels are compiled" in first.stdout
    # The command logs its progress, but no notice of compilation, which the user requested.
    lines = first.stderr.splitlines()
    assert all(line.startswith("[") for line in lines) and "once after" not in first.stderr
    compiled = sorted(path.name for path in cache.rglob("*.nbc"))
    assert any(name.startswith("minibatch.minibatch_pass") for name in compiled)
    assert any(name.startswith("viterbi.viterbi") for name in compiled)
    again = run_process(["-m", "spacy_sparsecrf", "warmup", "--prediction"], str(cache))
    assert sorted(path.name for path in cache.rglob("*.nbc")) == compiled
    assert "Compiling" not in again.stderr


@pytest.mark.parametrize("variable", ["", "/kernels"])
def test_clearing_reports_what_it_removes(tmp_path, monkeypatch, variable):
    monkeypatch.setenv("NUMBA_CACHE_DIR", variable)
    monkeypatch.setattr(cache_dir, "user_cache", lambda: tmp_path)
    monkeypatch.setattr(cache_dir, "_PACKAGE", tmp_path / "package")
    version = tmp_path / "0.1.0-numba-0.68.1"
    (version / "kernels").mkdir(parents=True)
    (version / "kernels" / "kernel.nbi").write_bytes(bytes(2_100_000))
    output = " ".join(run("warmup", "--clear").output.split())
    assert f"Removed 1 files (2.1 MB) from {version}" in output and not version.exists()
    assert ("NUMBA_CACHE_DIR, /kernels" in output) == bool(variable)
    assert f"No compiled kernels in {tmp_path}" in " ".join(run("warmup", "--clear").output.split())
