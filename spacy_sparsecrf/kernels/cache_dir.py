"""The kernel cache in the user's cache directory: its path, its size, and who may write to it.

    <user's caches>/spacy-sparsecrf/<version>-numba-<version>/<directory of sources>/*.nbi, *.nbc

An upgrade of the package or of numba starts a new directory; the first write to it removes the
directories of lower versions. Code is never written next to the package while this path is
writable, so that uninstalling the package leaves nothing in site-packages.
"""

import os
import re
import shutil
import stat
import sys
from functools import cache
from pathlib import Path

# The kernels of all solvers, compiled for one environment and one processor, are 15 MB.
MOST_BYTES = 256 * 2**20
_PACKAGE = Path(__file__).parents[1]
_NAME = re.compile(r"(\d.*)-numba-(\d.*)")
# For each platform, an environment variable and the default directory.
_DEFAULT = "XDG_CACHE_HOME", "~/.cache"
_BASES = {"win32": ("LOCALAPPDATA", "~/AppData/Local"), "darwin": ("", "~/Library/Caches")}


def user_cache() -> Path | None:
    """Return the directory for code of all versions; None if the user has no home directory."""
    variable, default = _BASES.get(sys.platform, _DEFAULT)
    for base in (os.environ.get(variable, ""), os.path.expanduser(default)):
        if os.path.isabs(base):
            return Path(base) / "spacy-sparsecrf"
    return None


def version_directory(numba: str) -> str | None:
    """Return the directory for code of this version of the package and a version of numba."""
    root = user_cache()
    version = sys.modules[_PACKAGE.name].__version__  # kernels import no module above them
    return str(root / f"{version}-numba-{numba}") if root else None


@cache  # once in a process, at its first write
def make_room(directory: str) -> None:
    """Remove code of lower versions and, if the cache is too large, the code longest unchanged.

    directory: version directory that gets new code; for any other directory, do nothing.
    """
    root, current = user_cache(), _versions(Path(directory))
    if root is None or Path(directory).parent != root or not current:
        return
    for path in root.glob("*"):
        if (found := _versions(path)) and found < current:
            shutil.rmtree(path, ignore_errors=True)
    groups = [path for path in root.glob("*/*") if _versions(path.parent)]
    files = {path: [*map(_stat, path.glob("*"))] for path in groups}
    excess = sum(size for group in files.values() for size, _ in group) - MOST_BYTES
    for path in sorted(groups, key=lambda path: max((time for _, time in files[path]), default=0)):
        if excess > 0:
            shutil.rmtree(path, ignore_errors=True)
            excess -= sum(size for size, _ in files[path])


def _versions(path: Path) -> tuple[list[int], list[int]] | None:
    """Return the versions of the package and of numba in a directory's name, or None."""
    if found := _NAME.fullmatch(path.name):
        ours, numba = ([int(n) for n in re.findall(r"\d+", version)] for version in found.groups())
        return ours, numba
    return None


def _stat(path: Path) -> tuple[int, float]:
    """Return a file's size and time of change, 0 if another process has removed it."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0.0
    return found.st_size, found.st_mtime


@cache
def is_shared(directory: str, source: str) -> bool:
    """Return whether other users may write to a directory, but not to a source file.

    Accepted owners: the user, root, the owner of the source. RETURNS: False if a path is missing.
    """
    if os.name != "posix":
        return False
    try:
        found, known = os.stat(directory), os.stat(source)
    except OSError:
        return False
    has_other_group = found.st_gid not in (known.st_gid, os.getegid())
    rights = stat.S_IWOTH | (stat.S_IWGRP if has_other_group else 0)
    has_other_owner = found.st_uid not in (0, os.geteuid(), known.st_uid)
    return has_other_owner or bool(found.st_mode & ~known.st_mode & rights)
