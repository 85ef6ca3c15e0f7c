"""Storage of arrays that are as long as the corpus: in memory, or in files of a directory."""

import ctypes
import mmap
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from threading import Event, Lock, Thread
from typing import IO, Any
from weakref import WeakSet

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import Errors, SparseCRFError

Array = NDArray[Any]
Longs = NDArray[np.int64]
Runs = list[tuple[int, int]]

# Tokens per chunk if arrays are in files, or if temporary arrays are long.
CHUNK = 1 << 16
# Arrays begin at a multiple of this in a file.
_ALIGNMENT = 64
# Bounds on the bytes of a file that arrays share; each new file is twice as large as the last.
_LEAST_FILE = 1 << 20
_LARGEST_FILE = 1 << 28
# Bytes of file pages that may become resident before pages are released; interval of checks.
_MOST_RESIDENT = 1 << 27
_SECONDS = 0.01
_STATM = Path("/proc/self/statm")
# glibc's M_MMAP_THRESHOLD, and its value in bytes: smaller arrays are allocated too often.
_MMAP_THRESHOLD, _LARGE = -3, 1 << 23


def release_memory() -> None:
    """Return freed memory to the system: the C library keeps memory of small objects for reuse.

    From then on, memory of large arrays is returned as soon as an array is freed.
    """
    # There are no such functions in C libraries other than glibc.
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.malloc_trim(0)


def runs_of_tokens(offsets: Longs, n_tokens: int) -> Runs:
    """Divide sequences into runs of at most n_tokens tokens; a longer sequence is its own run.

    offsets: [S + 1], of sequences. RETURNS: bounds first:last of each run.
    """
    bounds = [0]
    while bounds[-1] < len(offsets) - 1:
        limit = offsets[bounds[-1]] + n_tokens
        last = int(np.searchsorted(offsets, limit, side="right")) - 1
        bounds.append(max(last, bounds[-1] + 1))
    return list(pairwise(bounds))


def short_runs(offsets: Longs) -> Runs:
    """Return runs of sequences with at most CHUNK tokens; offsets: [S + 1], of sequences."""
    return runs_of_tokens(offsets, CHUNK)


def chunks_of(n: int) -> Runs:
    """Return ranges that cover n items, of at most CHUNK each."""
    return list(pairwise([*range(0, n, CHUNK), n])) if n else [(0, 0)]


class Memory:
    """Arrays in memory; whole arrays are processed at once."""

    on_disk = False

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return a new array of zeros."""
        return np.zeros(shape, dtype)

    def kept(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the arrays in this storage."""
        return list(arrays)

    def joined(self, pieces: Iterable[Array], dtype: DTypeLike, n: int | None = None) -> Array:
        """Concatenate pieces into an array [n]; if n is given, only one piece is held at a time."""
        if n is not None:
            whole, end = np.empty(n, dtype), 0
            for piece in pieces:
                whole[end : (end := end + len(piece))] = piece
            return whole
        found = list(pieces)
        return found[0] if len(found) == 1 else np.concatenate([np.zeros(0, dtype), *found])

    def ranges(self, n: int) -> Runs:
        """Return ranges that cover n items, each small enough to be processed at once."""
        return [(0, n)]

    def runs(self, offsets: Longs) -> Runs:
        """Return runs of sequences, each small enough to process at once; offsets: [S + 1]."""
        return [(0, len(offsets) - 1)]

    def looked_up(self, table: Array, numbers: Array) -> Array:
        """Return table[numbers]; numbers: [n]."""
        pieces = (table[numbers[first:last]] for first, last in self.ranges(len(numbers)))
        return self.joined(pieces, table.dtype)

    def counts(self, numbers: Array, n: int) -> Longs:
        """Count the occurrences of each number below n: [n] int64."""
        found = np.zeros(n, np.int64)
        for first, last in self.ranges(len(numbers)):
            found += np.bincount(numbers[first:last], minlength=n)
            self.release()
        return found

    def release(self) -> None:
        """Release the memory pages of arrays; the content stays."""

    def check(self) -> None:
        """Check that all arrays are still complete. RAISES: SparseCRFError if not."""

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Release pages while the body runs, so that few are resident at any time."""
        yield


class Files(Memory):
    """Arrays in unnamed files of a directory; a file is removed with the last reference to it.

    Data stays in the page cache of the system and does not count as memory of the process.
    RAISES: SparseCRFError, also from its methods, if files cannot be written.
    """

    on_disk = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._maps: WeakSet[mmap.mmap] = WeakSet()
        self._lock = Lock()
        self._free: Array = np.zeros(0, np.uint8)
        self._grown = 0
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self.failure(error) from error

    def failure(self, error: OSError) -> SparseCRFError:
        """Return the exception for an error of the system."""
        text = Errors.SC345.format(path=self.directory, reason=error.strerror or error)
        return SparseCRFError(text)

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return a new array of zeros, in a separate file."""
        kind = np.dtype(dtype)
        n_bytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        if n_bytes == 0:
            return np.zeros(shape, kind)
        with self._temporary() as file:
            _reserve(file, n_bytes)
            return np.ndarray(shape, kind, self._mapped(file, n_bytes))

    def kept(self, arrays: Sequence[Array]) -> list[Array]:
        """Return copies of arrays in shared files: the number of open files is limited."""
        starts = np.cumsum([0] + [-(-a.nbytes // _ALIGNMENT) * _ALIGNMENT for a in arrays])
        size = int(starts[-1])
        if size > len(self._free):
            self._grown = min(max(2 * self._grown, _LEAST_FILE), _LARGEST_FILE)
            self._free = self.zeros(max(size, self._grown), np.uint8)
        memory, self._free = self._free[:size], self._free[size:]
        found = []
        for start, array in zip(starts[:-1].tolist(), arrays, strict=True):
            own = np.ndarray(array.shape, array.dtype, memory[start : start + array.nbytes])
            own[...] = array
            found.append(own)
        return found

    def joined(self, pieces: Iterable[Array], dtype: DTypeLike, n: int | None = None) -> Array:
        """Write pieces to an array [n]."""
        kind, n_bytes = np.dtype(dtype), 0
        with self._temporary() as file:
            for piece in pieces:
                n_bytes += file.write(piece.astype(kind, copy=False).tobytes())
                self.release()
            file.flush()
            if n_bytes == 0:
                return np.zeros(0, kind)
            return np.ndarray(n_bytes // kind.itemsize, kind, self._mapped(file, n_bytes))

    @contextmanager
    def _temporary(self) -> Iterator[IO[bytes]]:
        """Yield an unnamed file. RAISES: SparseCRFError for errors of the system in the body."""
        try:
            with tempfile.TemporaryFile(dir=self.directory) as file:
                yield file
        except OSError as error:
            raise self.failure(error) from error

    def ranges(self, n: int) -> Runs:
        """Return ranges that cover n items, of at most CHUNK each."""
        return chunks_of(n)

    def runs(self, offsets: Longs) -> Runs:
        """Return runs of sequences with at most CHUNK tokens; a longer sequence is its own run."""
        return short_runs(offsets)

    def opened(self, path: Path, dtype: str) -> Array:
        """Map the array [n] of a .npy file; changes are never written to the file.

        RAISES: ValueError if the file is truncated or of another format; OSError.
        """
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            n = max(size - len(npy_header(dtype, 0)), 0) // np.dtype(dtype).itemsize
            expected = npy_header(dtype, n)
            file.seek(0)
            is_such = file.read(len(expected)) == expected
            if not is_such or size != len(expected) + n * np.dtype(dtype).itemsize:
                raise ValueError(f"{path.name} is no .npy file of {dtype}, or is cut off")
            if n == 0:
                return np.zeros(0, dtype)
            found = self._mapped(file, size, mmap.ACCESS_COPY)
        return np.ndarray(n, dtype, found, len(expected))

    def release(self) -> None:
        """Release the pages of arrays, which then do not count as memory of the process."""
        if hasattr(mmap, "MADV_DONTNEED"):
            with self._lock:
                for found in self._maps:
                    found.madvise(mmap.MADV_DONTNEED)

    def check(self) -> None:
        """Check that no file was truncated: reading beyond its end crashes the process.

        RAISES: SparseCRFError if not.
        """
        with self._lock:
            sizes = [(found.size(), len(found)) for found in self._maps]
        for size, expected in sizes:
            if size < expected:
                reason = f"a file has {size} bytes, not {expected}"
                raise SparseCRFError(Errors.SC348.format(path=self.directory, reason=reason))

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """See `Memory.bounded`; kernels may run for long, and read sequences in any order."""
        self.release()
        most, ended = min(_resident_of_files() + _MOST_RESIDENT, sys.maxsize), Event()

        def watch() -> None:
            while not ended.wait(_SECONDS):
                if _resident_of_files() >= most:
                    self.release()

        watcher = Thread(target=watch, name="sparsecrf-pages", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
            self.release()

    def _mapped(self, file: IO[bytes], size: int, access: int = mmap.ACCESS_WRITE) -> mmap.mmap:
        found = mmap.mmap(file.fileno(), size, access=access)
        with self._lock:
            self._maps.add(found)
        return found


def npy_header(dtype: str, n: int) -> bytes:
    """Return the header of a .npy file of an array [n]."""
    header = BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": (n,)}
    np.lib.format.write_array_header_1_0(header, described)
    return header.getvalue()


def _resident_of_files() -> int:
    """Return the bytes of resident file pages; the maximum if unknown."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[2])
    except OSError:
        return sys.maxsize
    return pages * mmap.PAGESIZE


def _reserve(file: IO[bytes], n_bytes: int) -> None:
    """Allocate a file: writing to mapped bytes of a full disk crashes the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
        return
    empty = bytes(1 << 20)
    for first in range(0, n_bytes, len(empty)):
        file.write(empty[: n_bytes - first])
    file.flush()


MEMORY = Memory()
