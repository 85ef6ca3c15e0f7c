"""The fields of spaCy's tokenizer in portable models."""

import re
from typing import Any

from spacy.language import Language
from spacy.tokenizer import Tokenizer  # type: ignore[import-not-found]

from .. import portable
from ..errors import Errors, SparseCRFError
from ..pipeline.component import SparseCRFPipe
from .portable_expressions import portable_expression

# Alternatives of a pattern that end with one long class of characters, as in French.
_TAIL = re.compile(r"\^(.*?)((?:\[[^\]]{99,}\][*+]?)+\$)", re.DOTALL)


def refused(pipe: SparseCRFPipe, reason: str, remedy: str) -> SparseCRFError:
    """Return the error about what the reader lacks."""
    return SparseCRFError(Errors.SC638.format(name=pipe.name, reason=reason, remedy=remedy))


def tokenizer_fields(nlp: Language, pipe: SparseCRFPipe) -> dict[str, Any]:
    """Return patterns and special cases. RAISES: SparseCRFError for a custom tokenizer."""
    tokenizer: Any = nlp.tokenizer
    remedy = 'Train with [nlp.tokenizer] @tokenizers = "spacy.Tokenizer.v1"'
    if type(tokenizer) is not Tokenizer:
        kind = f"{type(tokenizer).__module__}.{type(tokenizer).__name__}"
        raise refused(pipe, f"[nlp.tokenizer] is {kind}", remedy)
    methods = {
        "prefix": (tokenizer.prefix_search, "search"),
        "suffix": (tokenizer.suffix_search, "search"),
        "infix": (tokenizer.infix_finditer, "finditer"),
        "token": (tokenizer.token_match, "match"),
        "url": (tokenizer.url_match, "match"),
    }
    # One space belongs to the token before it.
    patterns = {"piece": portable_expression(r"\S+|(?!(?<=\S) )\s+")}
    for name, (method, wanted) in methods.items():
        pattern = getattr(method, "__self__", None)
        is_plain = isinstance(pattern, re.Pattern) and method.__name__ == wanted
        flags = pattern.flags & ~re.UNICODE if isinstance(pattern, re.Pattern) else 0
        if method is not None and (not is_plain or flags & ~re.IGNORECASE):
            raise refused(pipe, f"the tokenizer has its own function for {name}", remedy)
        text = portable_expression("(?!)" if method is None else _short(pattern, flags))
        patterns[name] = f"^(?:{text})" if wanted == "match" else text
    rules = {
        text: [str(part.get(65, part.get("ORTH", ""))) for part in parts]
        for text, parts in tokenizer.rules.items()
    }
    matched: dict[str, list[list[str]]] = {}
    plain = portable.Tokenizer({"patterns": patterns, "rules": {}, "matched": {}})
    for text in rules:
        searches = (tokenizer.find_prefix, tokenizer.find_infix, tokenizer.find_suffix)
        has_affix = any(search(text) for search in searches) or " " in text
        if has_affix or not tokenizer.faster_heuristics:
            texts = [token for token, _ in plain(text)]
            matched.setdefault(texts[0], []).append(texts)
    return {"patterns": patterns, "rules": rules, "matched": matched}


def _short(pattern: Any, flags: int) -> str:
    """Return a pattern with flags, whose alternatives with the same end are written together."""
    text = re.sub(r"^\(\?[iu]+\)", "", pattern.pattern)
    case = "(?i)" if flags else ""
    alternatives = text[3:-1].split(")|(?:") if text[:3] == "(?:" and text[-1] == ")" else []
    matches = [_TAIL.fullmatch(alternative) for alternative in alternatives]
    if len(matches) < 2 or None in matches:
        return case + text
    tails: dict[str, list[str]] = {}
    for match in filter(None, matches):
        tails.setdefault(match[2], []).append(f"(?:{match[1]})")
    return case + "|".join(f"^(?:{'|'.join(heads)}){tail}" for tail, heads in tails.items())
