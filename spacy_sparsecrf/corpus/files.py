"""An encoded corpus in the files of a directory: built in one pass over batches, then mapped.

    DIRECTORY/encoded/     the corpus: `corpus.json`, and a .npy file for each array
    DIRECTORY/*.part       one that is being written; renamed once it is complete

What stays in memory while it is built is the index: the distinct tests and contexts, and how often
each occurs. Tokens are written with provisional numbers, by order of arrival, and read once more to
replace those by final ones.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np

from ..atomic_write import make_folder, replace_folder
from ..errors import Errors, SparseCRFError
from ..schema import SchemaField, check, check_json, parse, told
from .arrays import Array, Files, Memory, npy_header
from .encoded import (
    MISSING,
    CorpusBuilder,
    EncodedCorpus,
    Floats,
    Observations,
    Relabel,
)
from .numbering import (
    Ints,
    RowIndex,
    by_frequency,
    distinct_rows,
    number_tests,
    without_rare,
)

VERSION = 1
NAME = "encoded"
_META = "corpus.json"
_META_FORM = {"version": int, "start_label": bool}
# Arrays of a corpus, those that are as long as it and the rest, of S sequences, N tokens, Y labels,
# C contexts, U tests of labels and B of pairs.
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
# Numbers that are read, renumbered and written at once.
_CHUNK = 1 << 20
# Arrays as long as the corpus, as they arrive.
_ARRIVING = {"n_tests": "<i4", "tests": "<i4"} | {
    name: _MAPPED[name].dtypes for name in ("offsets", "context", "labels", "weights")
}


class FileCorpusBuilder:
    """Collects batches of observations into an `EncodedCorpus` whose arrays are mapped files.

    The corpus is that of `CorpusBuilder`, number for number. files: of the directory where
    it is written; one that is there already is replaced when the new one is complete.
    RAISES: SparseCRFError, also from its methods, where files cannot be written; what is in the
    directory is then as it was.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._start_label = True
        self._unigrams = RowIndex(1)
        self._contexts: RowIndex | None = None
        self._n_tokens = self._n_labels = 0
        self._lowest = MISSING
        try:
            self._unfinished, self._held = make_folder(files.directory, "corpus-")
            self._streams = {name: self._open(f"{name}.raw") for name in _ARRIVING}
        except OSError as error:
            raise files.failure(error) from error

    def _open(self, name: str) -> IO[bytes]:
        return (self._unfinished / name).open("wb")

    def close(self) -> None:
        """Remove what was written and is not a complete corpus."""
        for stream in self._streams.values():
            # What was not written is not wanted.
            with suppress(OSError):
                stream.close()
        shutil.rmtree(self._unfinished, ignore_errors=True)
        self._held()

    def add(self, observations: Observations, labels: Ints, weights: Floats | None = None) -> None:
        """Append a batch; see `CorpusBuilder.add`. RAISES: SparseCRFError for real values."""
        if len(observations.value_keys):
            raise SparseCRFError(Errors.SC346.format(setting=REAL_VALUES))
        hashes, bigrams = observations.unigram_hashes, observations.bigram_hashes
        present = hashes != 0
        if self._contexts is None:
            self._contexts = RowIndex(bigrams.shape[1])
            self._append(offsets=np.zeros(1))
        self._start_label = observations.start_label
        self._append(
            offsets=self._n_tokens + observations.offsets[1:],
            n_tests=present.sum(axis=1),
            tests=self._unigrams.add(hashes[present][:, None]),
            context=self._contexts.add(bigrams),
            labels=np.asarray(labels),
            weights=np.ones(len(observations.offsets) - 1) if weights is None else weights,
        )
        self._n_tokens += observations.n_tokens

    def _append(self, **arrays: Array) -> None:
        try:
            for name, array in arrays.items():
                self._streams[name].write(array.astype(_ARRIVING[name]).tobytes())
                self._streams[name].flush()
        except OSError as error:
            raise self._files.failure(error) from error

    def relabel(self, final: Relabel) -> int:
        """Replace labels by their final ids; see `CorpusBuilder.relabel`."""
        n_missing = 0
        try:
            self._streams["labels"].flush()
            with (self._unfinished / "labels.raw").open("r+b") as stream:
                while len(piece := _read(stream, "<i4", _CHUNK)):
                    found = final(piece)
                    n_missing += int((found == MISSING).sum())
                    stream.seek(-piece.nbytes, os.SEEK_CUR)
                    stream.write(found.astype(np.int32).tobytes())
                    # Between writing and reading.
                    stream.seek(0, os.SEEK_CUR)
        except OSError as error:
            raise self._files.failure(error) from error
        return n_missing

    def build(self, min_freq: int = 1) -> EncodedCorpus:
        """Number the tests and contexts of everything that was added; see `CorpusBuilder.build`.

        RAISES: SparseCRFError where no test is left, too.
        """
        if self._contexts is None:
            raise SparseCRFError(Errors.SC302)
        try:
            for stream in self._streams.values():
                stream.close()
            self._write(min_freq, self._contexts)
            replace_folder(self._unfinished, self._files.directory / NAME)
        except OSError as error:
            raise self._files.failure(error) from error
        return read_corpus(self._files, self._n_labels, self._lowest)

    def _write(self, min_freq: int, contexts: RowIndex) -> None:
        """Write the arrays with their final numbers, and then what tells that they are there."""
        rows = without_rare(contexts.rows, min_freq, contexts.counts)
        representatives, context_number = distinct_rows(rows)
        bigram_keys, ctx_indptr, ctx_indices = number_tests(rows[representatives])
        order, number = by_frequency(self._unigrams, min_freq)
        n_tokens = self._n_tokens
        if min_freq > 1 and not (len(order) or len(bigram_keys)):
            raise SparseCRFError(Errors.SC351.format(min_freq=min_freq, n_tokens=n_tokens))
        index = ctx_indptr, ctx_indices, self._unigrams.rows[order, 0], bigram_keys
        for name, array in zip(_INDEX, index, strict=True):
            np.save(self._unfinished / f"{name}.npy", array)
        self._write_tests(number, n_tokens, int(self._unigrams.counts[order].sum()))
        n_sequences = (self._unfinished / "weights.raw").stat().st_size // 8
        self._rewrite("context", n_tokens, lambda piece: context_number[piece])
        self._rewrite("labels", n_tokens, self._count_labels)
        self._rewrite("weights", n_sequences)
        self._rewrite("offsets", n_sequences + 1)
        meta = {"version": VERSION, "start_label": self._start_label}
        (self._unfinished / _META).write_text(json.dumps(meta), encoding="utf8")

    def _write_tests(self, number: Ints, n_tokens: int, n_kept: int) -> None:
        """Renumber the tests of tokens, leaving out those without a number."""
        with (
            (self._unfinished / "n_tests.raw").open("rb") as lengths,
            (self._unfinished / "tests.raw").open("rb") as tests,
            self._begin("uni_indptr", n_tokens + 1) as indptr,
            self._begin("uni_indices", n_kept) as indices,
        ):
            total = 0
            indptr.write(np.zeros(1, np.int64).tobytes())
            # Few enough tokens: each has many tests.
            while len(sizes := _read(lengths, "<i4", _CHUNK >> 4)):
                # Indexing by 32 bits ends the process where numpy gets no memory for a buffer.
                found = np.take(number, _read(tests, "<i4", int(sizes.sum())))
                kept = found >= 0
                counts = np.concatenate(([0], np.cumsum(kept)))
                indptr.write((total + counts[np.cumsum(sizes)]).astype(np.int64).tobytes())
                indices.write(found[kept].tobytes())
                total += int(counts[-1])
        (self._unfinished / "n_tests.raw").unlink()
        (self._unfinished / "tests.raw").unlink()

    def _rewrite(self, name: str, n: int, change: Callable[[Array], Array] | None = None) -> None:
        """Write an array [n] from what has arrived, or from what that is changed to."""
        path, dtype = self._unfinished / f"{name}.raw", _ARRIVING[name]
        with path.open("rb") as raw, self._begin(name, n) as stream:
            while len(piece := _read(raw, dtype, _CHUNK)):
                stream.write((change(piece) if change else piece).astype(dtype).tobytes())
        path.unlink()

    def _count_labels(self, labels: Array) -> Array:
        """Look how many labels and sets there are. RETURNS: the labels [n], n > 0, as they are."""
        self._lowest = min(self._lowest, int(labels.min()))
        self._n_labels = max(self._n_labels, int(labels.max()) + 1)
        return labels

    def _begin(self, name: str, n: int) -> IO[bytes]:
        """Open the file of an array [n] that is written piece by piece."""
        stream = self._open(f"{name}.npy")
        stream.write(npy_header(_MAPPED[name].dtypes, n))
        return stream


Builder: TypeAlias = CorpusBuilder | FileCorpusBuilder


@contextmanager
def corpus_builder(store: Memory) -> Iterator[Builder]:
    """A builder of a corpus that is to be in a store."""
    if not isinstance(store, Files):
        yield CorpusBuilder()
        return
    builder = FileCorpusBuilder(store)
    try:
        yield builder
    finally:
        builder.close()


def _read(stream: IO[bytes], dtype: str, n: int) -> Array:
    """Read at most n numbers. RAISES: OSError, where `numpy.fromfile` would take it for the end."""
    return np.frombuffer(stream.read(n * np.dtype(dtype).itemsize), dtype)


def check_directory(directory: Path) -> None:
    """Refuse to replace what is no corpus, or cannot be read. RAISES: SparseCRFError."""
    path = directory / NAME
    own = {_META, *(f"{name}.npy" for name in _FIELDS)}
    try:
        found = {entry.name for entry in path.iterdir()}
    except FileNotFoundError:
        return
    except NotADirectoryError:
        found = {path.name} if path.exists() else set()
    except OSError as error:
        message = Errors.SC345.format(path=directory, reason=error.strerror)
        raise SparseCRFError(message) from error
    if not found <= own:
        raise SparseCRFError(Errors.SC349.format(path=path))


def read_corpus(files: Files, n_labels: int, lowest: int = MISSING) -> EncodedCorpus:
    """Map the corpus that is in a directory; it has no sets, and its index is read.

    n_labels: Y, of which its labels must be; lowest: the last number of a set of labels, below -1.
    RAISES: SparseCRFError where there is none, or it is damaged or of another version.
    """
    directory = files.directory / NAME
    with told(Errors.SC348, path=directory):
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
