"""Ahead-of-time compilation by `warmup`."""

import os
import shutil
import subprocess
import sys


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
    ignored = shutil.ignore_patterns("minibatch.finish_pass*", "viterbi.viterbi*")
    shutil.copytree(everything_compiled.cache, cache, ignore=ignored)
    first = run_process(["-m", "spacy_sparsecrf", "warmup"], str(cache))
    assert "Kernels are compiled" in first.stdout
    # The command logs its progress, but no notice of compilation, which the user requested.
    lines = first.stderr.splitlines()
    assert all(line.startswith("[") for line in lines) and "once after" not in first.stderr
    compiled = sorted(path.name for path in cache.rglob("*.nbc"))
    assert any(name.startswith("minibatch.finish_pass") for name in compiled)
    assert any(name.startswith("viterbi.viterbi") for name in compiled)
    again = run_process(["-m", "spacy_sparsecrf", "warmup", "--prediction"], str(cache))
    assert sorted(path.name for path in cache.rglob("*.nbc")) == compiled
    assert "Compiling" not in again.stderr
