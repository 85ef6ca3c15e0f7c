"""Training corpora in several files, read by the reader that the config defines."""

import random
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.training import Example
from spacy.training.corpus import FILE_TYPE, walk_corpus
from spacy.util import registry

from ..errors import Errors, SparseCRFError
from .spacy_loop import block_of


def reader_block(name: str, nlp: Language | None) -> dict[str, Any]:
    """Return the block of the config for the reader of the training corpus.

    name: of the component; nlp: the pipeline.
    RAISES: SparseCRFError if it has no path.
    """
    block = {} if nlp is None else block_of(nlp, "train_corpus")
    if "path" not in block:
        raise SparseCRFError(Errors.SC901.format(name=name))
    return block


def shard_files(name: str, patterns: Sequence[str], block: dict[str, Any]) -> list[Path]:
    """Return the files that match patterns, in the order of the patterns, then sorted, each once.

    name: of the component; patterns: paths, which may contain * and **; empty for the path of the
    reader's block.
    RAISES: SparseCRFError if no file matches a pattern.
    """
    files: dict[Path, None] = {}
    for pattern in patterns or [str(block["path"])]:
        matches: list[Path] = []
        for path in sorted(glob(pattern, recursive=True)):
            matches += [Path(path)] if Path(path).is_file() else walk_corpus(path, FILE_TYPE)
        if not matches:
            raise SparseCRFError(Errors.SC900.format(name=name, pattern=pattern))
        files.update(dict.fromkeys(matches))
    return list(files)


def read_files(nlp: Language, block: dict[str, Any], files: Sequence[Path]) -> Iterator[Example]:
    """Yield the Examples of files from the reader of a block, whose `limit` is of each file.

    An augmenter draws the same numbers for a file in every pass and process.
    """
    state = random.getstate()
    try:
        for file in files:
            random.seed(0)
            of_file = {**block, "path": str(file)}
            yield from registry.resolve({"corpus": of_file})["corpus"](nlp)
    finally:
        random.setstate(state)
