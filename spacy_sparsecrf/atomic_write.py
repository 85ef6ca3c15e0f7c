"""Atomic writes of files: complete or not at all, also after an error or a power failure.

A new file is written next to its destination, synced to disk and renamed; then its folder is
synced. A reader sees either the old file or the new one. Of several writers, the last one wins: its
files are all there, where the file system has locks.
"""

import glob
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EEXIST
from pathlib import Path
from secrets import token_hex

from .errors import Errors, SparseCRFError

# Suffixes of incomplete files, which have a random part, and of files that are being replaced.
_NEW, _OLD = ".part", ".old"
_STALE = 3600  # seconds after which an incomplete file is of a writer that was killed


def write_files(folder: Path, contents: Mapping[str, bytes | None], setting: str) -> None:
    """Write all files of a folder or none; create the folder if it does not exist.

    contents: by file name; None removes a file. setting: name of the option that sets the folder,
    for messages.
    RAISES: SparseCRFError if a file cannot be written. After any error, all files are unchanged,
        and new folders are removed.
    """
    folders = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    end = f".{token_hex(4)}{_NEW}"
    new = {name: folder / (name + end) for name, data in contents.items() if data is not None}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, path in new.items():
            if (folder / name).exists() and not (folder / name).is_file():
                raise OSError(EEXIST, "it is not a file", str(folder / name))
            _clean(folder, name)
            with path.open("xb") as stream:
                stream.write(contents[name] or b"")
        for path in new.values():
            _sync(path)
        with _locked(folder):
            _put(folder, {name: new.get(name) for name in contents})
    except BaseException as error:
        for created in (*new.values(), *folders):
            _remove(created)
        if not isinstance(error, OSError):
            raise
        file, reason = error.filename or folder, error.strerror or error
        message = Errors.SC319.format(file=file, reason=reason, folder=folder, setting=setting)
        raise SparseCRFError(message) from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Exclude other writers of a folder, where the system has locks."""
    if os.name == "nt":
        yield
        return
    from fcntl import LOCK_EX, flock

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _put(folder: Path, new: Mapping[str, Path | None]) -> None:
    """Rename all new files to their final names, or none of them. RAISES: OSError."""
    done: dict[Path, Path | None] = {}
    try:
        for name, path in new.items():
            target = folder / name
            done[target] = _keep(target)
            if path is not None:
                os.replace(path, target)
            else:
                target.unlink(missing_ok=True)
        _sync(folder)
    except BaseException:
        for target, old in done.items():
            if old is not None:
                os.replace(old, target)
            # os.replace does nothing if both names are links to one file.
            _remove(old or target)
        raise
    for old in done.values():
        if old is not None:
            _remove(old)


def _keep(place: Path) -> Path | None:
    """Link or copy a file to a backup name and return it; None if the file does not exist."""
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


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clean(folder: Path, name: str) -> None:
    """Remove incomplete files of a name that writers left when they were killed."""
    for path in folder.glob(f"{glob.escape(name)}.{'[0-9a-f]' * 8}{_NEW}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE:
                path.unlink()


def _remove(path: Path) -> None:
    """Remove a file or an empty folder; ignore an OSError."""
    with suppress(OSError):
        path.rmdir() if path.is_dir() else path.unlink()
