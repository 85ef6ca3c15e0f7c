"""Whole runs of `spacy train` by shipped configs on real data: scores, weights, CPU time, memory."""

import gzip
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# name: data, sentences (0: all), columns, language, config.
RUNS = {
    "ewt": ("ud-en-ewt", 0, "orth,_,tag,_,space_after", "en", "tagger"),
    "es-3000": ("conll2002-es", 3000, "orth,_,ner", "es", "ner"),
    "es": ("conll2002-es", 0, "orth,_,ner", "es", "ner"),
    "conll2000": ("conll2000", 0, "orth,tag,chunk", "en", "spans"),
}
SPLITS = {"conll2000": {"train": "train7936", "dev": "dev1000"}}


def rows(scratch: Path, names: list[str]) -> list[dict[str, Any]]:
    """Return a row for each run; SPARSECRF_DATA is the folder of data."""
    return [_row(name, scratch) for name in names or RUNS]


def convert(name: str, folder: Path) -> Path:
    """Write train.spacy and dev.spacy of a run by the command `convert`; return their folder."""
    data, limit, columns, lang, _ = RUNS[name]
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev"):
        source = SPLITS.get(data, {}).get(split, split)
        path = Path(os.environ["SPARSECRF_DATA"]) / f"{data}.{source}.tsv.gz"
        if limit and split == "train":
            text = gzip.decompress(path.read_bytes()).decode().split("\n\n")
            path = folder / "train.tsv"
            path.write_text("".join(f"{s}\n\n" for s in itertools.islice(text, limit)), "utf8")
        _python("spacy_sparsecrf", "convert", path, folder / f"{split}.spacy",
                "--format", "tsv", "--columns", columns, "--lang", lang)  # fmt: skip
    return folder


def _python(*arguments: object) -> Any:
    """Run `python -m ...`; return its rusage."""
    with open(os.devnull, "w") as null:
        command = [sys.executable, "-W", "ignore", "-m", *map(str, arguments)]
        process = subprocess.Popen(command, stdout=null)
        _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return usage


def _row(name: str, scratch: Path) -> dict[str, Any]:
    _, _, _, lang, config = RUNS[name]
    folder = convert(name, scratch / name)
    path, output = folder / "config.cfg", folder / "training"
    _python("spacy_sparsecrf", "config", config, "--lang", lang, "--no-sentencizer",
            "-o", path, "--force")  # fmt: skip
    pipe = path.read_text().split("pipeline = [")[1].split("]")[0].split(",")[-1].strip(' "')
    usage = _python("spacy", "train", path, "--output", output,
                    "--paths.train", folder / "train.spacy", "--paths.dev", folder / "dev.spacy",
                    "--corpora.train.gold_tokens", "true", "--corpora.dev.gold_tokens", "true",
                    f"--components.{pipe}.n_threads", "1")  # fmt: skip
    performance = json.loads((output / "model-best/meta.json").read_text())["performance"]
    score = {k: v for k, v in performance.items() if k in ("tag_acc", "ents_f", "spans_sc_f")}
    import spacy

    model = spacy.load(output / "model-best").get_pipe(pipe).model
    return {
        "row": f"whole {name}",
        "score": {key: repr(value) for key, value in score.items()},
        "n_active": model.n_active,
        "noisy": {
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
            "peak_mb": usage.ru_maxrss // 1024,
        },
    }
