"""An encoded corpus in the files of a directory: built in one pass over batches, then mapped.

    DIRECTORY/encoded/     the corpus: `corpus.json`, and a .npy file for each array
    DIRECTORY/*.part       a corpus that is being written; renamed when it is complete

During the build, memory holds only the distinct features and contexts, and their counts. Tokens
are written with provisional numbers, by first occurrence, and read once more to assign the final
numbers.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np

from ..atomic_write import make_folder, replace_folder
from ..errors import Errors, SparseCRFError
from ..schema import SchemaField, check, check_json, parse, reported_as
from .arrays import Array, Files, Memory, npy_header
from .encoded import ARRIVING, MISSING, CorpusBuilder, Draft, EncodedCorpus, Pieces

VERSION = 1
NAME = "encoded"
_META = "corpus.json"
_META_FORM = {"version": int, "start_label": bool}
# Arrays of a corpus: first those as long as the corpus, then the index. S sequences, N tokens,
# Y labels, C contexts, U unigram and B bigram features.
_MAPPED = {
    "offsets": SchemaField("<i8", "S+1", cuts="N"),
    "labels": SchemaField("<i4", "N", low=MISSING, below="Y"),
    "weights": SchemaField("<f8", "S"),
    "uni_indptr": SchemaField("<i8", "N+1", cuts="I"),
    "uni_indices": SchemaField("<i4", "I", below="U"),
    "context": SchemaField("<i4", "N", below="C"),
}
_INDEX = {
    "ctx_indptr": SchemaField("<i8", "C+1", cuts="J"),
    "ctx_indices": SchemaField("<i4", "J", below="B"),
    "unigram_keys": SchemaField("<u8", "U"),
    "bigram_keys": SchemaField("<u8", "B"),
}
_FIELDS = _MAPPED | _INDEX
REAL_VALUES = "real-valued features ([components.NAME.features] vector or value(...))"


class FileDraft(Draft):
    """A draft of a corpus in the files of a directory.

    files: of the directory where the corpus is written; an existing corpus is replaced when the new
    one is complete. RAISES: SparseCRFError, also from its methods, if files cannot be written; the
    directory then stays unchanged.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._sizes: dict[str, list[int]] = {name: [] for name in ARRIVING}
        with self._failing():
            self._unfinished, self._held = make_folder(files.directory, "corpus-")
            self._streams = {name: self._path(name).open("w+b") for name in ARRIVING}

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """RAISES: SparseCRFError for an error of the system in the body."""
        try:
            yield
        except OSError as error:
            raise self._files.failure(error) from error

    def _path(self, name: str) -> Path:
        return self._unfinished / f"{name}.raw"

    def close(self) -> None:
        """Remove the files of an incomplete corpus."""
        for stream in self._streams.values():
            # Data that could not be written is not needed.
            with suppress(OSError):
                stream.close()
        shutil.rmtree(self._unfinished, ignore_errors=True)
        self._held()

    def append(self, **arrays: Array) -> None:
        """Append a piece to each array. RAISES: SparseCRFError also for real values."""
        if "values" in arrays:
            raise SparseCRFError(Errors.SC346.format(setting=REAL_VALUES))
        with self._failing():
            for name, array in arrays.items():
                self._streams[name].write(array.astype(ARRIVING[name]).tobytes())
                self._streams[name].flush()
                self._sizes[name].append(len(array))

    def pieces(self, name: str) -> Iterator[Array]:
        """See `Draft`."""
        with self._failing(), self._path(name).open("rb") as stream:
            for n in self._sizes[name]:
                yield _read(stream, ARRIVING[name], n)

    def change(self, name: str, change: Callable[[Array], Array]) -> None:
        """See `Draft`."""
        with self._failing(), self._path(name).open("r+b") as stream:
            for n in self._sizes[name]:
                piece = _read(stream, ARRIVING[name], n)
                stream.seek(-piece.nbytes, os.SEEK_CUR)
                stream.write(change(piece).astype(ARRIVING[name]).tobytes())
                # A seek is required between writing and reading.
                stream.seek(0, os.SEEK_CUR)

    def finish(
        self, index: Mapping[str, Array], tokens: Mapping[str, Pieces], start_label: bool
    ) -> EncodedCorpus:
        """Write the final arrays, then the file that marks them as complete; see `Draft`."""
        labels = [label for piece in self.pieces("labels") for label in _bounds(piece)]
        with self._failing():
            for name in _INDEX:
                np.save(self._unfinished / f"{name}.npy", index[name])
            for name, (n, pieces) in tokens.items():
                dtype = _MAPPED[name].dtypes
                with (self._unfinished / f"{name}.npy").open("wb") as stream:
                    stream.write(npy_header(dtype, n))
                    for piece in pieces:
                        stream.write(piece.astype(dtype).tobytes())
            for name, raw in self._streams.items():
                raw.close()
                self._path(name).unlink()
            meta = {"version": VERSION, "start_label": start_label}
            (self._unfinished / _META).write_text(json.dumps(meta), encoding="utf8")
            replace_folder(self._unfinished, self._files.directory / NAME)
        n_labels, lowest = max([-1, *labels]) + 1, min([MISSING, *labels])
        return read_corpus(self._files, n_labels, lowest)


def _bounds(labels: Array) -> tuple[int, ...]:
    """Return the lowest and the highest label; nothing without labels."""
    return (int(labels.min()), int(labels.max())) if len(labels) else ()


@contextmanager
def corpus_builder(store: Memory) -> Iterator[CorpusBuilder]:
    """Yield a builder of a corpus in a store; on exit, remove the files of an incomplete corpus."""
    if not isinstance(store, Files):
        yield CorpusBuilder()
        return
    draft = FileDraft(store)
    try:
        yield CorpusBuilder(draft)
    finally:
        draft.close()


def _read(stream: IO[bytes], dtype: str, n: int) -> Array:
    """Read at most n numbers. RAISES: OSError, which `numpy.fromfile` treats as end of file."""
    return np.frombuffer(stream.read(n * np.dtype(dtype).itemsize), dtype)


def check_directory(directory: Path) -> None:
    """Check that DIRECTORY/encoded is missing or has only corpus files. RAISES: SparseCRFError."""
    path = directory / NAME
    own = {_META, *(f"{name}.npy" for name in _FIELDS)}
    try:
        found = {entry.name for entry in path.iterdir()}
    except FileNotFoundError:
        return
    except NotADirectoryError:
        found = {path.name} if path.exists() else set()
    except OSError as error:
        raise SparseCRFError(Errors.SC345.format(path=directory, reason=error.strerror)) from error
    if not found <= own:
        raise SparseCRFError(Errors.SC349.format(path=path))


def read_corpus(files: Files, n_labels: int, lowest: int = MISSING) -> EncodedCorpus:
    """Map the corpus of a directory, without sets; the index is copied to memory.

    n_labels: Y, labels must be below; lowest: least label, below -1 if there are sets of labels.
    RAISES: SparseCRFError if the corpus is missing, damaged or of another version.
    """
    directory = files.directory / NAME
    with reported_as(Errors.SC348, path=directory):
        try:
            meta = parse((directory / _META).read_bytes())
            check_json(meta, _META_FORM, _META)
            if meta["version"] != VERSION:
                raise ValueError(f"{_META} is not of version {VERSION}")
            arrays = {
                name: files.opened(directory / f"{name}.npy", field.dtypes)
                for name, field in _FIELDS.items()
            }
        except OSError as error:
            raise ValueError(error) from error
        fields = _FIELDS | {"labels": _FIELDS["labels"]._replace(low=lowest)}
        check(arrays, fields, {"Y": n_labels}, files.release)
        arrays |= {name: arrays[name].copy() for name in _INDEX}
    return EncodedCorpus(**arrays, start_label=meta["start_label"], store=files)
