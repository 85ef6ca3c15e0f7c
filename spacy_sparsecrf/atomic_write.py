"""Files that are written whole or not at all, whatever fails, and whenever the power goes.

A file is written next to its place, synced to the disk, and renamed, and then its folder is synced:
who reads it finds the old one or the new one. To what only grows, something is added and synced
before another file says how long it is.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from .errors import Errors, SparseCRFError

if sys.platform != "win32":
    import fcntl

Content: TypeAlias = bytes | Callable[[Path], object] | None

# Ends of the names of files that are not complete, and of those that are replaced.
_NEW, _OLD = ".part", ".old"


def write_files(folder: Path, contents: Mapping[str, Content], setting: str) -> None:
    """Write files of a folder, all of them or none; the folder is made where there is none.

    contents: by name, bytes, or what writes them to a path; None removes the file. setting: for
        messages, what says where the files go.
    RAISES: SparseCRFError where files cannot be written; all are then as they were, as after any
        other error.
    """
    new: dict[str, Path | None] = dict.fromkeys(contents)
    with _made(folder, setting) as made:
        for name, content in contents.items():
            if content is not None:
                path = new[name] = folder / (name + _NEW)
                made.append(path)
                path.write_bytes(content) if isinstance(content, bytes) else content(path)
        _sync_all([path for path in new.values() if path is not None])
        _put(folder, new)


def append_file(path: Path, at: int, data: bytes, setting: str) -> None:
    """Write behind the first bytes of a file, which stay whatever happens; what followed is gone.

    at: how many bytes stay; 0 begins a new file. setting: see `write_files`.
    RAISES: SparseCRFError where the file cannot be written.
    """
    with _made(path.parent, setting) as made:
        if not path.exists():
            made.append(path)
        with path.open("r+b" if at else "wb") as file:
            file.truncate(at)
            file.seek(at)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _sync(path.parent)


@contextmanager
def _made(folder: Path, setting: str) -> Iterator[list[Path]]:
    """Make a folder, if there is none, for a body that writes to it.

    YIELDS: a list for what the body makes: after an error that, and the folder, are removed.
    RAISES: SparseCRFError for an OSError; setting: see `write_files`.
    """
    folders = [each for each in (folder, *folder.parents) if not each.exists()]
    made: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield made
    except BaseException as error:
        for each in (*made, *folders):
            _remove(each)
        if not isinstance(error, OSError):
            raise
        file, reason = error.filename or folder, error.strerror or error
        message = Errors.SC319.format(file=file, reason=reason, folder=folder, setting=setting)
        raise SparseCRFError(message) from error


def _put(folder: Path, new: Mapping[str, Path | None]) -> None:
    """Rename new files to their names, or none of them. RAISES: OSError."""
    done: dict[Path, Path | None] = {}
    try:
        for name, path in new.items():
            place = folder / name
            done[place] = _keep(place)
            if path is not None:
                os.replace(path, place)
            else:
                place.unlink(missing_ok=True)
        _sync(folder)
    except BaseException:
        for place, old in done.items():
            if old is not None:
                os.replace(old, place)
            # Renaming does nothing where both are names of one file.
            _remove(old or place)
        raise
    for old in done.values():
        if old is not None:
            _remove(old)


def _keep(place: Path) -> Path | None:
    """Give a file a second name; None where there is no such file."""
    old = place.with_name(place.name + _OLD)
    _remove(old)
    if not place.exists():
        return None
    try:
        os.link(place, old)
    except OSError:
        # A file system without links.
        shutil.copyfile(place, old)
    return old


def _sync_all(paths: list[Path]) -> None:
    """Sync files at the same time: one after the other would take as long for each."""
    if len(paths) < 2:
        list(map(_sync, paths))
        return
    with ThreadPoolExecutor(len(paths)) as pool:
        list(pool.map(_sync, paths))


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Remove a file, or an empty folder, if that can be done."""
    with suppress(OSError):
        path.rmdir() if path.is_dir() else path.unlink()


def replace_folder(new: Path, place: Path) -> None:
    """Rename a folder, in the place of one that may be there.

    RAISES: OSError, after which both are as before.
    """
    old = place.with_name(place.name + _OLD)
    if old.exists() and not place.exists():
        # This was cut off here.
        old.rename(place)
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    try:
        new.rename(place)
    except OSError:
        if old.exists():
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def make_folder(parent: Path, prefix: str) -> tuple[Path, Callable[[], None]]:
    """Make a folder for what is not complete; remove those that processes left when they ended.

    prefix: of its name. RETURNS: the folder, and what lets go of it. RAISES: OSError.
    """
    for left in parent.glob(f"{prefix}*{_NEW}"):
        held = _hold(left)
        if held is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(held)
    folder = Path(tempfile.mkdtemp(_NEW, prefix, parent))
    own = _hold(folder)
    return folder, partial(os.close, own) if own is not None else lambda: None


def _hold(folder: Path) -> int | None:
    """Hold a folder as long as the process lives; None where another does, or that is unknown."""
    if sys.platform == "win32":
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
