"""Atomic writes: faults at any call, and power cuts at any point, leave complete files."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spacy_sparsecrf.atomic_write import write_files
from spacy_sparsecrf.errors import SparseCRFError

OLD = {"a": b"old a", "b": b"old b"}
NEW = {"a": b"new a", "b": None, "c": b"new c"}
AFTER = {"a": b"new a", "c": b"new c"}
PART = ".0123abcd.part"
Calls = list[tuple[str, str, str]]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def watch(patch: pytest.MonkeyPatch, fails_at: int = 0) -> Calls:
    """Record calls, and let call `fails_at` fail."""
    calls: Calls = []

    def watched(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def inner(*args: object, **kwargs: object) -> object:
            first, *others = args
            if name == "fsync":
                first = os.readlink(f"/proc/self/fd/{first}")
            calls.append((name, str(first), str(others[0]) if others else ""))
            if len(calls) == fails_at:
                raise OSError(errno.ENOSPC, "made up")
            return call(*args, **kwargs)

        return inner

    for owner, name in ((os, "fsync"), (os, "replace"), (os, "link")):
        patch.setattr(owner, name, watched(name, getattr(owner, name)))
    for name in ("open", "unlink"):
        patch.setattr(Path, name, watched(name, getattr(Path, name)))
    return calls


@pytest.fixture
def folder(tmp_path) -> Path:
    for name, data in OLD.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.mark.skipif(os.name != "posix", reason="needs pipes")
def test_what_is_no_file_is_not_replaced(folder):
    os.mkfifo(folder / "pipe")
    with pytest.raises(SparseCRFError, match="pipe cannot be written: it is not a file"):
        write_files(folder, {"a": b"", "pipe": b""}, "OUTPUT")
    assert (folder / "pipe").is_fifo() and (folder / "a").read_bytes() == OLD["a"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_fault_at_any_call_leaves_all_or_nothing(folder):
    for fails_at in range(1, 100):
        with pytest.MonkeyPatch.context() as patch:
            calls = watch(patch, fails_at)
            try:
                write_files(folder, NEW, "a setting")
            except SparseCRFError as error:
                assert str(error).startswith("[SC319]")
                assert str(folder) in str(error) and "a setting" in str(error)
                # Links that cannot be removed are harmless.
                left = {name for name in contents(folder) if name.endswith(".old")}
                assert calls[-1][0] != "unlink" or len(left) <= 1
                assert {k: v for k, v in contents(folder).items() if k not in left} == OLD
                continue
            if len(calls) < fails_at:
                return
            assert {k: v for k, v in contents(folder).items() if k[-4:] != ".old"} == AFTER
        for name, data in OLD.items():
            (folder / name).write_bytes(data)
        (folder / "c").unlink()
    raise AssertionError("no end")


def test_errors_of_writing_leave_no_folder(tmp_path):
    with pytest.raises(TypeError, match="bytes"):
        write_files(tmp_path / "x" / "y", {"a": b"1", "b": "2"}, "a setting")
    assert not list(tmp_path.iterdir())
    with pytest.raises(SparseCRFError, match="SC319"):
        (tmp_path / "file").write_bytes(b"")
        write_files(tmp_path / "file", {"a": b"1"}, "a setting")


@pytest.mark.parametrize("links", [True, False])
def test_files_are_replaced_made_and_removed_with_and_without_links(folder, monkeypatch, links):
    def refuse(*args: object) -> None:
        raise OSError(errno.EPERM, "no links")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    write_files(folder, NEW, "a setting")
    assert contents(folder) == AFTER


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_after_a_power_cut_there_is_the_old_or_the_new_file(folder, monkeypatch):
    """Unsynced data is lost; names may have been written early, in their order so far."""
    monkeypatch.setattr("spacy_sparsecrf.atomic_write.token_hex", lambda _: "0123abcd")
    calls = watch(monkeypatch)
    write_files(folder, {"a": b"new a", "c": b"new c"}, "a setting")
    names: list[dict[str, str]] = [{"a": "old a"}]
    synced, first = {"old a": b"old a"}, 0
    for name, path, other in calls:
        own, last = Path(path).name, dict(names[-1])
        if name == "open":
            last[own] = f"file {len(names)}"
        elif name in ("link", "replace"):
            if last.get(own) is None:
                continue
            last[Path(other).name] = last[own]
            if name == "replace":
                del last[own]
        elif name == "unlink":
            last.pop(own, None)
        elif path == str(folder):
            first = len(names) - 1
        else:
            synced[last[own]] = {f"a{PART}": b"new a", f"c{PART}": b"new c"}[own]
        names.append(last)
        for possible in names[first:]:
            assert synced.get(possible["a"]) in (b"old a", b"new a")
            assert "c" not in possible or synced.get(possible["c"]) == b"new c"
    assert synced[names[-1]["a"]] == b"new a" and f"a{PART}" not in names[-1]


SAVE = """
import sys
from spacy_sparsecrf.atomic_write import write_files
folder, own = sys.argv[1:]
for i in range(20):
    write_files(Path(folder), {name: f"{own} {i}".encode() * 2000 for name in "abc"}, "a setting")
"""


def test_of_concurrent_writers_the_last_one_wins(tmp_path):
    """Threads and processes: none fails, and all files are of one of them."""
    code = "from pathlib import Path" + SAVE
    command = [sys.executable, "-c", code, str(tmp_path / "new" / "folder")]
    running = [subprocess.Popen([*command, str(n)]) for n in range(4)]
    assert [each.wait() for each in running] == [0] * 4

    def save(n: int) -> None:
        write_files(tmp_path, dict.fromkeys("abc", b"%d" % n), "a setting")

    with ThreadPoolExecutor(24) as pool:
        list(pool.map(save, range(120)))
    for folder in (tmp_path / "new" / "folder", tmp_path):
        files = [path for path in folder.iterdir() if path.is_file()]
        assert sorted(path.name for path in files) == ["a", "b", "c"]
        assert len({path.read_bytes() for path in files}) == 1


def test_old_temporaries_of_killed_writers_are_removed_and_nothing_else(folder):
    names = [f"a{PART}", f"[a]{PART}", "a.download.part", "a.part", f"z{PART}"]
    for name in names:
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (1e9, 1e9))
    (folder / "b.76543210.part").write_bytes(b"x")  # of a writer that is at work
    write_files(folder, {"a": b"new", "b": b"new"}, "a setting")
    left = {"b.76543210.part", *names[1:]}
    assert {path.name for path in folder.iterdir()} == {"a", "b", *left}


def test_a_link_in_place_of_a_temporary_is_not_followed(folder, tmp_path_factory, monkeypatch):
    monkeypatch.setattr("spacy_sparsecrf.atomic_write.token_hex", lambda _: "0123abcd")
    victim = tmp_path_factory.mktemp("other") / "victim"
    victim.write_bytes(b"mine")
    (folder / f"a{PART}").symlink_to(victim)
    with pytest.raises(SparseCRFError, match="SC319.*File exists"):
        write_files(folder, {"a": b"new"}, "a setting")
    assert victim.read_bytes() == b"mine" and (folder / "a").read_bytes() == OLD["a"]
