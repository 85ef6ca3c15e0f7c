"""Python in new processes."""

import os
import subprocess
import sys
from typing import Any


def run_python(*arguments: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run Python with arguments, which must succeed. options: `env` has variables to add."""
    environment = {**os.environ, **options.pop("env", {})}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
