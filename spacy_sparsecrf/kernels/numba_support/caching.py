"""Disk cache of the machine code of kernels; kernels also run if nothing can be cached.

Directories are read in this order, up to the first writable directory, which gets new code:
`NUMBA_CACHE_DIR`, `kernels.cache_dir`, `__pycache__` next to the source, numba's other choices. A
directory that other users may write to is not used, because numba executes the code in it.
"""

# mypy: allow-untyped-calls
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.core.runtime.nrt import rtsys

from ..cache_dir import is_shared, make_room, version_directory

# Internals of numba used below: if one is missing, the import fails, which the fallback expects.
_FROM_VARIABLE, _IN_TREE, *_OTHERS = CompileResultCacheImpl._locator_classes
_load = FunctionCache._load_overload
_NEEDED = IndexDataCacheFile._load_index, rtsys.initialize
_KERNELS = next(path for path in Path(__file__).resolve().parents if path.name == "kernels")
_VERSION = version_directory(numba.__version__)
# Directories that are not used because other users may write to them.
refused: set[str] = set()


@cache
def _stamp(directory: str) -> str:
    """Return a digest of the sources in a directory and in `kernels/`, which validates code."""
    digest = sha256()
    for path in sorted({*_KERNELS.rglob("*.py"), *Path(directory).resolve().glob("*.py")}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class UserDirectory(_IN_TREE):  # type: ignore[misc, valid-type]
    """The directory of a source file's code in the user's cache."""

    def get_cache_path(self) -> str:
        """Return the directory, whose name has a hash of the path of the sources."""
        return os.path.join(_VERSION or "", self.get_suitable_cache_subpath(self._py_file))


class _Index(IndexDataCacheFile):
    """The index of a function's code on disk; empty if another version has written it."""

    def _load_index(self) -> dict[Any, Any]:
        # numba loads classes of arguments before it compares stamps: some may no longer exist.
        with suppress(AttributeError, ImportError):
            return dict(super()._load_index())
        return {}


def _open(locator: Any, function: Callable[..., Any]) -> FunctionCache | None:
    """Return numba's cache of a function in one of its directories; None if it is not used."""
    source = function.__code__.co_filename
    files = type("Files", (CompileResultCacheImpl,), {"_locator_classes": [locator]})
    try:
        found: Any = type("Directory", (FunctionCache,), {"_impl_class": files})(function)
    except RuntimeError:  # numba does not use it
        return None
    if is_shared(found.cache_path, source):
        refused.add(found.cache_path)
        return None
    # numba's stamp covers the function's file, but its code includes functions of other files.
    names = found.cache_path, found._impl.filename_base
    found._cache_file = _Index(*names, _stamp(os.path.dirname(source)))
    return found  # type: ignore[no-any-return]


class KernelCache(NullCache):
    """numba's cache on disk, which also reads directories that are not writable.

    is_kept: whether code compiled in this process is cached for later processes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.is_kept = False
        self._directories: list[Any] = []
        own = [UserDirectory] if _VERSION else []
        for locator in [_FROM_VARIABLE, *own, _IN_TREE, *_OTHERS]:
            # Without its check, numba also uses a directory that is not writable.
            unchecked = type(locator.__name__, (locator,), {"ensure_cache_path": lambda _: None})
            found = _open(locator, function)
            self.is_kept = found is not None
            self._directories += filter(None, [found or _open(unchecked, function)])
            if self.is_kept:
                break

    @property
    def cache_path(self) -> str | None:
        """Directory that gets new code, or None."""
        return self._directories[-1].cache_path if self.is_kept else None

    @property
    def has_code(self) -> bool:
        """True if there is code of this source and this numba, for arguments of any types."""
        return bool(self._find(lambda directory: directory._cache_file._load_index()))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the code for arguments of some types; None if no directory has it."""
        # numba would import all of its implementations; cached code needs only reference counting.
        rtsys.initialize(target_context)
        return self._find(lambda directory: _load(directory, sig, target_context))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save code if possible; a full disk or missing permission must not stop a kernel."""
        if self.is_kept:
            try:
                make_room(os.path.dirname(self._directories[-1].cache_path))
                self._directories[-1].save_overload(sig, data)
            except OSError:
                self.is_kept = False

    def _find(self, read: Callable[[Any], Any]) -> Any:
        """Return the first result of reading the directories that is not empty, or None."""
        for directory in self._directories:
            with suppress(OSError):  # no permission to read it
                if found := read(directory):
                    return found
        return None
