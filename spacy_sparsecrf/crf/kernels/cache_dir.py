"""The kernel cache in the user's cache directory: its path, its size, and who may write to it.

    <user's caches>/spacy-sparsecrf/<version>-numba-<version>/<directory of sources>/*.nbc

An upgrade of the package or of numba starts a new directory; the first write to it removes the
directories of lower versions. Code is never written next to the package while this path is
writable, so that uninstalling the package leaves nothing in site-packages.
"""

import os
import re
import shutil
import stat
import sys
from contextlib import suppress
from functools import cache
from itertools import accumulate
from pathlib import Path

# The kernels of all solvers, compiled for one environment and one processor, are 15 MB.
MOST_BYTES = 256 * 2**20
# Directories that are not used, and path and reason of the first file that is damaged.
refused: set[str] = set()
damaged: dict[str, str] = {}
_PACKAGE = Path(__file__).parents[2]
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

    directory: gets new code; in a directory that is not of a version, only its own files count.
    """
    destination, home = Path(directory), user_cache()
    root, current = destination.parents[1], _versions(destination.parent)
    code = destination.glob("*.nb?")
    if home and current and root == home.resolve():
        for path in root.glob("*"):
            if (versions := _versions(path)) and versions < current:
                shutil.rmtree(path, ignore_errors=True)
        code = (path for path in root.glob("*/*/*.nb?") if _versions(path.parents[1]))
    with suppress(OSError):  # another process has removed a file
        files = sorted((path.lstat().st_mtime, path.lstat().st_size, path) for path in code)
        excess = sum(size for _, size, _ in files) - MOST_BYTES
        for _, size, path in files:
            if excess > 0:
                path.unlink()
                excess -= size


def _versions(path: Path) -> tuple[list[int], list[int]] | None:
    """Return the versions of the package and of numba in a directory's name, or None."""
    if match := _NAME.fullmatch(path.name):
        ours, numba = ([int(n) for n in re.findall(r"\d+", version)] for version in match.groups())
        return ours, numba
    return None


def checked(directory: str, source: str) -> str:
    """Return a directory if other users can neither write to it nor replace it.

    directory: without symbolic links; source: real path of the function's file, or `/`. RAISES:
    OSError; PermissionError if others can, or the path is relative; then it is in `refused`.
    """
    # From the root down: below an accepted directory, other users cannot replace the next one.
    above = accumulate("/" + part for part in directory.split("/")[1:])
    if os.path.isabs(directory) and all(_is_accepted(path, directory, source) for path in above):
        return directory
    refused.add(directory)
    raise PermissionError


def _is_accepted(path: str, place: str, source: str) -> bool:
    """Return whether other users cannot replace what is on the path to a place.

    Above the place, a sticky bit protects a directory, and a directory that contains the source is
    accepted, because who may write there may change the source too.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return True
    is_sticky = path != place and bool(status.st_mode & stat.S_ISVTX)
    contains_source = source.startswith(path + "/")
    return not stat.S_ISLNK(status.st_mode) and (
        contains_source or is_safe(status, source, is_sticky)
    )


def is_safe(status: os.stat_result, source: str, is_sticky: bool = False) -> bool:
    """Return whether no user may write to a file or directory who may not write to a source file.

    Accepted owners: the user, root, the owner of the source, and the owner of `/`, as which all
    users of the host appear in a user namespace. is_sticky: whether writers may not replace files.
    """
    if os.name != "posix":
        return True
    source_status = os.stat(source)
    has_other_group = status.st_gid not in (source_status.st_gid, os.getegid())
    rights = 0 if is_sticky else stat.S_IWOTH | (stat.S_IWGRP if has_other_group else 0)
    owners = 0, os.geteuid(), source_status.st_uid, os.stat("/").st_uid
    return status.st_uid in owners and not status.st_mode & ~source_status.st_mode & rights
