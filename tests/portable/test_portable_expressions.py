"""Expressions of portable models match in JavaScript what the originals match in Python."""

import hashlib
import json
import re
import subprocess
import unicodedata
from pathlib import Path

import pytest
import spacy

from spacy_sparsecrf.interop import portable_javascript
from spacy_sparsecrf.interop.portable_expressions import portable_expression

CONTEXTS = [("", ""), ("a", "a"), ("1", "1"), ("(", "")]
CODES = [
    code
    for code in range(0x110000)
    if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co") and not 0x20000 < code < 0x32000
]
OTHERS = ["(?i)straße|ſ|[k-m]", r"[^\W_]+", r"\bx\B|\Z", r"(?a:\w)$", "a{2,3}?b|(?s:.)", r"[\S\d]"]


def matches_of_python(pattern: "re.Pattern[str]", contexts: list[tuple[str, str]]) -> str:
    digest = hashlib.sha256()
    for head, tail in contexts:
        ends = []
        for char in map(chr, CODES):
            text = head + char + tail
            match = pattern.search(text)
            units = (
                [len(x.encode("utf-16-le")) // 2 for x in (text[: match.start()], match[0])]
                if match
                else []
            )
            ends.append(" ".join(map(str, units)))
        digest.update("\n".join(ends).encode())
    return digest.hexdigest()


def tokenizer_patterns(lang: str) -> dict[str, "re.Pattern[str]"]:
    tokenizer = spacy.blank(lang).tokenizer
    names = ("prefix_search", "suffix_search", "infix_finditer", "token_match", "url_match")
    methods = {name: getattr(tokenizer, name) for name in names}
    return {name: method.__self__ for name, method in methods.items() if method}


@pytest.mark.parametrize(
    "lang",
    [
        "en",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("de", "es", "it", "ru", "tr", "ar")),
    ],
)
def test_every_character_is_matched_alike(lang):
    originals = tokenizer_patterns(lang) | {x: re.compile(x) for x in OTHERS[: 6 * (lang == "en")]}
    patterns = {name: portable_expression(x.pattern, x.flags) for name, x in originals.items()}
    contexts = CONTEXTS[: 2 if lang == "en" else 4]
    program = Path(__file__).with_name("pattern_matches.mjs")
    done = subprocess.run(
        [portable_javascript.node(), program],
        input=json.dumps({"patterns": patterns, "contexts": contexts, "codes": CODES}).encode(),
        capture_output=True,
        check=True,
    )
    expected = {name: matches_of_python(x, contexts) for name, x in originals.items()}
    assert json.loads(done.stdout) == expected


def test_other_expressions_are_refused():
    with pytest.raises(ValueError, match="GROUPREF"):
        portable_expression(r"(a)\1")
