"""What importing costs, and who may import whom."""

import subprocess
import sys

NUMERICS = ["corpus", "penalty", "working_set", "training", "model", "model_file", "decoding"]
NUMERICS += ["names", "explanation", "patching"]


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_numerics_import_without_spacy():
    modules = [*NUMERICS, "loss.chain", "solvers.owlqn", "solvers.line_search"]
    imports = "\n".join(f"import spacy_sparsecrf.{name}" for name in modules)
    run(f"import sys; sys.modules['spacy'] = None\n{imports}")


def test_importing_the_package_and_solver_settings_imports_no_numba():
    run(
        "import sys, spacy_sparsecrf, spacy_sparsecrf.solvers.owlqn, spacy_sparsecrf.solvers.bcd, "
        "spacy_sparsecrf.model, spacy_sparsecrf.decoding; assert 'numba' not in sys.modules"
    )
