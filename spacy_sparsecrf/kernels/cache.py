"""Whether numba has compiled a kernel on this machine before."""

from pathlib import Path
from typing import Any


def is_compiled(kernel: Any) -> bool:
    """Tell whether a kernel was compiled in this process or is in numba's cache on disk.

    kernel: a function under `compiled.kernel`. After an upgrade of numba or of this package an
    old entry may be taken for a new one.
    """
    if kernel.signatures:
        return True
    name = f"{kernel.py_func.__module__.rpartition('.')[2]}.{kernel.py_func.__name__}"
    return any(Path(kernel.stats.cache_path).glob(f"{name}-*.nbi"))
