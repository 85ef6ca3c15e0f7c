"""Made-up files of all data sets that project commands read, and their commands."""

import gzip
import importlib
from pathlib import Path

import numpy as np
from typer import Typer
from typer.main import get_command
from typer.testing import CliRunner

from .toy import make_sentences

PROJECT = Path(__file__).resolve().parents[2] / "project"
MEASUREMENTS = PROJECT / "measurements"
# Tokens differ in the number of these features.
WORDS = "cat", "tack", "act", "back", "cab", "tab", "bat", "kit", "tick", "bit"
_SOUNDS = {"c": "k", "k": "-"}


def write_gzip(path: Path, rows: list[list[list[str]]]) -> None:
    """Write sentences in columns."""
    lines = ("".join("\t".join(row) + "\n" for row in sentence) + "\n" for sentence in rows)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(lines)


def letter_rows(word: str) -> list[list[str]]:
    """Return a row for each letter: sound, stress, and both joined."""
    sounds = [_SOUNDS.get(letter, letter) for letter in word]
    stress = ["1" if letter in "ai" else ">" for letter in word]
    return [[a, b, c, f"{b}/{c}"] for a, b, c in zip(word, sounds, stress, strict=True)]


def write_all(folder: Path) -> None:
    """Write a few sentences of each data set."""
    for split, words in {"train": WORDS[:8], "dev": WORDS[8:9], "test": WORDS[9:]}.items():
        write_gzip(folder / f"nettalk.{split}.tsv.gz", [letter_rows(word) for word in words])
    for i, part in enumerate(("train", "dev", "test")):
        found = make_sentences(12, seed=i)
        # Nouns begin chunks and entities.
        iob = [["B-X" if tag == "NN" else "O" for tag in tags] for _, tags in found]
        rows = [
            list(zip(*pair, labels, strict=True)) for pair, labels in zip(found, iob, strict=True)
        ]
        made = {
            "ud-en-ewt": [[[w, "X", t, "_", "1"] for w, t, _ in s] for s in rows],
            "conll2002-es": [[[w, t, y] for w, t, y in s] for s in rows],
            "brown": [[[w, t, t] for w, t, _ in s] for s in rows],
            "conll2000": [[[w, t, y] for w, t, y in s] for s in rows],
            "jnlpba": [[[w, y] for w, _, y in s] for s in rows],
        }
        names = {"conll2000": {"train": "train7936", "dev": "dev1000"}}
        names["jnlpba"] = {"train": "train16807", "dev": "dev1739"}
        for name, sentences in made.items():
            for file in {part, names.get(name, {}).get(part, part)}:
                write_gzip(folder / f"{name}.{file}.tsv.gz", sentences)
    rng = np.random.default_rng(0)
    word_id = np.repeat(np.arange(20), 3)
    np.savez(
        folder / "ocr-letters.npz",
        pixels=rng.integers(0, 2, (60, 8)).astype(np.uint8),
        label=rng.integers(0, 3, 60).astype(np.uint8),
        word_id=word_id.astype(np.int32),
        fold=(word_id % 10).astype(np.uint8),
    )


def run(words: list[str], there: bool = True) -> None:
    """Run the words of a command in this process, or only parse its arguments."""
    assert words[:2] == ["python", "-m"]
    name = {"bench": "bench.__main__", "pictures": "pictures.__main__", "spacy": "spacy.cli"}.get(
        words[2], words[2]
    )
    module = importlib.import_module(name)
    app = getattr(module, "app", None) or Typer()
    if name != "spacy.cli" and hasattr(module, "main"):
        app.command()(module.main)
    if not there:
        get_command(app).make_context(name, words[3:])
        return
    found = CliRunner().invoke(app, words[3:], catch_exceptions=False)
    assert found.exit_code == 0, found.output
