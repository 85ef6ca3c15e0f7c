"""Description of the machine used for measurements."""

import datetime
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any


@cache
def describe() -> dict[str, Any]:
    """Return processor, Python, date and commit, but no names or paths."""
    return {
        "date": datetime.date.today().isoformat(),
        "processor": _processor(),
        "python": platform.python_version(),
        "commit": _commit(),
    }


def _processor() -> str:
    """Return the model of the processor."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def _commit() -> str:
    """Return the commit of the repository, with a + if there are uncommitted changes."""
    if shutil.which("git") is None:
        return "unknown"
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+"]
    done = subprocess.run([*command, "--exclude=*"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
