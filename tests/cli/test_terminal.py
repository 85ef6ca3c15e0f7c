"""Labels, words and file names cannot command a terminal; legitimate text is printed as it is."""

import re
import warnings
from pathlib import Path

import pytest
import spacy

from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning, printable, warn
from spacy_sparsecrf.model.names import escape, read_name, unescape, write_name

from ..toy import blank_with, examples_of, train, write_corpus
from .commands import run

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
    nlp = blank_with(["b:", "u:orth[0]"], lang="en", l1=0.01)
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
