"""Files that commands read: lines of text, which may be compressed, texts, and Docs."""

import gzip
import unicodedata
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError

_GZIP = b"\x1f\x8b"
SPACY = ".spacy"
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without line ends.

    path: compressed by gzip if its name or its content says so. Lines end with LF, or CR and LF; a
    byte-order mark is skipped.
    RAISES: SparseCRFError if the file is not UTF-8 or cannot be decompressed.
    """
    with path.open("rb") as file:
        is_packed = path.suffix == ".gz" or file.peek(2).startswith(_GZIP)
        lines = gzip.GzipFile(fileobj=file) if is_packed else file
        try:
            for number, line in enumerate(lines, start=1):
                text = _decode(path, number, line).removesuffix("\n").removesuffix("\r")
                yield text.removeprefix(BOM) if number == 1 else text
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise SparseCRFError(Errors.SC618.format(path=path, reason=error)) from error


def _decode(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode("utf8")
    except UnicodeDecodeError as error:
        # UTF-16 text begins with a byte-order mark, or has a zero byte in each Latin letter.
        is_wide = line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or b"\0" in line
        values = {"reason": error.reason, "encoding": "utf-16" if is_wide else "cp1252"}
        message = Errors.SC610.format(path=path, line=number, **values)
        raise SparseCRFError(message) from error


def unpack(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read the Docs of a .spacy file. RAISES: SparseCRFError for other or damaged files."""
    try:
        yield from DocBin().from_disk(path).get_docs(vocab)
    except (zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise SparseCRFError(Errors.SC621.format(path=path, reason=error)) from error


def script_of(character: str) -> str:
    """Return the script of a letter, as its Unicode name begins, such as LATIN or CJK."""
    return unicodedata.name(character, "").partition(" ")[0]
