"""Files of the kernel cache, and locks with which one process compiles while others wait.

A file has a SHA-256 of its name and content. It is written under a random name and renamed, so a
process that is killed leaves it whole or not at all.
"""

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from threading import get_ident
from typing import Any

from .cache_dir import MOST_BYTES, is_safe

# A link may lead to a file of others, and opening a pipe would wait.
_SAFE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
# Seconds to wait for another process; 0 after it took longer once.
_patience = {"seconds": 60.0}
# By thread, descriptor and path of the file that it has locked, or has waited for.
_locks: dict[int, tuple[int, str]] = {}


def read(path: str, source: str) -> bytes:
    """Return the content of a file of code. source: file of the function.

    RAISES: OSError; ValueError if it is not as `write` left it, or other users may write to it.
    """
    with open(path, "rb", opener=lambda path, _: os.open(path, os.O_RDONLY | _SAFE)) as file:
        status = os.fstat(file.fileno())
        is_file = stat.S_ISREG(status.st_mode) and status.st_size <= MOST_BYTES
        content = file.read() if is_file and is_safe(status, source) else b""
    if content[:32] != _digest(path, content[32:]):
        raise ValueError("it is damaged, or other users may write to it")
    return content[32:]


def make(directory: str) -> None:
    """Create a directory, and missing ones above it, in which only the user may write."""
    if not os.path.isdir(directory) and (parent := os.path.dirname(directory)) != directory:
        make(parent)
        with suppress(FileExistsError):
            os.mkdir(directory, 0o755)


def write(path: str, content: bytes) -> None:
    """Write a file of code, or nothing. RAISES: OSError."""
    new = f"{path}.{os.urandom(8).hex()}.nbt"
    make(os.path.dirname(path))
    try:
        with open(new, "xb", opener=lambda path, flags: os.open(path, flags, 0o644)) as file:
            file.write(_digest(path, content) + content)
        os.replace(new, path)
    finally:
        with suppress(OSError):
            os.unlink(new)


def _digest(path: str, content: bytes) -> bytes:
    return sha256(os.path.basename(path).encode() + content).digest()


def has_lock() -> bool:
    """Return whether this thread has a lock, or has waited for one."""
    return get_ident() in _locks


def await_other(path: str, read: Callable[[], Any]) -> Any:
    """Return what `read` finds once another process has written it, or None: compile it.

    Returns None as soon as this thread has the lock of a path of code, a file that no other user
    can open; `unlock` must follow. It does not wait if the thread has a lock already, or if locks
    fail, nor longer than `_patience`.
    """
    end = time.monotonic() + _patience["seconds"]
    if has_lock():
        return None
    with suppress(ImportError, OSError):  # Windows, or a file system without locks
        from fcntl import LOCK_EX, LOCK_NB, flock

        lock = f"{path}.nbl"
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | _SAFE, 0o600)
        _locks[get_ident()] = descriptor, lock
        os.fchmod(descriptor, 0o600)
        while time.monotonic() < end:
            with suppress(BlockingIOError):
                flock(descriptor, LOCK_EX | LOCK_NB)
                return read()
            if code := read():
                return code
            time.sleep(0.05)
        _patience["seconds"] = 0.0
    return None


def unlock() -> None:
    """Release the lock of this thread, if it has one, and remove its file.

    Who waits for the removed file finds the code, or compiles.
    """
    if lock := _locks.pop(get_ident(), None):
        descriptor, path = lock
        with suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def _forget_locks() -> None:
    """Close the locks of the parent process, which would last until both processes close them."""
    while _locks:
        os.close(_locks.popitem()[1][0])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)
