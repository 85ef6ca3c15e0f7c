"""Description of the machine used for measurements."""

import datetime
import importlib.metadata
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = (
    "spacy-sparsecrf",
    "spacy",
    "numpy",
    "numba",
    "llvmlite",
    "python-crfsuite",
    "matplotlib",
)
ABSENT = "not on PATH"


@cache
def describe() -> dict[str, Any]:
    """Return processor, memory, system, versions and date, but no names or paths."""
    return {
        "date": datetime.date.today().isoformat(),
        "processor": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": available_cores(),
        "memory_gb": round(memory("MemTotal") / 2**30, 1),
        "system": " ".join((platform.system(), platform.machine(), *platform.libc_ver())),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: _version(name) for name in PACKAGES},
        "commit": _commit(),
        "wapiti": _output("wapiti", "--version") or ABSENT,
        "wapiti_build": os.environ.get("WAPITI_BUILD", "flags not told (WAPITI_BUILD)"),
    }


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory(name: str = "MemAvailable") -> int:
    """Return bytes of memory: `MemTotal`, or memory available to a new process; 0 if unknown."""
    found = _field("/proc/meminfo", name)
    return int(found.split()[0]) * 1024 if found else 0


def _field(path: str, name: str) -> str:
    """Return the value of a field of a file in /proc, or ""."""
    information = Path(path)
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(name):
                return line.split(":", 1)[1].strip()
    return ""


def _commit() -> str:
    """Return the commit of the repository, with a + if there are uncommitted changes."""
    options = ("describe", "--always", "--dirty=+", "--exclude=*")
    found = _output("git", "-C", str(Path(__file__).parent), *options)
    return "unknown" if not found or " " in found else found


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _output(program: str, *arguments: str) -> str:
    """Return the first line of a program's output, "" if the program is missing."""
    if shutil.which(program) is None:
        return ""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else "version unknown"
