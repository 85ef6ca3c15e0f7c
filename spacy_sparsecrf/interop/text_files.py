"""Files that commands read: lines of text, which may be compressed, texts, and Docs."""

import gzip
import re
import unicodedata
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError

_GZIP = b"\x1f\x8b"
SPACY = ".spacy"
# Limits of a decompressed text: ratio to the size of its file, or bytes if that is more.
_MOST_TIMES, _LEAST_LIMIT = 20, 1 << 22
_N_LINES = 1000  # of a file whose encoding is not known
_ASCII = re.compile("[\0-/:-@[-`{-\x7f]+")  # but letters and digits
_KANA = {"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC"}  # of one script with CJK
_ENCODINGS: tuple[str, ...] = ("cp1252", "cp1250", "cp1251", "koi8-r", "cp1253", "cp1255")
_ENCODINGS += ("cp1256", "cp874", "euc-jp", "shift_jis", "gb18030", "big5", "euc-kr")
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file in UTF-8, or in UTF-16 with a byte-order mark, without line ends.

    path: compressed by gzip, at most to a twentieth, if its name or its content says so.
    Lines end with LF, or CR and LF; a byte-order mark is skipped.
    RAISES: SparseCRFError if the file is in another encoding or cannot be decompressed.
    """
    with path.open("rb") as file:
        is_packed = path.suffix == ".gz" or file.peek(2).startswith(_GZIP)
        lines: Any = gzip.GzipFile(fileobj=file) if is_packed else file
        number, line = 1, b""
        left = most = max(_MOST_TIMES * path.stat().st_size, _LEAST_LIMIT) if is_packed else 1 << 62
        try:
            if file.peek(2).startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                lines = BytesIO(file.read().decode("utf-16").encode())
            for number, line in enumerate(iter(partial(lines.readline, most + 1), b""), start=1):
                left -= len(line)
                if left < 0:
                    raise EOFError(f"over {_MOST_TIMES} times as long: decompress it before")
                text = line.decode("utf8").removesuffix("\n").removesuffix("\r")
                yield text.removeprefix(BOM) if number == 1 else text
        except UnicodeDecodeError as error:
            encoding = _encoding_of(b"".join([line, *islice(lines, _N_LINES)]))
            values = {"path": path, "line": number, "reason": error.reason, "encoding": encoding}
            raise SparseCRFError(Errors.SC610.format(**values)) from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise SparseCRFError(Errors.SC618.format(path=path, reason=error)) from error


def _encoding_of(data: bytes) -> str:
    """Return the encoding in which 90 % of the words of data have letters of one script.

    RETURNS: it, for a message, or the choices. Words of ASCII do not count.
    """
    name_of_words: dict[str, str] = {}
    # UTF-16 has a zero byte in each Latin letter.
    for name in ("utf-16-le",) if b"\0" in data else _ENCODINGS:
        with suppress(UnicodeError):
            # The last character may be incomplete, and UTF-16 begin with the end of a line end.
            text = getincrementaldecoder(name)().decode(data.removeprefix(b"\0"))
            words = [word for word in _ASCII.split(text) if not word.isascii()]
            if sum(map(_is_word, words)) >= 0.9 * len(words):
                name_of_words.setdefault(" ".join(words), name)
    if len(name_of_words) == 1:
        return f"{next(iter(name_of_words.values()))}`"
    choices = [f"{name} ({text[:20]})" for text, name in name_of_words.items()] or _ENCODINGS
    return f"ENCODING`, if it is text, with one of {', '.join(choices)}"


def _is_word(text: str) -> bool:
    """Return whether the letters and symbols of a text are of one script.

    Longer words of Latin script have a letter of ASCII.
    """
    scripts = {script_of(x) for x in text if unicodedata.category(x)[0] in "LSC"} - _KANA
    is_latin = scripts != {"LATIN"} or len(text) < 3 or any(map(str.isascii, text))
    return len(scripts) < 2 and is_latin


def unpack(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read the Docs of a .spacy file. RAISES: SparseCRFError for other or damaged files."""
    try:
        yield from DocBin().from_disk(path).get_docs(vocab)
    except (zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise SparseCRFError(Errors.SC621.format(path=path, reason=error)) from error


def script_of(character: str) -> str:
    """Return the script of a letter, as its Unicode name begins, such as LATIN or CJK."""
    return unicodedata.name(character, "").partition(" ")[0]
