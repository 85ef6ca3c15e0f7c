"""Build the same sdist and wheel from the same files, as `SOURCE_DATE_EPOCH` asks for.

The folder configs/ becomes spacy_sparsecrf/tools/configs/ in a wheel. Relative links and pictures
of README.md become addresses in the metadata, which a package index shows.
"""

import gzip
import os
import re
import runpy
import shutil
import tarfile
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

# The module imports nothing of the package.
ADDRESSES = runpy.run_path("spacy_sparsecrf/errors.py")
DOCUMENTATION, REPOSITORY = ADDRESSES["DOCUMENTATION"], ADDRESSES["REPOSITORY"]
TARGET = re.compile(r"""(\]\(|\b(?:src|srcset|href)=")(?![\w+.-]+:|#)([^)"#]+)""")
PICTURE = re.compile(
    r"""!\[[^\]]*\]\((?!\w+:)[^)]*\)|<picture>.*?</picture>|<img [^>]*src="(?!\w+:)[^>]*>""",
    re.DOTALL,
)
LINK = re.compile(r"\[([^\]]*)\]\((?![\w+.-]+:|#)[^)]*\)")


def with_addresses(text: str) -> str:
    """Return a document with the addresses that relative targets have in the site.

    The site has all pages and notebooks of docs/, and documents of the repository, as directories.
    Without a site yet, links become their texts, and one line says where it will be.
    """
    if ".example/" in DOCUMENTATION:
        plain = LINK.sub(r"\1", PICTURE.sub("", text))
        return f"{plain}\nDocumentation will be at {DOCUMENTATION}/.\n"

    def address(found: re.Match[str]) -> str:
        page = re.sub(r"\.(md|ipynb)$", "/", found[2].removeprefix("docs/"))
        return f"{found[1]}{DOCUMENTATION}/{page}"

    return TARGET.sub(address, text)


class BuildWithConfigs(build_py):
    """Copy the configs into the package, except for an editable installation."""

    def get_package_dir(self, package):
        """Return the folder of a package without ./, by which the sdist would list files twice."""
        return os.path.normpath(super().get_package_dir(package))

    def run(self):
        """Copy the package, and configs/."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "spacy_sparsecrf", "tools", "configs")
            target.mkdir(parents=True, exist_ok=True)
            for path in Path("configs").glob("*.cfg"):
                shutil.copyfile(path, target / path.name)


class ReproducibleSdist(sdist):
    """Use the time of `SOURCE_DATE_EPOCH`, if set, as setuptools does for wheels only."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **owners):
        """Write `base_name`.tar.gz without times, owners and permissions of this machine."""
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, **owners)

        def normalise(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime, member.uid, member.gid = int(epoch), 0, 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.mode & 0o100 else 0o644
            return member

        path = f"{base_name}.tar.gz"
        with (
            open(path, "wb") as file,
            gzip.GzipFile("", "wb", mtime=int(epoch), fileobj=file) as compressed,
            tarfile.open(mode="w", fileobj=compressed) as archive,
        ):
            archive.add(base_dir, filter=normalise)
        return path


class ReproducibleWheel(bdist_wheel):
    """Make files independent of this user's umask, if `SOURCE_DATE_EPOCH` is set."""

    def write_wheelfile(self, *arguments, **options):
        """Write the last file of the directory that is packed, and set permissions of all."""
        super().write_wheelfile(*arguments, **options)
        if "SOURCE_DATE_EPOCH" in os.environ:
            for path in Path(self.bdist_dir).rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)


setup(
    long_description=with_addresses(Path("README.md").read_text(encoding="utf8")),
    long_description_content_type="text/markdown",
    project_urls={}
    if ".example/" in DOCUMENTATION
    else {
        "Documentation": f"{DOCUMENTATION}/",
        "Repository": REPOSITORY,
        "Changelog": f"{DOCUMENTATION}/CHANGELOG/",
    },
    cmdclass={
        "build_py": BuildWithConfigs,
        "sdist": ReproducibleSdist,
        "bdist_wheel": ReproducibleWheel,
    },
)
