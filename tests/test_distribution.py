"""Contents of the sdist and the wheel."""

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from email import policy
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
import srsly

from spacy_sparsecrf import __version__
from spacy_sparsecrf.errors import DOCUMENTATION, REPOSITORY
from spacy_sparsecrf.tools.cli.config import make_config

from .support.documents import ROOT, has_page
from .support.processes import run_python

pytest.importorskip("setuptools", "77")
MADE = ".*", "__pycache__", "*.egg-info", "build", "dist", "site", "tests"
MADE += "assets", "corpus", "training", "packages", "metrics"
BUILD = """
import os, shutil
from setuptools import build_meta
dist = os.path.abspath("dist")
name = build_meta.build_sdist(dist)
# The wheel is made of the sdist.
shutil.unpack_archive(f"{dist}/{name}", "unpacked")
os.chdir(f"unpacked/{name.removesuffix('.tar.gz')}")
build_meta.build_wheel(dist)
# Once more, of the tree itself, at another time and in another time zone, by a user whose files
# nobody else may read.
os.chdir("../..")
shutil.rmtree("unpacked")
again = os.path.abspath("again")
os.utime("README.md", (1, 1))
os.environ["TZ"] = "Asia/Kolkata"
os.umask(0o077)
os.chmod("configs/tagger.cfg", 0o600)
assert build_meta.build_sdist(again) == name
build_meta.build_wheel(again)
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    source = tmp_path_factory.mktemp("source") / "tree"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*MADE))
    # The package has subdirectories with ignored names.
    shutil.copytree(ROOT / "spacy_sparsecrf", source / "spacy_sparsecrf", dirs_exist_ok=True)
    run_python("-c", BUILD, cwd=source, env={"SOURCE_DATE_EPOCH": "1000000000"})
    return source / "dist"


def test_two_builds_have_the_same_bytes_and_the_wheel_its_configs_pages_and_types(dist):
    first, second = (
        {path.name: path.read_bytes() for path in folder.iterdir()}
        for folder in (dist, dist.parent / "again")
    )
    assert len(first) == 2 and first == second
    [wheel] = dist.glob("*.whl")
    found = set(zipfile.ZipFile(wheel).namelist())
    shown = {
        str(path.relative_to(ROOT)) for path in ROOT.glob("spacy_sparsecrf/tools/pages/*.html")
    }
    shown |= {
        f"spacy_sparsecrf/tools/configs/{path.name}" for path in (ROOT / "configs").glob("*.cfg")
    }
    shown |= {str(path.relative_to(ROOT)) for path in ROOT.glob("spacy_sparsecrf/tools/examples/*")}
    assert shown | {"spacy_sparsecrf/py.typed"} <= found
    assert any(name.endswith(".html") for name in shown)
    assert not [name for name in found if not name.startswith("spacy_sparsecrf")]


def test_the_metadata_has_addresses_and_the_summary_of_readme(dist):
    [path] = dist.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        [name] = (each for each in wheel.namelist() if each.endswith("/METADATA"))
        metadata = email.message_from_string(wheel.read(name).decode(), policy=policy.default)
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    # The summary is a sentence of README, without its links.
    assert metadata["Summary"] in re.sub(r"\[(\w+)\]\(.*?\)", r"\1", readme)
    if ".example/" in DOCUMENTATION:  # there is no site to which links could lead
        assert metadata.get_all("Project-URL") is None
        assert metadata.as_string().count(".example") == 1
        assert metadata.get_payload().endswith(f"Documentation will be at {DOCUMENTATION}/.\n")
        return
    urls = dict(each.split(", ") for each in metadata.get_all("Project-URL"))
    changelog = f"{DOCUMENTATION}/CHANGELOG/"
    expected = {"Documentation": f"{DOCUMENTATION}/", "Repository": REPOSITORY}
    assert urls == expected | {"Changelog": changelog}
    assert metadata["Description-Content-Type"] == "text/markdown"
    target = r'(?:\]\(|\b(?:src|srcset|href)=")([^)"]*)'
    before, after = (re.findall(target, text) for text in (readme, metadata.get_payload()))
    assert len(before) == len(after) > 30
    assert [each for each in after if not each.startswith("https://")] == []
    pages = [each for each in after if each.startswith(DOCUMENTATION)]
    expected = {"settings/", "commands/#convert", "notebooks/entities/", "images/comparison.svg"}
    expected |= {"CONTRIBUTING/", "CITATION.cff"}
    assert {f"{DOCUMENTATION}/{each}" for each in expected} <= set(pages)
    assert [each for each in [*pages, changelog] if not has_page(each)] == []
    # Only links differ.
    assert re.sub(target, "", metadata.get_payload()) == re.sub(target, "", readme)


def test_the_citation_has_the_version_and_the_addresses():
    citation = srsly.read_yaml(ROOT / "CITATION.cff")
    assert str(citation["version"]) == __version__
    assert citation["url"] == DOCUMENTATION
    assert citation["repository-code"] == REPOSITORY


class Environment:
    """A virtual environment that shares the libraries of the test environment."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True)
        self.python = folder / "bin" / "python"
        [self.packages] = (folder / "lib").glob("*/site-packages")
        # Without the paths added by their .pth files.
        others = [path for path in sys.path if path.endswith("site-packages")]
        (self.packages / "others.pth").write_text("\n".join(others), encoding="utf8")

    def pip(self, *arguments: str | Path) -> None:
        # Uses the pip of the test environment, whatever its version.
        command = [self.python, "-m", "pip", "--quiet", *arguments]
        subprocess.run(command, check=True, cwd=self.packages)

    def install(self, *source: str | Path) -> None:
        options = ["--no-deps", "--no-build-isolation", "--no-index", "--force-reinstall"]
        self.pip("install", *options, *source)

    def run(self, code: str, environment: dict[str, str] | None = None) -> str:
        command = [self.python, "-c", code]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.packages.parent, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.mark.parametrize("pattern", ["*.whl", "editable"])
def test_configs_are_found_in_each_kind_of_installation(dist, pattern, tmp_path):
    environment = Environment(tmp_path / "venv")
    environment.install(*(["-e", dist.parent] if pattern == "editable" else dist.glob(pattern)))
    code = "import spacy_sparsecrf as s; from spacy_sparsecrf.tools.cli.config import make_config; "
    code += "print(s.__file__); print(make_config('tagger', 'SAG', 'es'))"
    place, *lines = environment.run(code).splitlines(keepends=True)
    assert str(dist.parent if pattern == "editable" else tmp_path) in place
    # `spacy package` finds plugins by this file.
    [metadata] = environment.packages.glob("spacy_sparsecrf-*.dist-info")
    assert (metadata / "top_level.txt").read_text(encoding="utf8") == "spacy_sparsecrf\n"
    if pattern == "editable":
        # Type checkers read paths, and run no import hooks.
        [path] = environment.packages.glob("__editable__*")
        assert path.suffix == ".pth"
        assert path.read_text(encoding="utf8").split() == [str(dist.parent)]
    assert lines == [*make_config("tagger", "SAG", "es").splitlines(keepends=True), "\n"]


TRAIN = """
from numba.core import event
compiled = event.RecordingListener()
event.register("numba:compile", compiled)
from spacy_sparsecrf.tools.cli.warmup import train_and_predict
train_and_predict({})
print(len(compiled.buffer) // 2)
"""


@pytest.mark.slow
def test_uninstalling_leaves_nothing_and_the_next_installation_compiles_nothing(dist, tmp_path):
    environment = Environment(tmp_path / "venv")
    names = "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONDONTWRITEBYTECODE"
    variables = {name: value for name, value in os.environ.items() if name not in names}
    variables["HOME"] = str(tmp_path)
    ignored = shutil.ignore_patterns("dist", "again", "unpacked", "build", "*.egg-info")
    upgrade = shutil.copytree(dist.parent, tmp_path / "upgrade", ignore=ignored)
    init = upgrade / "spacy_sparsecrf" / "__init__.py"
    text = init.read_text(encoding="utf8")
    init.write_text(text.replace(f'"{__version__}"', '"999.0"'), encoding="utf8")
    before = set(environment.packages.rglob("*"))

    def install_and_train(source: Path, version: str, *, compiles: bool) -> None:
        environment.install(source)
        assert (int(environment.run(TRAIN, variables)) > 20) == compiles
        assert list(environment.packages.rglob("spacy_sparsecrf/**/*.pyc"))
        # The code of a lower version is removed.
        [cache] = (tmp_path / ".cache" / "spacy-sparsecrf").iterdir()
        assert cache.name.startswith(f"{version}-numba-")

    def uninstall() -> None:
        environment.pip("uninstall", "--yes", "spacy-sparsecrf")
        assert set(environment.packages.rglob("*")) == before
        # An empty directory would be found as a namespace package.
        assert PathFinder.find_spec("spacy_sparsecrf", [str(environment.packages)]) is None

    install_and_train(next(dist.glob("*.whl")), __version__, compiles=True)
    install_and_train(upgrade, "999.0", compiles=True)
    uninstall()
    install_and_train(upgrade, "999.0", compiles=False)
    uninstall()


def test_packages_are_those_of_the_folders():
    tomllib = pytest.importorskip("tomllib")  # since Python 3.11
    with (ROOT / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["tool"]["setuptools"]["packages"]
    package = ROOT / "spacy_sparsecrf"
    folders = {path.parent.relative_to(ROOT) for path in package.rglob("*.py")}
    found = [".".join(folder.parts) for folder in folders]
    assert listed == sorted(found)


def test_the_sdist_has_documents_project_and_changelog(dist):
    [path] = dist.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        found = {name.partition("/")[2] for name in sdist.getnames()}
    documents = [path for path in (ROOT / "docs").rglob("*") if path.is_file()]
    documents += [ROOT / name for name in ("CHANGELOG.md", "CITATION.cff", "SECURITY.md")]
    documents += [ROOT / "project" / "project.yml", ROOT / "mkdocs.yml"]
    assert {str(path.relative_to(ROOT)) for path in documents} <= found
