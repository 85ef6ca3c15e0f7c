"""The objects of the reference pages: docstrings, examples, short texts, and HTML for notebooks."""

import ast
import doctest
import inspect
import pickle
import re
from importlib import import_module
from itertools import starmap
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.tools.analysis.explanation import Confidences, LabelledSpan
from spacy_sparsecrf.training_log import Iteration, TrainingLog

from .support.html_pages import HOSTILE, Reader
from .support.page_blocks import alike, blocks_of

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def constant(name: str) -> Any:
    """Return a constant of docs/site_pages.py, which imports what only the site needs."""
    tree = ast.parse((ROOT / "docs" / "site_pages.py").read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.Assign)]
    [value] = [node.value for node in found if ast.unparse(node.targets[0]) == name]
    return ast.literal_eval(value)


def listed_objects() -> list[tuple[str, str]]:
    """Return module and name of each object of the reference pages."""
    return [
        (f"spacy_sparsecrf.{module}", name)
        for _, modules, *_ in constant("INTERFACES").values()
        for module, names in modules.items()
        for name in names.split()
    ]


LISTED = listed_objects()
OBJECTS = [getattr(import_module(module), name) for module, name in LISTED]
NAMES = [name for _, name in LISTED]
HIDDEN = re.compile(f"_.*|{constant('PLUMBING')}")


class Checker(doctest.OutputChecker):
    """Compares outputs as those of pages: up to blanks, and last digits of numbers."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        part, dots, rest = want.partition("...")
        if dots and not part.endswith("\n"):
            return part.strip() in got and rest.strip() == ""
        return alike(want, got)


@pytest.fixture(scope="module")
def trained() -> dict[str, Any]:
    """The names of README's example, and its component, here named ner."""
    [block] = [each for each in blocks_of(README) if "nlp.add_pipe" in each.text]
    code = block.text.replace(
        'add_pipe("sparse_crf_ner")', 'add_pipe("sparse_crf_ner", name="ner")'
    )
    names: dict[str, Any] = {}
    exec(compile(code.replace("print", "repr"), "README.md", "exec"), names)
    return {**names, "pipe": names["nlp"].get_pipe("ner")}


@pytest.mark.parametrize(("module", "name"), LISTED, ids=NAMES)
def test_an_example_shows_the_object(module, name, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = getattr(import_module(module), name)
    space = {**vars(import_module(shown.__module__)), **trained}
    [found, *_] = doctest.DocTestFinder(recurse=False).find(shown, name, globs=space)
    assert found.examples
    told: list[str] = []
    doctest.DocTestRunner(Checker()).run(found, out=told.append)
    assert not told, "".join(told)


def public(shown: Any) -> list[tuple[str, Any]]:
    """Return an object and its public methods, each with its name."""
    own = [
        (f"{shown.__name__}.{name}", getattr(value, "__func__", value))
        for name, value in (vars(shown).items() if inspect.isclass(shown) else ())
        if not HIDDEN.fullmatch(name) and inspect.isfunction(getattr(value, "__func__", value))
    ]
    return [(shown.__name__, shown), *own]


@pytest.mark.parametrize("shown", OBJECTS, ids=NAMES)
def test_docstrings_describe_each_argument_and_no_type_is_missing(shown):
    faults = []
    for name, each in public(shown):
        text = inspect.getdoc(each) or ""
        if re.search(r"^(RETURNS|RAISES): |^Attributes: ", text, flags=re.M):
            faults.append(f"{name}: has no sections")
        if inspect.isclass(each):
            continue
        signature = inspect.signature(each)
        arguments = [arg for arg in signature.parameters if arg not in ("self", "cls")]
        described = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?$", text, flags=re.M)
        known = {part.strip("* ") for line in described for part in line.split(",")}
        faults += [f"{name}: {arg} is not described" for arg in arguments if arg not in known]
        returns = str(signature.return_annotation)
        if (
            "Any" in {returns, returns.rpartition(".")[2]}
            or signature.return_annotation is inspect._empty
        ):
            faults.append(f"{name}: returns Any")
    assert faults == []


def test_objects_describe_themselves_in_a_line(trained):
    nlp, examples = trained["nlp"], trained["examples"]
    pipe, doc = nlp.get_pipe("ner"), nlp.make_doc("Ada Diaz " * 50)
    shown = [pipe, pipe.training_log, pipe.confidences(doc), pipe.explain(), pipe.explain_doc(doc)]
    shown += [pipe.explain().labels[0], pipe.explain_doc(doc).tokens[0], pipe.features([doc])]
    for each in shown:
        assert "\n" not in repr(each) and 10 < len(repr(each)) < 200
    assert repr(spacy.blank("xx").add_pipe("sparse_crf_spans", name="a'b")) == (
        """SparseCRFPipe("a'b", not initialized)"""
    )
    assert len(examples) == 4


def is_inline(text: str) -> Reader:
    """Check HTML for notebooks: whole, without a style sheet, scripts or other files."""
    page = Reader(text)
    assert page.all("src") == [] and page.all("href") == [] and page.all("class") == []
    assert not {"script", "style", "link", "iframe"} & {tag for tag, _ in page.tags}
    # The colours of the notebook, light or dark, stay those of the text.
    styles = " ".join(filter(None, page.all("style")))
    assert not re.search(r"(?<![\w-])color: (?!inherit)", styles)
    return page


def test_a_component_is_shown_as_a_card(trained):
    pipe = trained["nlp"].get_pipe("ner")
    text = is_inline(pipe._repr_html_()).text
    assert "PERSON" in text and "271 active of 3,768 candidates" in " ".join(text.split())
    assert "l1 = 0.2, l2 = 1" in text and "OWLQN" in text and "kB" in text
    loaded = spacy.blank("xx").add_pipe("sparse_crf_ner").from_bytes(pipe.to_bytes())
    assert "candidates" not in is_inline(loaded._repr_html_()).text
    blank = spacy.blank("xx").add_pipe("sparse_crf", name=HOSTILE)
    for _ in range(2):
        assert HOSTILE in is_inline(blank._repr_html_()).text
        blank.add_label("<b>")
    many = spacy.blank("xx").add_pipe("sparse_crf")
    for number in range(60):
        many.add_label(f"L{number}")
    assert "and 20 more" in is_inline(many._repr_html_()).text


def test_predictions_are_shown_with_probabilities(trained):
    nlp = trained["nlp"]
    pipe, doc = nlp.get_pipe("ner"), nlp.make_doc("Last week,\tMaria Lopez flew to Lisbon.")
    found, text = pipe.confidences(doc), doc.text
    assert "".join(found.words) == text
    labelled = nlp(text)
    assert [each[:3] for each in found.spans] == [(e.start, e.end, e.label_) for e in labelled.ents]
    expected = pipe.entity_probabilities(doc, labelled.ents).tolist()
    assert [each.probability for each in found.spans] == expected
    page = is_inline(found._repr_html_()).text
    for span in found.spans:
        assert f"{doc[span.start : span.end].text} {span.label} {span.probability:.2f}" in page
    kept = [each.probability for each in pipe.confidences(labelled, forced=True).spans]
    assert kept == pytest.approx([1.0, 1.0])
    assert pipe.confidences(nlp.make_doc("")) == Confidences((), ())
    assert is_inline(Confidences((), ())._repr_html_()).text.strip() == ""
    hostile = Confidences((HOSTILE, " a"), (LabelledSpan(0, 1, HOSTILE, 0.25),))
    assert is_inline(hostile._repr_html_()).text.count(HOSTILE) == 2


def test_labels_of_tokens_have_probabilities_too():
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe("sparse_crf")
    words, tags = ["a", " ", "cat"], ["D", "", "N"]
    gold = Doc(nlp.vocab, words=words, tags=tags)
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=words), gold)] * 5)
    nlp.update([Example(Doc(nlp.vocab, words=words), gold)] * 5)
    doc = Doc(nlp.vocab, words=words)
    found, p = pipe.confidences(doc), pipe.marginals(doc)
    assert [each[:3] for each in found.spans] == [(0, 1, "D"), (2, 3, "N")]
    columns = [pipe.label_data.index(each.label) for each in found.spans]
    assert [each.probability for each in found.spans] == p[[0, 2], columns].tolist()


def test_training_is_shown_as_a_curve(trained):
    nlp, examples = spacy.blank("xx"), trained["examples"]
    pipe = nlp.add_pipe("sparse_crf_ner")
    assert (
        pipe.training_log == []
        and "no iterations" in is_inline(pipe.training_log._repr_html_()).text
    )
    nlp.initialize(lambda: examples)
    assert pipe.training_log == []
    for _ in range(2):
        losses = nlp.update(examples)
    first, last = pipe.training_log
    assert (first.number, last.number) == (1, 2) and last.loss == losses["sparse_crf_ner"]
    assert first.loss > last.loss and 0.0 < first.seconds < last.seconds
    assert last.n_active == pipe.model.n_active and last.score is None
    assert "score" not in pipe.training_log._repr_html_()
    scores = nlp.evaluate(examples)
    assert pipe.training_log[-1].score == scores["ents_f"]
    page = is_inline(pipe.training_log._repr_html_())
    assert [tag for tag, _ in page.tags].count("svg") == 3 and "2 iterations" in page.text
    assert pickle.loads(pickle.dumps(pipe.training_log)) == pipe.training_log  # noqa: S301
    nlp.initialize(lambda: examples)
    assert pipe.training_log == []
    rows = starmap(Iteration, [(2, 5.0, 7, 0.1, None), (12, 5.0, 7, 0.2, 0.5)])
    assert "12 iterations" in is_inline(TrainingLog(rows)._repr_html_()).text
