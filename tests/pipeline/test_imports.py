"""Imported modules, and imports with missing packages, each in a new process."""

import ast
from pathlib import Path

import pytest

import spacy_sparsecrf

from ..support.processes import run_python

SETTINGS = ["crf.solvers.owlqn", "crf.solvers.bcd", "crf.model.model", "crf.decoding.decoder"]
NUMERICS = ["crf.corpus.encoded", "crf.penalty", "crf.training.run", "crf.training.training"]
NUMERICS += ["crf.model.file", "crf.model.names", "crf.model.edit_weights", "crf.loss.chain_loss"]
NUMERICS += ["tools.analysis.explanation"]


def imports(modules: list[str]) -> str:
    return "".join(f"import spacy_sparsecrf.{name}\n" for name in modules)


WITHOUT_SPACY = f"""
import sys
sys.modules["spacy"] = sys.modules["sklearn"] = None
import spacy_sparsecrf
assert set(spacy_sparsecrf.__all__) <= set(dir(spacy_sparsecrf))
loaded = {{name for name in sys.modules if name.startswith("spacy_sparsecrf.")}}
assert loaded == set()
try:
    import spacy_sparsecrf.sklearn
except ImportError as error:
    assert "[SC817]" in str(error) and ".whl[sklearn]" in str(error)
else:
    raise AssertionError("scikit-learn is not needed")
{imports(SETTINGS)}
del sys.modules["sklearn"]
from spacy_sparsecrf.sklearn import CRF
assert "numba" not in sys.modules
{imports(NUMERICS)}
crf = CRF(c1=0.5, c2=0.0).fit([[{{"a": "b"}}, {{"a": "c"}}]] * 3, [["X", "Y"]] * 3)
assert crf.predict_single([{{"a": "b"}}, {{"a": "c"}}]) == ["X", "Y"]
"""
WITH_SPACY = """
import sys, warnings, spacy
nlp = spacy.blank("xx")
found = [name for name in sys.modules if name.startswith("spacy_sparsecrf.")]
assert "spacy_sparsecrf.pipeline.factories" in found and len(found) < 15, found
for name in ("component", "settings", "training_state"):
    assert f"spacy_sparsecrf.pipeline.{name}" not in found
assert "numba" not in sys.modules
for name in ("sparse_crf", "sparse_crf_ner", "sparse_crf_spans"):
    nlp.add_pipe(name)
nlp("")
import spacy_sparsecrf.interop.patterns.pattern_featurizer as patterns
patterns.WapitiPatterns("absent", columns=["orth", "tag"])
patterns.CRFPPTemplates(text="B")
from spacy_sparsecrf import *
from spacy_sparsecrf.pipeline.component import SparseCRFPipe as same
assert SparseCRFPipe is same and set(sys.modules["spacy_sparsecrf"].__all__) <= set(globals())
import spacy_sparsecrf.__main__, spacy_sparsecrf.interop.teachers
assert not {"numba", "onnxruntime", "tokenizers", "presidio_analyzer"} & {*sys.modules}
from spacy.tokens import Doc
from spacy.training import Example
nlp = spacy.blank("xx")
nlp.add_pipe("sparse_crf", config={"n_threads": 1})
gold = Doc(nlp.vocab, ["a", "cat"], tags=["D", "N"])
examples = [Example(Doc(nlp.vocab, ["a", "cat"]), gold)]
nlp.initialize(lambda: examples)
nlp.update(examples)
nlp("a cat")
# Components import nothing of graphs.
assert not any(name.startswith("spacy_sparsecrf.crf.graphs.") for name in sys.modules)
"""


@pytest.mark.parametrize("code", [WITHOUT_SPACY, WITH_SPACY], ids=["without", "with"])
def test_what_is_imported_with_and_without_spacy(code):
    run_python("-c", code)


def test_type_checkers_find_what_users_import_and_other_names_are_errors():
    tree = ast.parse(Path(spacy_sparsecrf.__file__).read_text(encoding="utf-8"))
    told = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level and node.module
        for alias in node.names
    }
    homes = {name: getattr(spacy_sparsecrf, name).__module__ for name in told if name[0].isupper()}
    assert sorted(told) == sorted(spacy_sparsecrf.__all__)
    assert {name: f"spacy_sparsecrf.{told[name]}" for name in homes} == homes
    with pytest.raises(AttributeError, match="'spacy_sparsecrf' has no attribute 'SparseCRFs'"):
        spacy_sparsecrf.SparseCRFs  # noqa: B018
