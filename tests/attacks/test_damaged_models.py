"""Random damages of other programs' model files are refused with a code, or the file gives labels.

`python -m study.damages` tries more of them.
"""

import pytest

damages = pytest.importorskip("study.damages", reason="limits of processes are those of POSIX")
N = 500


@pytest.mark.parametrize(("name", "modules"), damages.ROADS)
def test_damages_are_refused_with_a_code_or_give_labels(name, modules):
    if name == "python-crfsuite":
        pytest.importorskip("pycrfsuite", reason="python-crfsuite (extra `bench`) is not installed")
    ended = damages.tried(name, modules, N)
    assert ended.returncode == 0, ended.stderr
    counts = {end: int(count) for count, end in map(str.split, ended.stdout.split(", "))}
    assert sum(counts.values()) == N and counts["labels"] and counts["SC631"]
