"""Where the code of kernels is kept on disk, and what is done where it cannot be.

numba has a list of places: NUMBA_CACHE_DIR, `__pycache__` beside the source, the user's own cache.
It takes the first that can be written to, and raises an error where none can. Here places are read
in the same order, down to the first that can be written to, which takes new code; where none can,
code that no place has is compiled anew in each process. Code that others may have put into a place
is neither read nor added to: numba runs what it finds.
"""

import os
import stat
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.core.runtime.nrt import rtsys

Function = Callable[..., Any]


# Kernels in other directories, of solvers and add-ons, are made of functions in this one.
_KERNELS = next(path for path in Path(__file__).resolve().parents if path.name == "kernels")


@cache
def _stamp(directory: str) -> str:
    """Return a digest of the sources in a directory and in `kernels/`, by which code is valid."""
    digest = sha256()
    for path in sorted({*_KERNELS.rglob("*.py"), *Path(directory).resolve().glob("*.py")}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Files(CompileResultCacheImpl):
    """The names of a function's files at one of numba's places."""

    def __init__(self, locator: Any, function: Function) -> None:
        self._locator_classes = [locator]
        super().__init__(function)  # type: ignore[no-untyped-call]

    @classmethod
    def places(cls) -> list[Any]:
        """The places that numba knows, the one that it prefers first."""
        return cls._locator_classes


class _Index(IndexDataCacheFile):
    """The index of a function's code on disk, empty where another version has written it."""

    def _load_index(self) -> dict[Any, Any]:
        # numba reads classes of arguments before it compares stamps: some may not exist any more.
        try:
            found: dict[Any, Any] = super()._load_index()  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError):
            return {}
        return found


class _Place(FunctionCache):
    """What one of numba's places has of a function."""

    def __init__(self, locator: Any, function: Function) -> None:
        self._impl_class: Any = partial(_Files, locator)
        super().__init__(function)  # type: ignore[no-untyped-call]
        # numba looks at the function's own file, but its code has that of functions in others.
        directory = os.path.dirname(function.__code__.co_filename)
        self._cache_file: Any = _Index(
            self._cache_path, self._impl.filename_base, _stamp(directory)
        )  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the code for arguments of some types; None where there is none to be read."""
        # numba imports all that it knows of Python and numpy here, for some tenths of a second, and
        # does so again, at no cost, before it compiles. Code needs what counts references.
        rtsys.initialize(target_context)
        found, load = None, cast("Callable[..., Any]", self._load_overload)
        try:
            with self._guard_against_spurious_io_errors():
                found = load(sig, target_context)
        except OSError:  # no right to read it
            return None
        return found

    @property
    def has_code(self) -> bool:
        """Whether there is code of this source and this numba, for arguments of any types."""
        try:
            return bool(self._cache_file._load_index())
        except OSError:
            return False


@cache
def is_shared(directory: str, source: str) -> bool:
    """Tell whether somebody may write to a directory who may not write to a source file.

    Its owner may be the user, root or the owner of the source, who could change that as well.
    RETURNS: False where there is no such directory, or the system has no owners of files.
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


# The directories that were left alone as others may write to them.
refused: set[str] = set()


def _open(locator: Any, function: Function) -> _Place | None:
    """What a place has of a function; None where numba does not take the place, or others may."""
    try:
        place = _Place(locator, function)
    except RuntimeError:
        return None
    if is_shared(place.cache_path, function.__code__.co_filename):
        refused.add(place.cache_path)
        return None
    return place


def _read_only(locator: Any) -> type:
    """The same place, which numba takes even if it cannot be written to."""
    return type(locator.__name__, (locator,), {"ensure_cache_path": lambda _: None})


class KernelCache(NullCache):
    """numba's cache on disk, which also reads where it cannot write.

    is_kept: whether code that is compiled in this process will be there in the next one.
    """

    def __init__(self, function: Function) -> None:
        self.is_kept = False
        self._places: list[_Place] = []
        for locator in _Files.places():
            place = _open(locator, function)
            self.is_kept = place is not None
            place = place or _open(_read_only(locator), function)
            if place is not None:
                self._places.append(place)
            if self.is_kept:
                break

    @property
    def cache_path(self) -> str | None:
        """The directory that takes new code, or None."""
        return self._places[-1].cache_path if self.is_kept else None

    @property
    def has_code(self) -> bool:
        """Whether there is code of this source and this numba, for arguments of any types."""
        return any(place.has_code for place in self._places)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the code for arguments of some types; None where no place has it."""
        for place in self._places:
            found = place.load_overload(sig, target_context)
            if found is not None:
                return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep code, if any place takes it; a full disk or a lost right must not stop a kernel."""
        if self.is_kept:
            try:
                self._places[-1].save_overload(sig, data)  # type: ignore[no-untyped-call]
            except OSError:
                self.is_kept = False

    def flush(self) -> None:
        """Forget the code that this process may write; numba asks for it to compile anew."""
        if self.is_kept:
            self._places[-1].flush()  # type: ignore[no-untyped-call]
