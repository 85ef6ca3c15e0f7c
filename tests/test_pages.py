"""Code in README and the pages runs, and prints the output they show."""

import gc
import gzip
import io
import json
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from typing import Any

import catalogue
import pytest
import spacy
from spacy.tokens import DocBin, Token
from spacy.training import Example
from spacy.training.loggers import console_logger_v3

from .conftest import EXAMPLES
from .support import page_blocks
from .support.documents import DOCUMENTS, ROOT
from .support.peers import PEERS, crfsuite

DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
PAGES = [page for page in DOCUMENTS if page != TUTORIAL and page_blocks.blocks_of(page)]
CONLLU = (
    "1\tCats\tcat\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"
)

Names = dict[str, Any]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A directory after running the tutorial, with the examples of other pages."""
    directory = tmp_path_factory.mktemp("tutorial")
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        # spaCy relies on the garbage collector to close the files that it writes.
        warnings.simplefilter("ignore", ResourceWarning)
        patched.chdir(directory)
        page_blocks.run_page(TUTORIAL, {})
        gc.collect()
    for path in EXAMPLES.iterdir():
        shutil.copy(path, directory)
    return directory


# Names and files that pages expect, in addition to those left by the tutorial.


def for_commands() -> Names:
    text = "EU NNP I-NP B-ORG\nrejects VBZ I-VP O\n\n"
    Path("eng.train.gz").write_bytes(gzip.compress(text.encode()))
    Path("en_ewt-ud-train.conllu").write_text(CONLLU, encoding="utf-8")
    Path("train.crfsuite").write_text("B-ORG\tw[0]=EU\nO\tw[0]=rejects\n\n", encoding="utf-8")
    Path("edited.tsv").write_text("u\tlower[0]=cup\t#\tUNIT\t2.5\n", encoding="utf-8")
    return {}


def for_decoding() -> Names:
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf_ner", name="ner", config={"n_threads": 1})
    texts = ["Ada Lovelace wrote to Babbage", "Babbage wrote to Ada Lovelace", "They wrote"]
    people = [[(0, 12, "PER"), (22, 29, "PER")], [(0, 7, "PER"), (17, 29, "PER")], []]
    made = zip(texts, people, strict=True)
    examples = [Example.from_dict(nlp.make_doc(t), {"entities": e}) for t, e in made]
    nlp.initialize(lambda: examples)
    nlp.update(examples)
    return {"nlp": nlp, "pipe": nlp.get_pipe("ner"), "examples": examples, "Path": Path}


def for_thresholds() -> Names:
    given = for_decoding()
    given["nlp"].to_disk("training/model-best")
    DocBin(docs=[example.reference for example in given["examples"]]).to_disk("dev.spacy")
    return given


def for_cluster() -> Names:
    given = for_decoding()
    for name in ("docs", "annotated"):
        Path(name).mkdir()
    DocBin(docs=[example.predicted for example in given["examples"]]).to_disk("docs/a.spacy")
    return given | {"DocBin": DocBin, "ThreadPoolExecutor": ThreadPoolExecutor}


def for_migration() -> Names:
    shutil.copy(PEERS / "crf.wapiti", "chunks.wapiti")
    shutil.copy(PEERS / "crfpp.txt", "chunks.txt")
    shutil.copy(PEERS / "sklearn-crfsuite-0.5.0.p4.pkl.gz", "old.pkl.gz")
    Path("test.txt").write_text("The DT\nplan NN\n", encoding="utf-8")
    words = [{"bias": 1.0, "word.lower()": word} for word in ("the", "cat")]
    crfsuite([words] * 4, [["DET", "NOUN"]] * 4, Path("model.crfsuite"))
    return {}


def for_templates() -> Names:
    for name in ("chunk", "score"):
        if not Token.has_extension(name):
            Token.set_extension(name, default=None)
    Path("places.txt").write_text("New York\n", encoding="utf-8")
    Path("patterns.txt").write_text("U:%x[0,0]\nB\n", encoding="utf-8")
    return {}


def for_columns() -> Names:
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec")
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "tok2vec"}
    nlp.add_pipe(
        "tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}}
    )
    examples = [Example.from_dict(nlp.make_doc("Ada wrote"), {"tags": ["NNP", "VBD"]})]
    nlp.initialize(lambda: examples)
    nlp.add_pipe("attribute_ruler").add([[{"TAG": "NNP"}]], {"POS": "PROPN"})
    nlp.add_pipe("entity_ruler", name="ner").add_patterns([{"label": "PER", "pattern": "Ada"}])
    nlp.to_disk("en_core_web_sm")
    for name, texts in ("train", ["Ada wrote.", "They wrote."]), ("dev", ["Ada ran.", "We ran."]):
        DocBin(docs=[nlp(text) for text in texts]).to_disk(f"{name}.spacy")
    return {}


GIVEN: dict[str, Callable[[], Names]] = {"commands.md": for_commands, "decoding.md": for_thresholds}
GIVEN |= {"errors.md": for_decoding, "migration.md": for_migration, "patterns.md": for_templates}
GIVEN |= {"columns.md": for_columns}
GIVEN |= {"cluster.md": for_cluster, "deploy.md": lambda: {"__name__": "__main__"}}
GIVEN |= {"templates.md": for_templates}


def test_the_tutorial_shows_what_it_does(place):
    nlp = spacy.load(place / "en_ingredients-1.0.0" / "en_ingredients" / "en_ingredients-1.0.0")
    assert [token.tag_ for token in nlp("1 cup of milk")] == ["QTY", "UNIT", "OTHER", "NAME"]


# The few sentences of pages have no tags, and labels of few types.
@pytest.mark.filterwarnings("ignore:.*SCW205")
@pytest.mark.filterwarnings("ignore:.*SCW251.*DATE is in")  # the page says so
@pytest.mark.filterwarnings("ignore:Task supports sharding")  # spacy-llm, of any function
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_runs(page, place, tmp_path, monkeypatch):
    copy = tmp_path / "place"
    shutil.copytree(place, copy)
    text = page.read_text(encoding="utf-8")
    # Files that the page makes.
    made = [f"{name}*" for name in re.findall(r"spacy_sparsecrf example (\w+)$", text, flags=re.M)]
    made += ["dev.spacy"] if "--dev" in text else []
    made += re.findall(r"spacy_sparsecrf convert \S+ (\S+\.spacy)", text)
    for path in {path for pattern in made for path in copy.glob(pattern)}:
        path.unlink()
    monkeypatch.chdir(copy)
    monkeypatch.syspath_prepend(copy)
    # Objects that a page registers are unregistered afterwards.
    monkeypatch.setattr(catalogue, "REGISTRY", catalogue.REGISTRY.copy())
    given = GIVEN.get(page.name, dict)()
    commands = page_blocks.run_page(page, given)
    shown = [
        block for block in page_blocks.blocks_of(page) if block.language in ("bash", "console")
    ]
    assert bool(commands) == any("python -m spacy" in block.text for block in shown)
    for test in [value for name, value in given.items() if name.startswith("test_")]:
        test(**dict.fromkeys(signature(test).parameters, tmp_path))


def test_short_names_tell_components_apart_in_the_log():
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", "tags")
    nlp.add_pipe("sparse_crf_ner", "names")
    nlp.config["training"] = {"max_steps": 1, "eval_frequency": 1, "score_weights": {}}
    log = io.StringIO()
    console_logger_v3()(nlp, log, log)
    assert log.getvalue().split()[:6] == ["E", "#", "LOSS", "TAGS", "LOSS", "NAMES"]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = (tmp_path / "mathematics" / "index.html").read_text(encoding="utf-8")
    assert "<mark" in (tmp_path / "notebooks/entities/index.html").read_text(encoding="utf-8")
    assert shown.count("<math") > 20 and "$" not in re.sub(r"<script.*?</script>", "", shown)
    assert not re.search(r"</p>\s*<math", shown)  # no formula stands apart from its sentence
    assert (tmp_path / "fonts" / "formulas.ttf").stat().st_size > 100_000
    index = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("/")[0] for entry in index["docs"]}
    assert "entities" in found and "modules" not in found


def test_a_page_that_shows_something_else_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('```python\nprint("b")\n```\n\n```text\na\n```\n', encoding="utf-8")
    with pytest.raises(AssertionError):
        page_blocks.run_page(page, {})
    page.write_text("```ini\n[components.crf]\nl3 = 1\n```\n", encoding="utf-8")
    with pytest.raises(ValueError, match="l3"):
        page_blocks.run_page(page, {})
