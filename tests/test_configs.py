"""Every solver comes with a config, and every config trains."""

from pathlib import Path

import pytest
from spacy.util import load_config

from spacy_sparsecrf.registry import crf_solvers

from .conftest import SHIPPED_CONFIG, Corpus
from .test_training_loop import run_training
from .toy import accuracy

CONFIGS = sorted(SHIPPED_CONFIG.parent.glob("*.cfg"))


def solver_of(path: Path) -> str:
    return load_config(path)["components"]["sparse_crf"]["solver"]["@crf_solvers"]


def test_every_solver_has_a_config():
    assert sorted(map(solver_of, CONFIGS)) == sorted(crf_solvers.get_all())


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_configs_train(path: Path, corpus: Corpus):
    overrides = {
        "paths.train": str(corpus.train_path),
        "paths.dev": str(corpus.dev_path),
        "training.max_steps": 4,
        "components.sparse_crf.n_threads": 1,
    }
    nlp, rows = run_training(load_config(path, overrides=overrides))
    assert len(rows) >= 4
    assert accuracy(nlp, corpus.dev) > 0.9


def test_headers_name_their_files():
    for path in CONFIGS:
        assert f"configs/{path.name} " in path.read_text(encoding="utf-8")
