"""Pattern files that are refused, and what the message says."""

import sys
from pathlib import Path

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features import expressions
from spacy_sparsecrf.interop.patterns import macros
from spacy_sparsecrf.interop.patterns.featurizer import CRFPPTemplates, WapitiPatterns

DOC = Doc(spacy.blank("en").vocab, words=["a", "b"])
SOURCE = r"\[components.NAME.features\] text"


@pytest.mark.parametrize(
    ("line", "position", "expected", "found"),
    [
        ("x:%x[0,0]", 1, "one of u, U, b, B, *", "'x'"),
        (" u:%x[0,0]", 1, "one of u, U, b, B, *", "' '"),
        ("u:%q[0,0]", 4, "a command behind %, one of x, X, t, T, m, M", "'q'"),
        ("u:100%", 7, "a command behind %, one of x, X, t, T, m, M", "the end of the line"),
        ("u:%x(0,0)", 5, "'['", "'('"),
        ("u:%x", 5, "'['", "the end of the line"),
        ("u:%x[,0]", 6, "an offset, a whole number", "','"),
        ("u:%x[one,0]", 6, "an offset, a whole number", "'one'"),
        ("u:%x[1001,0]", 6, "an offset, a whole number from -1000 to 1000", "'1001'"),
        (f"u:%x[{'9' * 5000},0]", 6, "an offset, a whole number", f"'{'9' * 5000}'"),
        ("u:%x[0]", 7, "',' and the number of a column, a whole number", "']'"),
        ("u:%x[0,-1]", 7, "',' and the number of a column, a whole number", "','"),
        ("u:%x[0,0", 9, "']'", "the end of the line"),
        ('u:%x[0,0,"a"]', 9, "']'", "','"),
        ("u:%t[0,0]", 9, "',' and a regular expression between quotation marks", "']'"),
        ('u:%m[0,0,"a]', 9, "',' and a regular expression between quotation marks", "','"),
        ('u:%m[0,0,"#"]', 9, "',' and a regular expression between quotation marks", "','"),
        ('u:%m[0,0,"a"', 13, "']'", "the end of the line"),
        ("u:\ud800%x[0,0]", 3, "a character, not half of one", r"'\ud800'"),
    ],
)
def test_malformed(line: str, position: int, expected: str, found: str) -> None:
    with pytest.raises(SparseCRFError) as caught:
        WapitiPatterns(text=f"# first\nb\n{line}")([DOC])
    shown = line.partition("#")[0]
    assert str(caught.value) == (
        f"[SC151] [components.NAME.features] text, line 3: {shown!r} is malformed at character "
        f"{position}: expected {expected}; found {found}."
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("u:%x[0,0]", "one of U, B"),
        ("*:%x[0,0]", "one of U, B"),
        ("U:%X[0,0]", "a command behind %, one of x"),
        ("U:%x[@1,0]", "an offset"),
        ("U:%x[9,0]", "an offset, a whole number from -8 to 8"),
    ],
)
def test_crfpp_knows_less(line: str, expected: str) -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC151\].*line 1: ") as caught:
        CRFPPTemplates(text=line)([DOC])
    assert f"expected {expected}; found" in str(caught.value)


@pytest.mark.parametrize("expression", ["*", "^*", "a**", "a?*", "?a"])
def test_malformed_expressions(expression: str) -> None:
    with pytest.raises(SparseCRFError) as caught:
        WapitiPatterns(text=f'u:%t[0,0,"{expression}"]')([DOC])
    message = str(caught.value)
    assert message.startswith("[SC154] [components.NAME.features] text, line 1: ")
    assert f"expression, {expression!r}, behind character 9: nothing stands before" in message


@settings(deadline=None)  # the first call may compile
@given(st.text(alphabet='uUbB*%xXtTmM[@-1,0"\\^$]# \n\u00e9', max_size=25))
def test_any_text_is_read_or_refused(text: str) -> None:
    for program in (WapitiPatterns, CRFPPTemplates):
        if text:
            try:
                program(text=text, columns=["orth", "lower"])([DOC])
            except SparseCRFError as error:
                assert str(error)[:7] in ("[SC151]", "[SC152]", "[SC153]", "[SC154]")


def test_column_that_is_not_named() -> None:
    match = SOURCE + r", line 2: 'u:%x\[0,2\]' reads column 2, but .* names 2, .* 0 to 1"
    with pytest.raises(SparseCRFError, match=r"\[SC152\] " + match):
        WapitiPatterns(text="u:%x[0,1]\nu:%x[0,2]", columns=["orth", "tag"])([DOC])


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n  \n"])
def test_no_patterns(text: str, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(text, encoding="utf8")
    with pytest.raises(SparseCRFError, match=r"\[SC153\] .*empty has no patterns.* of Wapiti"):
        WapitiPatterns(tmp_path / "empty")([DOC])


def test_path_or_text() -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC155\] .*either path"):
        WapitiPatterns()
    with pytest.raises(SparseCRFError, match=r"\[SC155\] .*either path"):
        WapitiPatterns("file", text="u:%x[0,0]")


def test_package_regex_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    assert WapitiPatterns(text="u:%X[0,0]")([DOC]).n_tokens == 2
    with pytest.raises(SparseCRFError, match=r"\[SC156\] " + SOURCE + r" has regular .*\[regex\]"):
        WapitiPatterns(text=r'u:%t[0,0,"\u"]')([DOC])


@pytest.mark.parametrize("columns", ["orth", []])
def test_columns_that_are_no_list(columns: object) -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC157\] .*is not a list of attributes"):
        WapitiPatterns("file", columns=columns)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("word", "expected an attribute, one of orth"),
        ("prefix", "expected '(' and a length"),
        ("orth[0]|lower", "it has an offset"),
        ("orth[0]", "expected '|' or the end"),
        ("", "expected an attribute"),
        (3, "expected an attribute"),
    ],
)
def test_columns_that_are_no_attributes(column: object, reason: str) -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC158\] .*columns: column 1, ") as caught:
        WapitiPatterns("file", columns=["orth", column])  # type: ignore[list-item]
    assert reason in str(caught.value)


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(SparseCRFError, match=r"\[SC159\] Pattern file .* cannot be read"):
            WapitiPatterns(path)([DOC])


def test_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("b\nu:Größe=%x[0,0]\n".encode("latin1"))
    with pytest.raises(SparseCRFError, match=r"\[SC160\] .*latin, line 2: byte 0xf6 is not UTF-8"):
        WapitiPatterns(tmp_path / "latin")([DOC])


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ("x", r"\[SC151\] `cfg` of the component, features, line 1: 'x'"),
        ("", r"\[SC153\] `cfg` of"),
    ],
)
def test_saved_text_that_is_damaged(saved: str, message: str) -> None:
    with pytest.raises(SparseCRFError, match=message):
        WapitiPatterns("absent").restore({"patterns": saved})


def test_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "marked").write_text("u:%x[0,0]\r\n", encoding="utf-8-sig")
    plain = WapitiPatterns(text="u:%x[0,0]")([DOC]).hashes
    assert (WapitiPatterns(tmp_path / "marked")([DOC]).hashes == plain).all()


def test_expression_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (expressions, macros):
        monkeypatch.setattr(module, "SECONDS", 0.05)
    features = WapitiPatterns(text='u:%t[0,0,"' + r"\a*" * 12 + r'\d"]')
    doc = Doc(DOC.vocab, words=["a" * 2000])
    with pytest.raises(SparseCRFError, match=r"\[SC161\] .*took more than 0.05 s .*'aaaa"):
        features([doc])
