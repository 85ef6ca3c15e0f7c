"""What importing costs."""

import subprocess
import sys

SETTINGS = ["solvers.owlqn", "solvers.bcd", "model.model", "decoding.decoder"]
NUMERICS = ["corpus.encoded", "penalty", "training.run", "training.training"]
NUMERICS += ["model.file", "model.names", "model.explanation", "model.patching", "loss.chain"]


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
        "    assert nlp.has_factory(name)\n"
    )


def test_import_blank_and_add_pipe_import_no_numba():
    run(
        "import sys\n"
        "import spacy_sparsecrf, spacy_sparsecrf.pipeline.factories, spacy\n"
        "nlp = spacy.blank('en')\n"
        "for name in ('sparse_crf', 'sparse_crf_ner', 'sparse_crf_spans'): nlp.add_pipe(name)\n"
        "nlp('')\n"
        "assert 'numba' not in sys.modules\n"
    )
