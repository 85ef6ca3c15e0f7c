"""Refused pattern files, and their messages."""

import sys

import pytest
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.patterns import macros
from spacy_sparsecrf.interop.patterns.pattern_featurizer import CRFPPTemplates, WapitiPatterns
from spacy_sparsecrf.pipeline.features.attributes import expressions

from ..support.golden import read_golden
from ..support.toy import ENGLISH

DOC = Doc(ENGLISH, words=["a", "b"])
SOURCE = r"\[components.NAME.features\] text"


@pytest.mark.parametrize(
    ("line", "position", "expected", "found"), read_golden(__file__, "malformed_patterns.jsonl")
)
def test_malformed(line, position, expected, found):
    with pytest.raises(SparseCRFError) as caught:
        WapitiPatterns(text=f"# first\nb\n{line}")([DOC])
    shown = line.partition("#")[0]
    assert str(caught.value) == (
        f"[SC151] [components.NAME.features] text, line 3: {shown!r} is malformed at character "
        f"{position}: expected {expected}; found {found}. Correct the line."
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("u:%x[0,0]", "one of U, B"),
        ("*:%x[0,0]", "one of U, B"),
        ("U:%X[0,0]", "%x[OFFSET,COLUMN], with OFFSET from -8 to 8"),
        ("U:%x[@1,0]", "%x[OFFSET,COLUMN], with OFFSET from -8 to 8"),
        ("U:%x[9,0]", "%x[OFFSET,COLUMN], with OFFSET from -8 to 8"),
    ],
)
def test_crfpp_knows_less(line, expected):
    with pytest.raises(SparseCRFError, match=r"\[SC151\].*line 1: ") as caught:
        CRFPPTemplates(text=line)([DOC])
    assert f"expected {expected}; found" in str(caught.value)


@pytest.mark.parametrize("expression", ["*", "^*", "a**", "a?*", "?a"])
def test_malformed_expressions(expression):
    with pytest.raises(SparseCRFError) as caught:
        WapitiPatterns(text=f'u:%t[0,0,"{expression}"]')([DOC])
    message = str(caught.value)
    assert message.startswith("[SC154] [components.NAME.features] text, line 1: ")
    assert f"expression, {expression!r}, after character 9: nothing stands before" in message


NO_LIST = r"\[SC157\] .*is not a list of attributes"
NO_ATTRIBUTE = r"\[SC158\] .*columns: column 1, .*"
NO_COLUMN = r", line 2: 'u:%x\[0,2\]' reads column 2, but .* names 2, .* 0 to 1"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"text": "u:%x[0,1]\nu:%x[0,2]", "columns": ["orth", "tag"]},
            r"\[SC152\] " + SOURCE + NO_COLUMN,
        ),
        ({}, r"\[SC155\] .*either path"),
        ({"path": "file", "text": "u:%x[0,0]"}, r"\[SC155\] .*either path"),
        ({"path": "file", "columns": "orth"}, NO_LIST),
        ({"path": "file", "columns": []}, NO_LIST),
        *(
            ({"path": "file", "columns": ["orth", column]}, NO_ATTRIBUTE + reason)
            for column, reason in (
                ("word", "expected an attribute, one of orth"),
                ("prefix", r"expected '\(' and a length"),
                ("orth[0]|lower", "it has an offset"),
                ("orth[0]", r"expected '\|' or the end"),
                ("", "expected an attribute"),
                (3, "expected an attribute"),
            )
        ),
    ],
)
def test_settings_that_are_refused(settings, message):
    with pytest.raises(SparseCRFError, match=message):
        WapitiPatterns(**settings)([DOC])


def test_package_regex_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "regex", None)
    assert WapitiPatterns(text="u:%X[0,0]")([DOC]).n_tokens == 2
    with pytest.raises(SparseCRFError, match=r"\[SC156\] " + SOURCE + r" has regular .*\[regex\]"):
        WapitiPatterns(text=r'u:%t[0,0,"\u"]')([DOC])


def test_files_that_cannot_be_read_or_have_no_patterns(tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(SparseCRFError, match=r"\[SC159\] Pattern file .* cannot be read"):
            WapitiPatterns(path)([DOC])
    (tmp_path / "latin").write_bytes("b\nu:Größe=%x[0,0]\n".encode("latin1"))
    with pytest.raises(SparseCRFError, match=r"\[SC610\] .*latin, line 2, is not UTF-8"):
        WapitiPatterns(tmp_path / "latin")([DOC])
    for saved, message in (("x", r"\[SC151\] `cfg` of .*, line 1: 'x'"), ("", r"\[SC153\] `cfg`")):
        with pytest.raises(SparseCRFError, match=message):
            WapitiPatterns("absent").restore({"patterns": saved})
    for text in ("", "\n\n", "# nothing\n  \n"):
        (tmp_path / "empty").write_text(text, encoding="utf8")
        with pytest.raises(SparseCRFError, match=r"\[SC153\] .*empty has no patterns.* of Wapiti"):
            WapitiPatterns(tmp_path / "empty")([DOC])
    (tmp_path / "marked").write_text("u:%x[0,0]\r\n", encoding="utf-8-sig")
    plain = WapitiPatterns(text="u:%x[0,0]")([DOC]).hashes
    assert (WapitiPatterns(tmp_path / "marked")([DOC]).hashes == plain).all()


def test_expression_that_takes_too_long(monkeypatch):
    for module in (expressions, macros):
        monkeypatch.setattr(module, "SECONDS", 0.05)
    features = WapitiPatterns(text='u:%t[0,0,"' + r"\a*" * 12 + r'\d"]')
    doc = Doc(DOC.vocab, words=["a" * 2000])
    with pytest.raises(SparseCRFError, match=r"\[SC161\] .*took more than 0.05 s .*'aaaa"):
        features([doc])
