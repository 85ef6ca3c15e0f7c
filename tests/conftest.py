"""Fixtures with a made-up tagged language; no data is downloaded or shipped."""

import atexit
import functools
import gc
import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import catalogue
import hypothesis
import pytest
import spacy
from filelock import FileLock
from spacy.language import Language
from spacy.tokens.underscore import Underscore
from spacy.util import logger
from srsly.msgpack import msgpack_decoders, msgpack_encoders

from spacy_sparsecrf.tools.cli.config import make_config

from .support.compiled_cases import AllCompiled, compile_all, lend
from .support.toy import Sentence, blank_with, examples_of, make_sentences, train, write_corpus

# Examples are the same in each run, whichever tests are selected.
same = {"derandomize": True, "deadline": None, "database": None}
hypothesis.settings.register_profile("same", max_examples=40, **same)
hypothesis.settings.register_profile("thorough", max_examples=1000, deadline=None, database=None)
hypothesis.settings.load_profile("same")

CONFIGS = Path(__file__).parents[1] / "configs"
EXAMPLES = Path(__file__).parents[1] / "spacy_sparsecrf" / "tools" / "examples"


def _for_tests() -> Path:
    """Write the shipped tagger config with the default component name.

    Training continues after convergence.
    """
    text = make_config("tagger", lang="xx")
    text = re.sub(r"(components\.|pipeline = \[\")crf\b", r"\1sparse_crf", text)
    path = Path(tempfile.gettempdir()) / f"sparsecrf-tests-{os.getpid()}.cfg"
    path.write_text(text.replace("max_epochs = 200", "max_epochs = 0"), encoding="utf8")
    atexit.register(path.unlink, missing_ok=True)
    return path


SHIPPED_CONFIG = _for_tests()


@dataclass(frozen=True)
class Corpus:
    """Training and development sentences, and the paths of their files."""

    train: list[Sentence]
    dev: list[Sentence]
    train_path: str
    dev_path: str

    @property
    def overrides(self) -> dict[str, str]:
        return {"paths.train": self.train_path, "paths.dev": self.dev_path}

    @property
    def arguments(self) -> list[str]:
        return ["--paths.train", self.train_path, "--paths.dev", self.dev_path]


def make_corpus(directory: Path, n_train: int, n_dev: int) -> Corpus:
    """Write corpora with these numbers of sentences."""
    made = Corpus(
        make_sentences(n_train, seed=1),
        make_sentences(n_dev, seed=2),
        str(directory / "train.spacy"),
        str(directory / "dev.spacy"),
    )
    nlp = spacy.blank("xx")
    write_corpus(made.train_path, nlp, made.train)
    write_corpus(made.dev_path, nlp, made.dev)
    return made


@pytest.fixture(scope="session", autouse=True)
def one_thread_by_default() -> Iterator[None]:
    """Use one thread, as threads only add overhead here; tests of threads set a number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_sparsecrf.crf.parallel._n_cores", lambda: 1)
        yield


@pytest.fixture
def level_of_the_logger() -> Iterator[None]:
    """Restore the level of spaCy's logger, which `spacy train` changes permanently."""
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture
def own_extensions(monkeypatch) -> None:
    """Remove the extension attributes that a test sets."""
    for name in ("doc_extensions", "token_extensions"):
        monkeypatch.setattr(Underscore, name, {**getattr(Underscore, name)})


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("corpus"), 120, 30)


@pytest.fixture(scope="session")
def trained_dir(corpus, tmp_path_factory) -> Path:
    """A pipeline trained in a custom training loop, on disk."""
    nlp = blank_with()
    train(nlp, examples_of(nlp, corpus.train), 10)
    path = tmp_path_factory.mktemp("pipelines") / "trained"
    nlp.to_disk(path)
    return path


@pytest.fixture(scope="session")
def everything_compiled(tmp_path_factory) -> AllCompiled:
    """The kernels of all solvers, compiled once for all processes of the test run."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # shared by all processes of the run; one of them compiles
    cache, told = shared / "compiled", shared / "compiled.json"
    with FileLock(shared / "compiled.lock"):
        if not told.exists():
            told.write_text(json.dumps(compile_all(cache)), encoding="utf8")
        lend(cache)
    return AllCompiled(cache, *json.loads(told.read_text(encoding="utf8")))


def pytest_configure(config: pytest.Config) -> None:
    """Ignore overflow warnings of numpy scalars, which replace 64-bit products without numba."""
    overflow = "ignore:overflow encountered in scalar:RuntimeWarning"
    config.addinivalue_line("filterwarnings", overflow)
    # Search installed packages for functions once, not in each look-up of a function, nor all
    # functions for those of msgpack whenever a Doc or component is read or written.
    catalogue.Registry._get_entry_points = functools.cache(catalogue.Registry._get_entry_points)
    for coders in msgpack_encoders, msgpack_decoders:
        coders.get_all = functools.cache(coders.get_all)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that compile kernels for the others first; collect no garbage of imports.

    Files of minutes come next, so that no process is left with one at the end.
    """
    gc.freeze()
    longest = "test_pages.py", "test_compatible.py", "test_ray.py"
    items.sort(
        key=lambda item: (
            "everything_compiled" not in getattr(item, "fixturenames", ()),
            item.path.name not in longest,
        )
    )


@pytest.fixture
def trained(trained_dir) -> Language:
    """The trained pipeline, reloaded for each test."""
    return spacy.load(trained_dir)


@pytest.fixture
def nlp() -> Language:
    """A blank pipeline with an untrained component."""
    return blank_with()
