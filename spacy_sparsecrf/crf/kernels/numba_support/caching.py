"""Disk cache of the machine code of kernels; kernels also run if nothing can be cached.

Directories are read in this order, up to the first writable directory, which gets new code:
`NUMBA_CACHE_DIR`, `kernels.cache_dir`, `__pycache__` next to the source, numba's other choices. A
relative directory is not used, nor one that other users may write to, because code is unpickled.

Each file has the code of one function for one signature, processor and stamp of the sources, all of
which are in its name: processes with other versions read and write other files.
"""

# mypy: allow-untyped-calls
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from glob import glob
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from ..cache_dir import checked, damaged, make_room, version_directory
from ..cache_files import await_other, make, read, write

# Internals of numba used below: if one is missing, the import fails, which the fallback expects.
_FROM_VARIABLE, _IN_TREE, *_OTHERS = CompileResultCacheImpl._locator_classes
_NEEDED = CompileResultCacheImpl.rebuild, rtsys.initialize
_KERNELS = next(path for path in Path(__file__).resolve().parents if path.name == "kernels")
_VERSION = version_directory(numba.__version__)


@cache
def _stamp(directory: str) -> str:
    """Return a digest of numba's version and the sources in a directory and in `kernels/`."""
    digest = sha256(numba.__version__.encode())
    for path in sorted({*_KERNELS.rglob("*.py"), *Path(directory).resolve().glob("*.py")}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class UserDirectory(_IN_TREE):  # type: ignore[misc, valid-type]
    """The directory of a source file's code in the user's cache."""

    def get_cache_path(self) -> str:
        """Return the directory, whose name has a hash of the path of the sources."""
        return os.path.join(_VERSION or "", self.get_suitable_cache_subpath(self._py_file))


class KernelCache(NullCache):
    """A cache on disk, which also reads directories that are not writable.

    is_kept: whether code compiled in this process is cached for later processes.
    """

    _index_key: Any = FunctionCache._index_key

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_func, source = function, function.__code__.co_filename
        # Code of notebooks and archives has no file.
        self._source = os.path.realpath(source) if os.path.exists(source) else "/"
        self.is_kept = False
        self._directories: list[str] = []
        user_locators: list[Any] = [UserDirectory] if _VERSION else []
        for locator in [_FROM_VARIABLE, *user_locators, _IN_TREE, *_OTHERS]:
            # Without its check, numba also uses a directory that is not writable.
            unchecked = type(locator.__name__, (locator,), {"ensure_cache_path": lambda _: None})
            files = type("Files", (CompileResultCacheImpl,), {"_locator_classes": [unchecked]})
            with suppress(OSError, RuntimeError):  # numba does not use it, or it is not writable
                self._files: Any = files(function)
                cache_path = self._files.locator.get_cache_path()
                is_absolute = os.path.isabs(cache_path)
                directory = os.path.realpath(cache_path) if is_absolute else cache_path
                self._directories.append(checked(directory, self._source))
                self._stamp = _stamp(os.path.dirname(source))
                self._prefix = f"{self._files.filename_base}.{self._stamp[:16]}."
                make(directory)
                locator.ensure_cache_path(self._files.locator)
                self.is_kept = True
                break

    @property
    def cache_path(self) -> str | None:
        """Directory that gets new code, or None."""
        return self._directories[-1] if self.is_kept else None

    @property
    def has_code(self) -> bool:
        """True if there is code of this source and this numba, for arguments of any types."""
        return bool(self._find(lambda directory: glob(f"{self._prefix}*.nbc", root_dir=directory)))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the code for arguments of some types; None if it is to be compiled."""
        # numba would import all of its implementations; cached code needs only reference counting.
        rtsys.initialize(target_context)
        read = partial(self._find, lambda directory: self._load(directory, sig, target_context))
        if (code := read()) or not self.cache_path:
            return code
        _, name = self._name(sig, target_context.codegen())
        return await_other(os.path.join(self.cache_path, name), read)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save code if possible; a full disk or missing permission must not stop a kernel."""
        if self.is_kept and self._files.check_cachable(data):
            key, name = self._name(sig, data.codegen)
            try:
                directory = checked(self._directories[-1], self._source)
                make_room(directory)
                write(os.path.join(directory, name), dumps((key, self._files.reduce(data))))
            except OSError:
                self.is_kept = False

    def _name(self, sig: Any, codegen: Any) -> tuple[Any, str]:
        """Return numba's key of the code for arguments of some types, and its file name."""
        key = self._index_key(sig, codegen)
        return key, f"{self._prefix}{sha256(f'{self._stamp} {key}'.encode()).hexdigest()[:16]}.nbc"

    def _load(self, directory: str, sig: Any, context: Any) -> Any:
        """Return the code in a directory; None if there is none, or it is damaged."""
        key, name = self._name(sig, context.codegen())
        path = os.path.join(directory, name)
        try:
            stored_key, code = pickle.loads(read(path, self._source))  # noqa: S301
            # Types of one name may have different fields.
            return self._files.rebuild(context, code) if stored_key == key else None
        except Exception as error:
            if not (damaged or isinstance(error, FileNotFoundError)):
                damaged.update(path=path, reason=str(error))
            return None

    def _find(self, read: Callable[[str], Any]) -> Any:
        """Return the first result of reading the directories that is not empty, or None."""
        for directory in self._directories:
            with suppress(OSError):  # no permission to read it
                if code := read(checked(directory, self._source)):
                    return code
        return None
