"""What importing costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import spacy_sparsecrf

SETTINGS = ["solvers.owlqn", "solvers.bcd", "model.model", "decoding.decoder"]
NUMERICS = ["corpus.encoded", "penalty", "training.working_set", "training.training"]
NUMERICS += ["model.file", "model.names", "analysis.explanation", "loss.chain"]
NUMERICS += ["analysis.edit_weights"]


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def imports(modules: list[str]) -> str:
    return "".join(f"import spacy_sparsecrf.{name}\n" for name in modules)


def test_numerics_import_without_spacy_and_the_package_and_settings_without_numba():
    run(
        "import sys; sys.modules['spacy'] = None\n"
        f"import spacy_sparsecrf\n{imports(SETTINGS)}"
        "assert 'numba' not in sys.modules\n"
        f"{imports(NUMERICS)}"
    )


def test_a_blank_pipeline_knows_the_factories_and_imports_nothing_of_a_component():
    run(
        "import sys, spacy\n"
        "nlp = spacy.blank('en')\n"
        "found = [name for name in sys.modules if name.startswith('spacy_sparsecrf.')]\n"
        "assert 'spacy_sparsecrf.pipeline.factories' in found\n"
        "assert len(found) < 15, found\n"
        "for name in ('component', 'settings', 'session'):\n"
        "    assert f'spacy_sparsecrf.pipeline.{name}' not in found\n"
        "assert 'numba' not in sys.modules\n"
        "for name in ('sparse_crf', 'sparse_crf_ner', 'sparse_crf_spans'):\n"
        "    nlp.add_pipe(name)\n"
        "nlp('')\n"
        "assert 'numba' not in sys.modules\n"
    )


def test_training_and_prediction_of_chains_import_nothing_of_graphs():
    run(
        "import sys, spacy\n"
        "from spacy.tokens import Doc\n"
        "from spacy.training import Example\n"
        "nlp = spacy.blank('en')\n"
        "nlp.add_pipe('sparse_crf', config={'n_threads': 1})\n"
        "gold = Doc(nlp.vocab, ['a', 'cat'], tags=['D', 'N'])\n"
        "examples = [Example(Doc(nlp.vocab, ['a', 'cat']), gold)]\n"
        "nlp.initialize(lambda: examples)\n"
        "nlp.update(examples)\n"
        "nlp('a cat')\n"
        "for name in 'belief_propagation', 'loss', 'training', 'decoder':\n"
        "    assert f'spacy_sparsecrf.graphs.{name}' not in sys.modules, name\n"
    )


def test_what_users_need_is_imported_from_the_package_when_asked_for():
    run(
        "import sys, spacy_sparsecrf\n"
        "names = spacy_sparsecrf.__all__\n"
        "assert set(names) <= set(dir(spacy_sparsecrf))\n"
        "loaded = {name for name in sys.modules if name.startswith('spacy_sparsecrf.')}\n"
        "assert loaded == {'spacy_sparsecrf.old_paths'}\n"
        "from spacy_sparsecrf import *\n"
        "from spacy_sparsecrf.pipeline.component import SparseCRFPipe as same\n"
        "assert SparseCRFPipe is same and set(names) <= set(globals())\n"
        "assert 'numba' not in sys.modules\n"
    )
    with pytest.raises(AttributeError, match="'spacy_sparsecrf' has no attribute 'SparseCRFs'"):
        spacy_sparsecrf.SparseCRFs  # noqa: B018


def test_type_checkers_find_what_users_import():
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
