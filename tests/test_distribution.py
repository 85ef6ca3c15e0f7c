"""What an sdist and a wheel have in them."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from .conftest import SHIPPED_CONFIG
from .test_docs import ROOT

pytest.importorskip("setuptools", "77")
MADE = ".*", "__pycache__", "*.egg-info", "build", "dist", "site", "tests"
MADE += "assets", "corpus", "training", "packages", "metrics"
BUILD = "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source") / "tree"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*MADE))
    # The package has folders that are called so too.
    shutil.copytree(ROOT / "spacy_sparsecrf", source / "spacy_sparsecrf", dirs_exist_ok=True)
    done = subprocess.run([sys.executable, "-c", BUILD], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return source / "dist"


def test_the_wheel_has_the_configs_the_pages_and_its_types(dist: Path):
    [wheel] = dist.glob("*.whl")
    found = set(zipfile.ZipFile(wheel).namelist())
    data = [*SHIPPED_CONFIG.parent.iterdir(), *ROOT.glob("spacy_sparsecrf/pages/*.html")]
    shown = {str(path.relative_to(ROOT)) for path in data if path.is_file()}
    assert shown | {"spacy_sparsecrf/py.typed"} <= found
    assert any(name.endswith(".html") for name in shown)
    assert not [name for name in found if not name.startswith("spacy_sparsecrf")]


def test_the_sdist_has_documents_project_and_changelog(dist: Path):
    [path] = dist.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        found = {name.partition("/")[2] for name in sdist.getnames()}
    documents = [path for path in (ROOT / "docs").rglob("*") if path.is_file()]
    documents += [ROOT / name for name in ("CHANGELOG.md", "CITATION.cff", "SECURITY.md")]
    documents += [ROOT / "project" / "project.yml", ROOT / "mkdocs.yml"]
    assert {str(path.relative_to(ROOT)) for path in documents} <= found
