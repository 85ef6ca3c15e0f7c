"""What the figures were measured on."""

import datetime
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
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


def describe() -> dict[str, Any]:
    """Processor, memory, system, versions and date; neither names nor paths."""
    return {
        "date": datetime.date.today().isoformat(),
        "processor": _processor(),
        "cores": available_cores(),
        "memory_gb": round(total_memory() / 2**30, 1),
        "system": " ".join((platform.system(), platform.machine(), *platform.libc_ver())),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: _version(name) for name in PACKAGES},
        "commit": _commit(),
        "wapiti": _first_line("wapiti", "--version"),
        "wapiti_build": os.environ.get("WAPITI_BUILD", "flags not told (WAPITI_BUILD)"),
        "crf_learn": _first_line("crf_learn", "--version"),
    }


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def total_memory() -> int:
    """Bytes of memory in the machine, 0 where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def available_memory() -> int:
    """Bytes that a new process could use without swapping, 0 where the system does not tell."""
    information = Path("/proc/meminfo")
    if not information.exists():
        return 0
    for line in information.read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """Commit of the repository, with a + where files differ from it."""
    here = Path(__file__).resolve().parent
    git = shutil.which("git")
    if git is None:
        return "unknown"
    shown = subprocess.run(
        [git, "-C", str(here), "describe", "--always", "--dirty=+", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.stdout.strip() if shown.returncode == 0 else "unknown"


def _first_line(program: str, flag: str) -> str:
    """First line of what a program says about its version."""
    path = shutil.which(program)
    if path is None:
        return ABSENT
    said = subprocess.run([path, flag], capture_output=True, text=True, check=False)
    lines = [line.strip() for line in (said.stdout + said.stderr).splitlines() if line.strip()]
    return lines[0] if lines else "on PATH, version not told"


if __name__ == "__main__":
    for name, value in describe().items():
        sys.stdout.write(f"{name}: {value}\n")
