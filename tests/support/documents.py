"""Documents of the project, and addresses of its site."""

from pathlib import Path

from spacy_sparsecrf.errors import DOCUMENTATION

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spacy_sparsecrf"
DOCUMENTS = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")]
DOCUMENTS += sorted((ROOT / "docs").rglob("*.md")) + sorted((ROOT / "docs").rglob("*.ipynb"))


def has_page(address: str) -> bool:
    """Return whether the site has a page, or a file, at this address below `DOCUMENTATION`."""
    path = address.removeprefix(f"{DOCUMENTATION}/").partition("#")[0]
    endings = (".md", ".ipynb") if path.endswith("/") else ("",)
    files = [
        folder / f"{path.rstrip('/')}{end}" for folder in (ROOT / "docs", ROOT) for end in endings
    ]
    return any(file.is_file() for file in files)
