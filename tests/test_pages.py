"""What a page shows runs: its blocks of Python one after the other, and then its commands."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from .cli.commands import run
from .cli.test_import import PEERS, crfsuite
from .test_docs import ROOT

MIGRATION = ROOT / "docs" / "migration.md"
BLOCK = re.compile(r"^```(\w+)\n([\s\S]*?)^```$|^    \$ python -m spacy_sparsecrf (.*)$", re.M)


def test_what_the_page_on_migration_shows_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(PEERS / "crf.wapiti", "chunks.wapiti")
    shutil.copy(PEERS / "crfpp.txt", "chunks.txt")
    parts = BLOCK.findall(MIGRATION.read_text(encoding="utf-8"))
    [tests] = [block for language, block, _ in parts if language == "json"]
    Path("tests.json").write_text(tests)
    names: dict[str, Any] = {}
    commands = []
    for language, block, command in parts:
        if language == "python":
            exec(compile(block, MIGRATION.name, "exec"), names)
            # Later blocks read Docs instead of dicts.
            learnt = names.setdefault("learnt", (names["X"], names["y"]))
        elif command:
            commands.append(command)
            if "crfsuite" in command:
                crfsuite(*learnt, Path("model.crfsuite"))
            run(*shlex.split(command))
    assert len(commands) == 3
    assert Path("tagger", "meta.json").is_file()
