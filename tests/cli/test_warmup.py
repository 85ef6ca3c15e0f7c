"""Ahead-of-time compilation by `warmup`."""

import os
import shutil
import subprocess
import sys


def test_after_warmup_nothing_is_left_to_compile(everything_compiled, tmp_path):
    assert "Kernels are compiled" in everything_compiled.told
    # The command logs its progress, but no notice of compilation, which the user requested.
    lines = everything_compiled.log.splitlines()
    assert all(line.startswith("[") for line in lines)
    assert "once after" not in everything_compiled.log
    cache = tmp_path / "cache"
    shutil.copytree(everything_compiled.cache, cache)
    compiled = sorted(path.name for path in cache.rglob("*.nbc"))
    assert any(name.startswith("minibatch.finish_pass") for name in compiled)
    assert any(name.startswith("viterbi.viterbi") for name in compiled)
    command = [sys.executable, "-m", "spacy_sparsecrf", "warmup", "--prediction"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    again = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert again.returncode == 0, again.stderr
    assert sorted(path.name for path in cache.rglob("*.nbc")) == compiled
    assert "Compiling" not in again.stderr
