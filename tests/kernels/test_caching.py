"""The kernel cache: reading, writing where possible, and recompiling otherwise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import _CacheLocator

import spacy_sparsecrf
from spacy_sparsecrf.kernels import cache_dir
from spacy_sparsecrf.kernels.numba_support import caching

# An audit hook refuses writes as a read-only disk does, also for root.
READ_ONLY = """
import os, sys
def refuse(event, args):
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    if event == "os.mkdir" or event == "open" and args[2] and args[2] & writes:
        if args[0] != os.devnull:
            refused.append(str(args[0]))
            raise PermissionError(13, "read-only", str(args[0]))
refused = []
sys.addaudithook(refuse)
"""
PREDICT = """
import spacy
nlp = spacy.blank("en")
pipe = nlp.add_pipe("sparse_crf")
pipe.add_label("X")
assert [token.tag_ for token in nlp("a b")] == ["X", "X"]
nlp("a b")
"""
COMPILED = """
from numba.core import event
compiled = event.RecordingListener()
event.register("numba:compile", compiled)
"""
SUM = """
import numpy as np
from spacy_sparsecrf.kernels.numba_support import is_compiled, is_kept
from spacy_sparsecrf.kernels.indexing import sum_columns
def run():
    totals, columns = np.zeros(2), np.array([1, 0], np.int32)
    sum_columns(np.array([0, 1, 2]), columns, np.array([1.0, 2.0]), totals)
    assert totals.tolist() == [2.0, 1.0]
"""


@pytest.fixture
def package(tmp_path) -> Path:
    """A directory with a copy of the package, without cached code."""
    source = Path(spacy_sparsecrf.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, tmp_path / "site" / source.name, ignore=ignored)
    return tmp_path / "site"


@pytest.fixture
def home(tmp_path) -> Path:
    """A home directory without a cache."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def run(package: Path, home: Path, code: str, cache: Path | None = None) -> str:
    """Run code in a new process; return its standard error."""
    environment = {**os.environ, "PYTHONPATH": str(package), "HOME": str(home)}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(cache or "")}
    environment.pop("XDG_CACHE_HOME", None)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture
def cache(everything_compiled, package, tmp_path) -> Path:
    """A cache for `package` that lacks the code of some kernels, also of prediction."""
    name = _CacheLocator.get_suitable_cache_subpath(str(package / "spacy_sparsecrf/kernels/x.py"))
    [code] = everything_compiled.cache.glob("kernels_*")
    lacking = shutil.ignore_patterns("hashing.*", "indexing.*", "viterbi.*")
    shutil.copytree(code, tmp_path / "cache" / name, ignore=lacking)
    return tmp_path / "cache"


def files(directory: Path) -> dict[Path, bytes]:
    """Return the files of a cache and their contents."""
    return {path: path.read_bytes() for path in directory.rglob("*.nb?")}


def test_where_nothing_can_be_kept_everything_works_with_one_warning(package, home, cache):
    kept = files(cache)
    told = run(package, home, READ_ONLY + PREDICT + "assert refused", cache)
    assert told.count("[SCW") == told.count("[SCW204]") == 1
    assert "once after installation" not in told
    assert not files(package) and files(cache) == kept and not list(home.iterdir())
    # A disk that becomes full costs only the code.
    run(package, home, SUM + READ_ONLY + "run()\nassert refused and not is_kept(sum_columns)")
    assert not files(package) and not files(home)


def test_a_warm_cache_is_read_where_nothing_can_be_kept(package, home, cache):
    beside = package / "spacy_sparsecrf" / "kernels" / "__pycache__"
    run(package, home, PREDICT, cache)
    read = READ_ONLY + COMPILED + PREDICT + "assert refused and not compiled.buffer\n"
    # Modules for compiling are not imported if there is nothing to compile.
    read += "assert 'numba.np.linalg' not in sys.modules\nsys.stderr.write('predicted')"
    # Code that is not cached is compiled for this process only.
    read += SUM + "assert not is_compiled(sum_columns) and not is_kept(sum_columns)\n"
    read += "run()\nassert is_compiled(sum_columns)"
    for place in (cache, None):
        kept = files(place or package)
        assert kept
        told, *_ = run(package, home, read, place).partition("predicted")
        assert "SCW" not in told and "compiles" not in told
        assert files(place or package) == kept
        # Cached code does not contain its path: the same files work next to the source.
        beside.mkdir(exist_ok=True)
        for path in files(cache):
            shutil.copy(path, beside)


def test_new_code_goes_to_the_first_place_that_takes_it(package, home, tmp_path):
    cache = tmp_path / "cache"
    run(package, home, SUM + "run()\nassert is_kept(sum_columns)", cache)
    assert len(files(cache)) == 2 and not list(home.iterdir())
    # Directories after the first writable one are not read, so code is compiled again.
    run(package, home, SUM + "assert not is_compiled(sum_columns)\nrun()")
    assert len(files(home / ".cache" / "spacy-sparsecrf")) == 2 and not files(package)
    # Without a user cache directory, code goes next to the package.
    shutil.rmtree(home / ".cache")
    (home / ".cache").touch()
    run(package, home, SUM + "assert not is_compiled(sum_columns)\nrun()")
    assert len(files(package)) == 2


@pytest.mark.skipif(os.name != "posix", reason="folders have no owners")
def test_code_that_others_may_have_written_is_left_alone(package, home, tmp_path):
    cache = tmp_path / "cache"
    run(package, home, SUM + "run()", cache)
    kept = files(cache)
    for path in [cache, *cache.rglob("*")]:
        path.chmod(0o777)
    compiled = "assert not is_compiled(sum_columns)\nrun()\nassert is_kept(sum_columns)"
    watched = "from spacy_sparsecrf.progress import watch_compilation\nwatch_compilation()\n"
    told = run(package, home, watched + SUM + compiled, cache)
    assert told.count("[SCW210]") == 1 and str(cache) in told and "compiles its kernels" in told
    assert files(cache) == kept and files(home)


@pytest.mark.skipif(os.name != "posix", reason="folders have no owners")
@pytest.mark.parametrize(
    ("of_folder", "of_source", "is_refused"),
    [
        ((0o755, 1000, 1000), (0o644, 1000, 1000), False),
        ((0o755, 0, 0), (0o644, 1000, 1000), False),
        ((0o755, 2000, 1000), (0o644, 1000, 1000), True),
        ((0o775, 1000, 1000), (0o644, 0, 0), False),  # the user's own group
        ((0o775, 1000, 5000), (0o644, 0, 5000), False),
        ((0o775, 1000, 5000), (0o644, 0, 0), True),
        ((0o777, 1000, 1000), (0o644, 0, 0), True),
        ((0o777, 1000, 1000), (0o666, 0, 0), False),  # writers may also change the source
    ],
)
def test_who_may_write_to_a_folder(of_folder, of_source, is_refused, monkeypatch):
    def rights(mode: int, owner: int, group: int) -> os.stat_result:
        return os.stat_result((mode, 0, 0, 1, owner, group, 0, 0, 0, 0))

    found = {"folder": rights(*of_folder), "source": rights(*of_source)}
    monkeypatch.setattr(cache_dir.os, "stat", found.__getitem__)
    monkeypatch.setattr(cache_dir.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(cache_dir.os, "getegid", lambda: 1000)
    assert cache_dir.is_shared.__wrapped__("folder", "source") is is_refused


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "~/.cache"),
        ("linux", {"XDG_CACHE_HOME": "/caches"}, "/caches"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "~/.cache"),
        ("darwin", {"XDG_CACHE_HOME": "/caches"}, "~/Library/Caches"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
        ("win32", {}, "~/AppData/Local"),
        ("linux", {"HOME": "relative"}, None),
    ],
)
def test_the_cache_is_where_the_platform_keeps_caches(platform, variables, expected, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cache_dir.sys, "platform", platform)
    found = cache_dir.user_cache()
    assert found == (expected and Path(expected).expanduser() / "spacy-sparsecrf")


def test_code_of_lower_versions_and_excess_code_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache_dir.sys, "platform", "linux")
    monkeypatch.setattr(cache_dir, "MOST_BYTES", 190)
    root = tmp_path / "spacy-sparsecrf"
    current = Path(cache_dir.version_directory("0.68.1"))
    ours = current.name.partition("-")[0]

    def left(make_room: str) -> set[str]:
        cache_dir.make_room.__wrapped__(make_room)
        return {str(path.parent.relative_to(root)) for path in root.rglob("*.nbc")}

    names = [f"{ours}-numba-0.68.1/{name}" for name in ("old", "older", "new")]
    higher = [f"{ours}-numba-0.100.0/a", "99.0-numba-0.60.0/a"]
    for age, name in enumerate([names[2], *higher, names[0], names[1]]):
        (root / name).mkdir(parents=True)
        (root / name / "kernel.1.nbc").write_bytes(bytes(60))
        os.utime(root / name / "kernel.1.nbc", (1e9 - age, 1e9 - age))
    for name in (f"{ours}-numba-0.9.0/a", "0.0.9-numba-0.100.0/a", "notes/a"):
        (root / name).mkdir(parents=True)
        (root / name / "kernel.1.nbc").touch()
    everything = {*names, *higher, f"{ours}-numba-0.9.0/a", "0.0.9-numba-0.100.0/a", "notes/a"}
    # A directory that is not a version's, such as NUMBA_CACHE_DIR, has no effect.
    assert left(str(tmp_path)) == left(str(root / "notes")) == everything
    assert left(str(tmp_path / current.name)) == everything
    # Of 300 bytes, the 120 least recently changed are removed.
    assert left(str(current)) == {names[2], *higher, "notes/a"}


SOURCES = ["kernels/inlined.py", "kernels/more/deep.py", "sag/kernels.py"]


@pytest.mark.parametrize("changed", SOURCES)
def test_code_is_stale_once_kernels_or_its_own_directory_change(changed, monkeypatch, tmp_path):
    # A solver's kernels are compiled together with functions of `kernels/`.
    for name in SOURCES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(caching, "_KERNELS", tmp_path / "kernels")
    stamp = caching._stamp.__wrapped__
    before = stamp(str(tmp_path / "sag"))
    (tmp_path / changed).write_text("x = 2\n", encoding="utf-8")
    assert stamp(str(tmp_path / "sag")) != before


class Renamed:
    """A class of a kernel argument that a later version has renamed."""


def test_an_index_with_classes_that_no_longer_exist_counts_as_empty(tmp_path, monkeypatch):
    index = caching._Index(str(tmp_path), "kernel", "stamp")
    index._save_index({Renamed: "kernel.nbc"})
    assert index._load_index() == {Renamed: "kernel.nbc"}
    monkeypatch.delattr(sys.modules[__name__], "Renamed")
    assert index._load_index() == {}
