"""Pattern files."""

from pathlib import Path

from ..errors import Errors, SparseCRFError


def read_patterns(path: str | Path) -> str:
    """Read a pattern file, without a byte-order mark.

    RAISES: SparseCRFError if it cannot be read or is not UTF-8.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SparseCRFError(Errors.SC159.format(path=path, reason=error.strerror)) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = Errors.SC160.format(path=path, line=line, byte=data[error.start])
        raise SparseCRFError(message) from error
