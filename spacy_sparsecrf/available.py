"""How much memory this process may still use, where the system tells."""

from pathlib import Path

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


def available_memory(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int | None:
    """Bytes that may still be used without swapping, or a limit of a container being hit.

    proc, cgroups: where the system tells. RETURNS: None where it does not.
    """
    found = [_of_machine(proc), *_of_groups(proc, cgroups)]
    known = [n for n in found if n is not None]
    return max(0, min(known)) if known else None


def _of_machine(proc: Path) -> int | None:
    """What the machine has left."""
    values = _fields(proc / "meminfo")
    return values["MemAvailable:"] * 1024 if "MemAvailable:" in values else None


def _of_groups(proc: Path, cgroups: Path) -> list[int | None]:
    """What control groups leave: the process's own and those around it, of either version."""
    left = []
    for line in _lines(proc / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, names = cgroups, ("memory.max", "memory.current")
        if controllers:
            root, names = cgroups / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        group = root / path.lstrip("/")
        around = [parent for parent in group.parents if parent.is_relative_to(root)]
        left += [_left(directory, *names) for directory in (group, *around)]
    return left


def _left(group: Path, limit_name: str, usage_name: str) -> int | None:
    """What the limit of a group leaves; pages of files that nobody reads do not count."""
    limit, usage = (_number(group / name) for name in (limit_name, usage_name))
    if limit is None or usage is None:
        return None
    return limit - usage + _fields(group / "memory.stat").get("inactive_file", 0)


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def _fields(path: Path) -> dict[str, int]:
    """The lines "name number" of a file."""
    rows = (line.split() for line in _lines(path))
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
