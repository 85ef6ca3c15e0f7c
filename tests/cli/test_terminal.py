"""Labels, words and file names cannot command a terminal; legitimate text is printed as it is."""

import os
import pty
import re
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
import spacy

from spacy_sparsecrf.__main__ import GROUPS
from spacy_sparsecrf.crf.model.names import escape, read_name, unescape, write_name
from spacy_sparsecrf.errors import Errors, SparseCRFError, SparseCRFWarning, printable, warn
from spacy_sparsecrf.tools.cli.printing import LINE, print_table

from ..support.commands import run
from ..support.toy import blank_with, examples_of, train, write_corpus

HOSTILE = "q\x1b]0;own\x07\x00\x9b2J\u202e\u2066\u200f\u061c\u2028\x7fz"
UNSAFE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Joiners, combining marks, right-to-left letters, and variation selectors.
PLAIN = [
    "\u0645\u06cc\u200c\u062e",
    "e\u0301",
    "\u05d0\u05d1",
    "\U0001f469\u200d\U0001f680",
    "♥\ufe0f",
]
SENTENCES = [([HOSTILE, "runs", PLAIN[0]], [f"N{HOSTILE}", "V", "P"])] * 12


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> tuple[Path, Path]:
    """Return the paths of a pipeline and of its corpus, with hostile names."""
    folder = tmp_path_factory.mktemp("hostile")
    nlp = blank_with(["b:", "u:orth[0]"], l1=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SparseCRFWarning)
        train(nlp, examples_of(nlp, SENTENCES), 3)
    data = folder / f"{HOSTILE}.spacy".replace("\0", "")
    write_corpus(str(data), nlp, [*SENTENCES, (["runs"], [f"N{HOSTILE}"])])
    nlp.to_disk(folder / "nlp")
    return folder / "nlp", data


def shown(result: object) -> str:
    """Return what a command printed, without the colours that it sets."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(result.output))


@pytest.mark.filterwarnings("ignore:.*SCW220")
def test_commands_escape_what_they_print(files):
    model, data = files
    words = " ".join([*PLAIN, HOSTILE.replace("\0", "")])
    for arguments in (
        ("explain", model),
        ("explain", model, "--text", words),
        ("errors", model, data),
        ("debug", model, data),
        ("dump", model),
    ):
        text = shown(run(*arguments))
        assert not UNSAFE.search(text), arguments
        assert "\\u001b]0;own" in text, arguments
    for path in (data.with_name(f"{HOSTILE[1:9]}none"), data):
        assert not UNSAFE.search(shown(run("dump", path, code=1)))
    text = shown(run("explain", model, "--text", words))
    assert all(word in text for word in PLAIN[:3])  # the tokenizer divides the others


def test_weights_with_hostile_names_are_written_and_read(files, tmp_path):
    lines = run("dump", files[0]).stdout
    (tmp_path / "weights.tsv").write_text(lines, encoding="utf8")
    run("patch", files[0], tmp_path / "weights.tsv", tmp_path / "same", "--replace")
    assert run("dump", tmp_path / "same").stdout == lines
    pipes = [spacy.load(path).get_pipe("sparse_crf") for path in (files[0], tmp_path / "same")]
    assert pipes[0].model.to_bytes() == pipes[1].model.to_bytes()


@pytest.mark.parametrize("text", [HOSTILE, "\\u001b", "u001b\\", "\\\x1b", "\n\t\r|=", *PLAIN])
def test_names_come_back(text):
    assert unescape(escape(text)) == text
    name = write_name([("lower[0]", text), ("orth[-1]", text)])
    assert read_name(name) == [("lower[0]", text), ("orth[-1]", text)]
    assert not UNSAFE.search(name + escape(text))


def test_messages_are_escaped():
    for text in (HOSTILE, "\ud800"):
        error = str(SparseCRFError(text))
        assert not UNSAFE.search(error) and error.encode("utf8") == printable(text).encode("utf8")
    with pytest.warns(SparseCRFWarning) as caught:
        warn(HOSTILE)
    assert not UNSAFE.search(str(caught[0].message))
    assert printable("\n".join(PLAIN)) == "\n".join(PLAIN)


# A terminal's output, and that of pipes


# Run in one process, as a process imports for seconds.
COMMANDS = """
import sys
from spacy_sparsecrf.__main__ import app
for line in sys.argv[1:]:
    app(line.split("\\t"), prog_name="python -m spacy_sparsecrf", standalone_mode=False)
    print("END", flush=True)
"""


def run_in_terminal(command: list[str], environment: dict[str, str]) -> str:
    """Run a command on a pseudo-terminal of 80 columns; return what it writes."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    found = b""
    try:
        while read := os.read(ours, 4096):
            found += read
    except OSError:  # on Linux, the other side is closed
        pass
    os.close(ours)
    assert process.wait() == 0, found
    return found.decode()


def test_escape_codes_are_for_terminals_without_no_color(trained_dir):
    lines = "--help", "tune\t--help", "config", f"explain\t{trained_dir}\t-n\t1"
    command = [sys.executable, "-c", COMMANDS, *lines]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm-256color"}
    environment.pop("ANSI_COLORS_DISABLED", None)
    *shown, end = run_in_terminal(command, environment).split("END")
    assert ["\x1b[" in text for text in shown] == [True, True, False, True] and not end.strip()
    assert "\x1b" not in run_in_terminal(command, {**environment, "NO_COLOR": "1"})
    piped = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "\x1b" not in piped.stdout + piped.stderr
    assert max(map(len, piped.stdout.splitlines())) <= LINE


def test_commands_are_grouped_and_their_help_flows(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(run("--help"))
    panels = re.findall(r"╭─ (\w+) ─", text)
    assert panels == ["Options", *GROUPS]
    own = re.findall(r"^│ (\w+) {2,}\S", text, re.MULTILINE)
    names = [each.__name__.removesuffix("_model") for group in GROUPS.values() for each in group]
    assert own == names
    # Each line of a paragraph but the last has no room for the next word.
    for name in names:
        lines = [line.strip() for line in shown(run(name, "--help")).split("╭")[0].splitlines()]
        for line, after in pairwise(lines):
            if line and after:
                assert len(line) + 1 + len(after.split()[0]) > LINE - 2, name


def test_wide_tables_are_wrapped(capsys):
    names = ["a", "lower[-1]=of|" * 12, "two words " * 12]
    rows = [[name, "+1.000", "x" * n] for n, name in enumerate(names)]
    print_table(rows, ("feature", "weight", "on"), "lrl")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= LINE
    cells = "".join(line[: lines[1].index("weight")] for line in lines)
    assert "".join(cells.split()).count("lower[-1]=of|") == 12
    assert sum("+1.000" in line for line in lines) == 3
    print_table([], ("none",), "l")
    assert capsys.readouterr().out == ""


def test_values_in_messages_end_at_60_characters():
    message = Errors.SC212.format(label="é\n" * 999, name="a" * 99)
    assert re.search(rf"'(é\\n)+é?\\?\.\.\. .* '{'a' * 99}'", message) and len(message) < 250
