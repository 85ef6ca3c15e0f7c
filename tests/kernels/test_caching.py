"""The kernel cache: reading, writing where possible, and recompiling otherwise."""

import errno
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from numba import float64
from numba.core import event
from numba.core.caching import _CacheLocator
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

import spacy_sparsecrf
from spacy_sparsecrf.crf import compilation
from spacy_sparsecrf.crf.kernels import cache_dir, cache_files
from spacy_sparsecrf.crf.kernels.numba_support import caching, kernel
from spacy_sparsecrf.errors import SparseCRFWarning

with_owners = pytest.mark.skipif(os.name != "posix", reason="folders have no owners")

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
nlp = spacy.blank("xx")
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
from spacy_sparsecrf.crf.kernels.numba_support import is_compiled, is_kept
from spacy_sparsecrf.crf.kernels.indexing import sum_columns
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
    name = _CacheLocator.get_suitable_cache_subpath(
        str(package / "spacy_sparsecrf/crf/kernels/x.py")
    )
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
    assert "Compiling" not in told
    assert not files(package) and files(cache) == kept and not list(home.iterdir())
    # A disk that becomes full costs only the code.
    run(package, home, SUM + READ_ONLY + "run()\nassert refused and not is_kept(sum_columns)")
    assert not files(package) and not files(home)


def test_a_warm_cache_is_read_where_nothing_can_be_kept(package, home, cache):
    beside = package / "spacy_sparsecrf" / "crf" / "kernels" / "__pycache__"
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
        assert "SCW" not in told and "Compiling" not in told
        assert files(place or package) == kept
        # Cached code does not contain its path: the same files work next to the source.
        beside.mkdir(exist_ok=True)
        for path in files(cache):
            shutil.copy(path, beside)


def test_new_code_goes_to_the_first_place_that_takes_it(package, home, tmp_path):
    cache = tmp_path / "cache"
    run(package, home, SUM + "run()\nassert is_kept(sum_columns)", cache)
    assert len(files(cache)) == 1 and not list(home.iterdir())
    # Directories after the first writable one are not read, so code is compiled again.
    run(package, home, SUM + "assert not is_compiled(sum_columns)\nrun()")
    assert len(files(home / ".cache" / "spacy-sparsecrf")) == 1 and not files(package)
    # Without a user cache directory, code goes next to the package.
    shutil.rmtree(home / ".cache")
    (home / ".cache").touch()
    run(package, home, SUM + "assert not is_compiled(sum_columns)\nrun()")
    assert len(files(package)) == 1


@with_owners
def test_code_that_others_may_have_written_is_left_alone(package, home, tmp_path):
    cache = tmp_path / "cache"
    run(package, home, SUM + "run()", cache)
    kept = files(cache)
    for path in [cache, *cache.rglob("*")]:
        path.chmod(0o777)
    compiled = "assert not is_compiled(sum_columns)\nrun()\nassert is_kept(sum_columns)"
    watched = "import spacy\nfrom spacy_sparsecrf.crf.compilation import watch_compilation\n"
    watched += "watch_compilation()\nspacy.logger.setLevel({level!r})\n"
    told = run(package, home, watched.format(level="WARNING") + SUM + compiled, cache)
    assert (
        told.count("Compiling") == 1
        and told.count("[SCW210]") == 1
        and str(cache) in told
        and "Compiling about 7" in told
    )
    assert files(cache) == kept and files(home)
    # Names are for --verbose, also of kernels that are compiled next to others.
    shutil.rmtree(home / ".cache")
    told = run(package, home, watched.format(level="DEBUG") + SUM + compiled, cache)
    assert "Compiling sum_columns" in told


@with_owners
@pytest.mark.parametrize(
    ("of_folder", "of_source", "is_safe"),
    [
        ((0o755, 1000, 1000), (0o644, 1000, 1000), True),
        ((0o755, 0, 0), (0o644, 1000, 1000), True),
        ((0o755, 65534, 0), (0o644, 1000, 1000), True),  # the owner of /
        ((0o755, 2000, 1000), (0o644, 1000, 1000), False),
        ((0o1755, 2000, 1000), (0o644, 1000, 1000), False),
        ((0o775, 1000, 1000), (0o644, 0, 0), True),  # the user's own group
        ((0o775, 1000, 5000), (0o644, 0, 5000), True),
        ((0o775, 1000, 5000), (0o644, 0, 0), False),
        ((0o777, 1000, 1000), (0o644, 0, 0), False),
        ((0o1777, 0, 0), (0o644, 0, 0), "only above the cache"),
        ((0o1775, 0, 5000), (0o644, 0, 0), "only above the cache"),
        ((0o777, 1000, 1000), (0o666, 0, 0), True),  # writers may also change the source
    ],
)
def test_who_may_write_to_a_folder(of_folder, of_source, is_safe, monkeypatch):
    def rights(mode: int, owner: int, group: int) -> os.stat_result:
        return os.stat_result((mode, 0, 0, 1, owner, group, 0, 0, 0, 0))

    found = {
        "/": rights(0o755, 65534, 65534),
        "/a": rights(*of_folder),
        "/a/b": rights(0o755, 0, 0),
        "/source": rights(*of_source),
        "/a/source": rights(*of_source),
    }
    monkeypatch.setattr(cache_dir.os, "stat", found.__getitem__)
    monkeypatch.setattr(cache_dir.os, "lstat", found.__getitem__)
    monkeypatch.setattr(cache_dir.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(cache_dir.os, "getegid", lambda: 1000)
    monkeypatch.setattr(cache_dir, "refused", set())
    for directory, is_used in ("/a", is_safe is True), ("/a/b", bool(is_safe)):
        with nullcontext() if is_used else pytest.raises(PermissionError):
            assert cache_dir.checked(directory, "/source") == directory
        assert (directory in cache_dir.refused) == (not is_used)
    # Who may write to a directory with the source may change the source.
    assert cache_dir.checked("/a/b", "/a/source") == "/a/b"


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
    # Another directory, such as one of NUMBA_CACHE_DIR, has no effect on these.
    other = tmp_path / current.name / "new"
    assert left(str(tmp_path)) == left(str(root / "notes")) == left(str(other)) == everything
    # Of 300 bytes, the 120 least recently changed are removed; an empty directory is not.
    (current / "empty").mkdir()
    assert left(str(current / "new")) == {names[2], *higher, "notes/a"}
    assert (current / "empty").is_dir()
    # Files of other versions in one directory, also incomplete ones, count too.
    other.mkdir(parents=True)
    for age, name in enumerate(["kernel.b.nbc", "kernel.c.nbt", "kernel.a.nbc", "notes.txt"]):
        (other / name).write_bytes(bytes(80))
        os.utime(other / name, (1e9 - age, 1e9 - age))
    left(str(other))
    assert {path.name for path in other.iterdir()} == {"kernel.b.nbc", "kernel.c.nbt", "notes.txt"}


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


# Damaged files, other versions, and other processes


@pytest.fixture
def halve(monkeypatch, tmp_path):
    """Returns a new kernel without code in this process, whose code is in `tmp_path`."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache_files, "_patience", {"seconds": 60.0})
    cache_dir.damaged.clear()
    compilation._warn_once.cache_clear()

    def make():
        @kernel
        def half(x: float) -> float:
            return x / 2

        return half

    return make


def hits(compiled) -> int:
    return sum(compiled.stats.cache_hits.values())


def code_of(compiled) -> Path:
    [path] = Path(compiled.stats.cache_path).glob("*.nbc")
    return path


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def swap_names(path: Path) -> None:
    """Give the file the code of another function."""

    @kernel
    def half_of(x: float) -> float:
        return x / 3

    half_of(1.0)
    [other] = set(path.parent.glob("*.nbc")) - {path}
    os.replace(other, path)


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "a few bytes": lambda path: path.write_bytes(b"numba"),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "halved": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "continued": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "random": lambda path: path.write_bytes(os.urandom(path.stat().st_size)),
    "one bit": lambda path: path.write_bytes(
        path.read_bytes()[:-9] + b"?" + path.read_bytes()[-8:]
    ),
    "a pickle": lambda path: path.write_bytes(pickle.dumps({})),
    "of another function": swap_names,
}
if os.name == "posix":
    DAMAGE |= {
        "a link": link,
        "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
        "writable by all users": lambda path: path.chmod(0o666),
    }


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_of_code_is_compiled_again(damage, halve):
    compilation.watch_compilation()
    first = halve()
    first(1.0)
    path = code_of(first)
    DAMAGE[damage](path)
    with pytest.warns(SparseCRFWarning) as told:
        assert halve()(3.0) == 1.5
        assert halve()(1) == 0.5  # other types
    assert [str(each.message).count(f"[SCW237] Kernels of {path} ") for each in told] == [1]
    again = halve()
    assert again(5.0) == 2.5 and hits(again) == 1


def test_a_directory_in_place_of_a_file_costs_only_its_code(halve):
    compilation.watch_compilation()
    first = halve()
    first(1.0)
    path = code_of(first)
    path.unlink()
    path.mkdir()
    with pytest.warns(SparseCRFWarning, match="SCW237"):
        assert halve()(3.0) == 1.5
    assert path.is_dir()


def test_code_with_other_types_of_the_same_names_is_compiled_again(halve):
    @kernel
    def difference(pair) -> float:
        return pair.first - pair.second

    for fields, expected in ("first second", -1.0), ("second first", 1.0):
        made = namedtuple("Pair", fields)
        difference = kernel(difference.py_func)
        assert difference(made(1.0, 2.0)) == expected


PRODUCT = """
import sys, numpy as np
from spacy_sparsecrf.crf.kernels.numba_support import is_compiled, is_kept
from spacy_sparsecrf.crf.kernels.weight_vectors import inner_product
def run():
    row = np.arange(16.0)
    found = inner_product(row, row)
    sys.stderr.write(f"{found:.0f}, {sum(inner_product.stats.cache_hits.values())} loaded")
"""
FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
"""
KILLED = """
import os, signal
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="disks have no limit")
def test_code_of_another_version_is_never_used(package, home, tmp_path):
    cache, source = tmp_path / "cache", package / "spacy_sparsecrf" / "crf" / "kernels" / "small.py"
    old = source.read_text(encoding="utf-8")
    start = old.index("def dot(")
    new = old[:start] + old[start:].replace("return total", "return -total", 1)
    assert run(package, home, PRODUCT + "run()", cache) == "1240, 0 loaded"
    source.write_text(new, encoding="utf-8")
    # The disk is full, or the process is killed, while it writes the new code.
    assert run(package, home, PRODUCT + FULL + "run()", cache) == "-1240, 0 loaded"
    assert len(files(cache)) == 1
    with pytest.raises(AssertionError):
        run(package, home, PRODUCT + KILLED + "run()", cache)
    assert run(package, home, PRODUCT + "run()", cache) == "-1240, 0 loaded"
    # Versions that share a directory keep their own code.
    assert run(package, home, PRODUCT + "run()", cache) == "-1240, 1 loaded"
    source.write_text(old, encoding="utf-8")
    assert run(package, home, PRODUCT + "run()", cache) == "1240, 1 loaded"


EVIL = """
import hashlib, os, pickle, shutil
from pathlib import Path
from spacy_sparsecrf.crf.kernels import cache_files
from spacy_sparsecrf.crf.compilation import watch_compilation
class Evil:
    def __reduce__(self):
        return os._exit, (3,)
watch_compilation()
[path] = Path(inner_product.stats.cache_path).glob("*.nbc")
place = Path(CACHE)
"""
SWAPS = {
    "open": "place.chmod(0o777)",
    "link": "place.rename(f'{place}.old'); place.symlink_to(f'{place}.old')",
    "link below": "path.parent.rename(place / 'old'); path.parent.symlink_to(place / 'old')",
}


@with_owners
@pytest.mark.parametrize("swap", SWAPS)
def test_who_may_write_is_checked_on_all_of_the_path_before_each_load(
    swap, package, home, tmp_path
):
    cache = tmp_path / "caches" / "mine"
    run(package, home, PRODUCT + "run()", cache)
    written = "\ncache_files.write(str(path), pickle.dumps(Evil()))\n"
    # With write permission, another user can do this after the package is imported.
    code = PRODUCT + EVIL.replace("CACHE", repr(str(cache.parent))) + written + SWAPS[swap]
    told = run(package, home, code + "\nrun()", cache)
    assert told.count("[SCW210]") == 1 and "1240, 0 loaded" in told


@with_owners
def test_directories_above_the_cache_are_checked(package, home, tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a").chmod(0o777)
    cache = tmp_path / "a" / "b" / "c"
    run(package, home, PRODUCT + "run()", cache)
    assert not cache.exists() and files(home)


@pytest.mark.skipif(os.name != "posix", reason="folders have no permissions")
def test_new_directories_are_the_users_own_also_with_umask_0(package, home):
    run(package, home, "import os\nos.umask(0)\n" + PRODUCT + "run()")
    assert "1 loaded" in run(package, home, PRODUCT + "run()")
    assert {path.stat().st_mode & 0o022 for path in home.rglob("*")} == {0}


@pytest.mark.parametrize(
    "variables",
    [{"NUMBA_CACHE_DIR": "~/code"}, {"NUMBA_CACHE_DIR": "code"}, {"HOME": "."}, {"HOME": "~"}],
)
def test_relative_directories_are_never_used(variables, package, home):
    watched = "from spacy_sparsecrf.crf.compilation import watch_compilation\nwatch_compilation()\n"
    environment = {"XDG_CACHE_HOME": "caches", "HOME": str(home), **variables}
    code = f"import os\nos.environ.update({environment!r})\n" + watched + PRODUCT + "run()"
    told = run(package, home, code)
    given = variables.get("NUMBA_CACHE_DIR")
    assert told.count("[SCW") == told.count("[SCW210]") == bool(given)
    assert not given or f"Compiled kernels in {given}/" in told
    assert {path.name for path in home.iterdir()} <= {".cache"}
    assert bool(files(home)) == (given is not None) and bool(files(package)) == (not given)


@pytest.mark.skipif(os.name != "posix", reason="no locks")
def test_of_processes_that_start_together_one_compiles(package, home, tmp_path):
    code = "print(sum(event.is_start for _, event in compiled.buffer))"
    code = (
        COMPILED
        + PRODUCT
        + "run()\n"
        + code.replace(
            "event.is_start", "event.is_start and hasattr(event.data['dispatcher'], 'cache')"
        )
    )
    with ThreadPoolExecutor(3) as pool:
        told = list(pool.map(lambda _: run(package, home, code, tmp_path / "cache"), range(3)))
    assert sorted(told) == ["1240, 0 loaded", "1240, 1 loaded", "1240, 1 loaded"]


def lock_of(half: Any) -> Path:
    """Return the file with which a process locks the code of `halve` for a float."""
    _, name = half.cache._name((float64,), cpu_target.target_context.codegen())
    return Path(half.stats.cache_path, f"{name}.nbl")


@pytest.fixture
def holder(halve):
    """Another process that holds the lock of the code of `halve`."""
    lock = lock_of(halve())
    lock.touch(0o600)
    code = f"import fcntl, os\nfcntl.flock(os.open({str(lock)!r}, os.O_RDONLY), fcntl.LOCK_EX)\n"
    code += "print()\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as found:
        found.stdout.readline()
        yield found
        found.kill()


@pytest.mark.skipif(os.name != "posix", reason="no locks")
def test_another_kernel_does_not_wait_for_a_lock(halve, holder, monkeypatch):
    monkeypatch.setattr(time, "sleep", pytest.fail)
    assert halve()(3) == 1.5


@pytest.mark.skipif(os.name != "posix", reason="no locks")
def test_a_lock_is_released_by_a_process_that_is_killed(halve, holder):
    Timer(0.5, holder.kill).start()
    start = time.monotonic()
    assert halve()(3.0) == 1.5
    assert 0.5 <= time.monotonic() - start < 30.0 and not cache_files._locks


@pytest.mark.skipif(os.name != "posix", reason="no locks")
def test_who_may_only_read_the_cache_cannot_hold_its_lock(halve, monkeypatch):
    from fcntl import LOCK_EX, flock

    monkeypatch.setattr(cache_files, "_patience", {"seconds": 0.5})
    half, modes = halve(), []
    lock, real = lock_of(half), os.unlink
    lock.parent.chmod(0o755)
    lock.touch(0o644)
    descriptor = os.open(lock.parent, os.O_RDONLY)
    flock(descriptor, LOCK_EX)
    monkeypatch.setattr(
        os, "unlink", lambda path: modes.append(os.stat(path).st_mode) or real(path)
    )
    assert half(3.0) == 1.5 and cache_files._patience["seconds"] == 0.5
    os.close(descriptor)
    assert [oct(mode & 0o777) for mode in modes] == ["0o600"] and not lock.exists()


@pytest.mark.skipif(os.name != "posix", reason="no locks")
def test_a_process_waits_for_another_only_once_and_not_for_long(halve, holder, monkeypatch):
    monkeypatch.setattr(cache_files, "_patience", {"seconds": 0.5})
    start = time.monotonic()
    assert halve()(3.0) == 1.5
    assert time.monotonic() - start >= 0.5 and cache_files._patience["seconds"] == 0.0
    assert halve()(3) == 1.5 and not cache_files._locks


def is_free(place: str) -> bool:
    """Return whether another process would get all locks of a directory."""
    import fcntl

    for lock in Path(place).glob("*.nbl"):
        with lock.open() as file, suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            continue
        return False
    return True


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.skipif(os.name != "posix", reason="no locks")
def test_the_lock_is_held_while_a_kernel_and_the_kernels_in_it_are_compiled(halve):
    half, found = halve(), []

    @kernel
    def quarter(x: float) -> float:
        return half(half(x))

    @kernel
    def failing(x: float) -> float:
        return quarter(x) + x.missing

    class Listener(event.Listener):
        def on_start(self, event):
            found.append(is_free(half.stats.cache_path))
            if not os.fork():  # the child does not have the lock, and does not keep it
                os._exit(bool(cache_files._locks))

        def on_end(self, event):
            found.append(is_free(half.stats.cache_path))
            assert os.wait()[1] == 0

    with event.install_listener("numba:compile", Listener()):
        with pytest.raises(TypingError):
            failing(4.0)
        assert not cache_files._locks and is_free(half.stats.cache_path)
        assert quarter(4.0) == 1.0
    assert len(found) >= 6 and not any(found)
    assert not cache_files._locks and is_free(half.stats.cache_path)


@pytest.mark.skipif(os.name != "posix", reason="no locks")
def test_file_systems_without_locks_work(halve, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr("fcntl.flock", fail)
    first, second = halve(), halve()
    assert first(3.0) == second(3.0) == 1.5 and hits(second) == 1 and not cache_files._locks
