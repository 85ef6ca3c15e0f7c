"""The figures of a command as JSON."""

import json
from pathlib import Path
from typing import Any


def write_figures(output: Path | None, figures: Any) -> None:
    """Write figures to a file, if one is given, and the folders that it is in."""
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf8")
