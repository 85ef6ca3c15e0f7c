"""Benchmarks of the sparse CRF and its peers: `python -m bench.NAME` in the project's folder."""

import sys
from pathlib import Path

# The readers of columns and the corpus reader that the configs name are the other workflows'.
_SCRIPTS = str(Path(__file__).resolve().parents[1] / "scripts")
if _SCRIPTS not in sys.path:
    sys.path.append(_SCRIPTS)
