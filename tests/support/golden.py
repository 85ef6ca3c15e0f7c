"""Golden tables next to the tests that read them, one JSON row per line."""

import json
from pathlib import Path
from typing import Any


def read_golden(test_file: str, name: str) -> list[Any]:
    """Read the rows of a table in the directory of a test file."""
    text = Path(test_file).with_name(name).read_text(encoding="utf8")
    return [json.loads(row) for row in text.split("\n") if row]
