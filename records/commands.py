"""The output of each command of `python -m spacy_sparsecrf` on a small demo."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .solvers import sentences

ROOT = Path(__file__).parent.parent
# name: arguments; DATA.spacy and the models are made by earlier rows.
COMMANDS = {
    "convert train": "convert train.tsv train.spacy --lang en --columns orth,tag",
    "convert dev": "convert dev.tsv dev.spacy --lang en --columns orth,tag",
    "convert guess": "convert train.tsv guess.spacy",
    "convert docs": "convert train.tsv many.spacy --columns orth,tag --docs 4 --dev 0.25",
    "convert back": "convert train.spacy back.tsv --columns orth,tag",
    "convert jsonl": "convert tickets.jsonl tickets.spacy --lang en",
    "convert conllu": "convert words.conllu words.spacy",
    "convert slash": "convert slash.txt slash.spacy -f slash",
    "convert crfsuite": "convert train.crfsuite crfsuite.spacy --attribute w[0] --columns orth,tag",
    "convert ner": "convert ner.tsv ner.spacy --columns orth,tag,ner --lang en",
    "config": "config",
    "config tagger": "config tagger -o tagger.cfg",
    "config ner": "config ner -o ner.cfg",
    "config sag": "config tagger --solver SAG",
    "debug": "debug tagger.cfg train.spacy",
    "train tagger": "SPACY train tagger.cfg --output tagger --paths.train train.spacy "
    "--paths.dev dev.spacy",
    "train ner": "SPACY train ner.cfg --output ner --paths.train tickets.spacy "
    "--paths.dev tickets.spacy",
    "explain": "explain tagger/model-best -n 3",
    "explain text": "explain tagger/model-best --text axn_byv_czj -n 3",
    "errors": "errors tagger/model-best dev.spacy --limit 5",
    "errors ner": "errors ner/model-best tickets.spacy --limit 5",
    "calibrate": "calibrate tagger/model-best dev.spacy",
    "calibrate ner": "calibrate ner/model-best tickets.spacy --outside 1 --best-f 1",
    "dump": "dump tagger/model-best",
    "dump file": "dump ner/model-best --output ner.weights",
    "patch": "patch ner/model-best ner.weights patched",
    "path": "path tagger.cfg -o path --points 4 --paths.train train.spacy --paths.dev dev.spacy",
    "tune": "tune tagger.cfg -o tuned.cfg --l1 0.1,0.5 --l2 0.3 --min-freq 1 "
    "--paths.train train.spacy --paths.dev dev.spacy",
    "import": "import crf.wapiti imported --columns orth,tag --target _.chunk",
    "select": "select ner/model-best texts.txt -n 3",
    "annotate": "annotate ner/model-best texts.txt -o annotated",
    "clusters": "clusters texts.txt --classes 4 --min-count 1 --output classes.txt",
    "debug saved": "debug tagger/model-best dev.spacy",
}
# Numbers that differ from run to run, and paths.
NOISE = (
    (r"\x1b\[[\d;]*m", ""),
    (r"\[\d{4}-\d\d-\d\d [\d:,]+\] \[INFO\] .*\n", ""),
    (r"\d+(\.\d+)? ?(ms|s|GB|MB|kB)\b", "N"),
    (r"(?i)(seconds?|time|memory|took)\b.*", r"\1"),
    (r"/\S*/records-demo", "DEMO"),
    (r"[ \t]+", " "),
)


def write_demo(folder: Path) -> None:
    """Write columns, JSONL, CoNLL-U and other files of made-up sentences."""
    drawn = {"train": sentences(60, 1), "dev": sentences(20, 2)}
    for split, found in drawn.items():
        blocks = ["".join(f"{w}\t{t}\n" for w, t in zip(*s[:2], strict=True)) for s in found]
        (folder / f"{split}.tsv").write_text("\n".join(blocks))
    train = drawn["train"]
    (folder / "slash.txt").write_text(
        "".join(" ".join(map("/".join, zip(*s[:2], strict=True))) + "\n" for s in train)
    )
    row = "{}\t{}\t{}\tX\t{}\t_\t0\t_\t_\t_\n".format
    lines = ["".join(row(i, w, w, t) for i, (w, t) in enumerate(zip(*s[:2], strict=True), 1))
             for s in train]  # fmt: skip
    (folder / "words.conllu").write_text("".join(f"# text = x\n{line}\n" for line in lines))
    lines = ["".join(f"{t}\tw[0]={w}\tbias\n" for w, t in zip(*s[:2], strict=True)) for s in train]
    (folder / "train.crfsuite").write_text("\n".join(lines))
    lines = ["".join(f"{w}\t{t}\t{'B-PER' if t == 'NN' else 'O'}\n"
                     for w, t in zip(*s[:2], strict=True)) for s in train]  # fmt: skip
    (folder / "ner.tsv").write_text("\n".join(lines))
    with (folder / "tickets.jsonl").open("w") as file:
        for words, tags, _ in train:
            text, spans, start = " ".join(words), [], 0
            for word, tag in zip(words, tags, strict=True):
                spans += [[start, start + len(word), "PER"]] if tag == "NN" else []
                start += len(word) + 1
            print(json.dumps({"text": text, "label": spans}), file=file)
    (folder / "texts.txt").write_text("".join(" ".join(s[0]) + "\n" for s in drawn["dev"]))
    shutil.copy(ROOT / "tests/interop/peers/crf.wapiti", folder)


def normalised(text: str) -> str:
    """Return a text without times, sizes and paths."""
    for pattern, new in NOISE:
        text = re.sub(pattern, new, text)
    return text.strip()


def shortened(text: str) -> str:
    """Return a long text as its beginning and a digest."""
    if len(text) < 5_000:
        return text
    return f"{text[:500]} ... {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def rows(scratch: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    """Run all commands, since later ones read files of earlier ones; yield the named ones."""
    folder = scratch / "records-demo"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_demo(folder)
    for name, arguments in COMMANDS.items():
        given = [word.replace("_", " ") if "axn" in word else word for word in arguments.split()]
        module = ["spacy", *given[1:]] if given[0] == "SPACY" else ["spacy_sparsecrf", *given]
        command = [sys.executable, "-W", "ignore", "-m", *module]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        output = shortened(normalised(done.stdout + done.stderr))
        if not names or any(part in name for part in names):
            if "No such command" in output:
                yield {"row": f"command {name}", "error": "cut"}
            else:
                yield {"row": f"command {name}", "exit": done.returncode, "output": output}
