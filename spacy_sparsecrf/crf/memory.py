"""Memory that is available, in this process and its groups, and a check of label pairs."""

from pathlib import Path

from ..errors import Errors, SparseCRFError

# Bytes for each pair of labels in prediction: scores, with and without the mask, and masks; and
# bytes that are not worth a check.
_PER_PAIR, _ALWAYS_FREE = 32, 1 << 26
# Memory of label pairs, in sizes of a file of labels and their weights.
_TIMES_FILE = 1000
# Limits of a process, and the lines of its status that have the usage.
_USAGES = {"Max address space": "VmSize:", "Max data size": "VmData:"}
# The limit and usage of a control group, of either version: folder of the groups, and files.
_GROUPS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current"),
    "memory": ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def as_text(n_bytes: int) -> str:
    """Format a number of bytes."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"


def check_labels_fit(n_labels: int, name: str, n_bytes: int | None = None) -> None:
    """Check that matrices of label pairs fit in memory.

    name: of what has the labels; n_bytes: size of the file of a model that may be crafted.
    RAISES: SparseCRFError.
    """
    needed = _PER_PAIR * n_labels**2
    if needed <= _ALWAYS_FREE:
        return
    limits = [(available_memory(), "")]
    if n_bytes is not None:
        limits.append((_TIMES_FILE * n_bytes, f", {_TIMES_FILE} times its size"))
    for available, that in limits:
        if available is not None and needed > available:
            values = {"needed": as_text(needed), "available": as_text(available), "that": that}
            raise SparseCRFError(Errors.SC222.format(name=name, n=n_labels, **values))


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes available without swapping, or reaching a limit of the process or a group.

    root: folder of the file systems of Linux. RETURNS: None if unknown.
    """
    left = [1024 * n for n in _numbers(root / "proc/meminfo", "MemAvailable:")]
    for line in _lines(root / "proc/self/limits"):
        usage = _USAGES.get(line[:18].strip(), "")
        if usage and (soft := line.split()[3]).isdecimal():
            left += [int(soft) - 1024 * n for n in _numbers(root / "proc/self/status", usage)]
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        for kind in {"", "memory"} & set(controllers.split(",")):
            folder, limit, usage = _GROUPS[kind]
            innermost = root / folder / path.lstrip("/")
            for group in (*innermost.parents, innermost):
                # Inactive pages of files count as free.
                inactive = sum(_numbers(group / "memory.stat", "inactive_file"))
                used = _numbers(group / usage)
                left += [most - used[0] + inactive for most in _numbers(group / limit) if used]
    return max(0, min(left)) if left else None


def _numbers(path: Path, name: str = "") -> list[int]:
    """Return the number after a name that begins a line, or the number of the first line."""
    for line in _lines(path):
        if line.startswith(name):
            words = line.split()[bool(name) :][:1]
            return [int(word) for word in words if word.isdecimal()]
    return []


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
