"""A corpus reader that caches gold Docs and copies gold annotations to predicted Docs."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest
from pathlib import Path
from struct import Struct
from traceback import extract_stack
from typing import Any

import srsly
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Example
from spacy.training.corpus import FILE_TYPE, Corpus, walk_corpus
from spacy.util import registry
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError, nearest
from ..progress import Task
from ..schema import reported_as
from ..targets.base import have_same_tokens
from .annotations import Annotations

_NIL = b"\xc0"  # the message of nothing
# A span in a message: id, knowledge base id, label, first token, token after the last, characters.
_SPAN = Struct(">QQQllll")


OFFERED: dict[Any, list[Example]] = {}
"""Examples that the next reader with the same vocab, files and settings yields once."""
_N_OFFERED = ContextVar("_N_OFFERED", default=0)


@contextmanager
def reading(n_offered: int) -> Iterator[None]:
    """Suspend full garbage collections, each of which visits every Doc that has been read.

    n_offered: number of the first Examples that readers offer to the next reader.
    """
    OFFERED.clear()
    thresholds, token = gc.get_threshold(), _N_OFFERED.set(n_offered)
    gc.set_threshold(*thresholds[:2], 2**31 - 1)
    try:
        yield
    finally:
        if thresholds[2] < 2**31 - 1:  # contexts may end in any order, if loops run in turns
            gc.set_threshold(*thresholds)
        _N_OFFERED.reset(token)


@registry.readers("spacy_sparsecrf.AnnotatedCorpus.v1")
class AnnotatedCorpus(Corpus):
    """Reads Examples from .spacy files; extends spacy.Corpus.v1 by the last three settings.

    Gold Docs are the same objects in all passes; predicted Docs are created in each pass, because
    pipes write to them. With an augmenter, which may write to gold Docs, gold Docs are copied. The
    reader that `spacy train` creates after `initialize` takes over the Examples made there, if the
    batcher uses one an epoch only the first: the others do not stay in memory.

    path: of a file, or of a directory of files.
    gold_preproc, max_length, limit, augmenter: as for spacy.Corpus.v1.
    annotations: names of gold annotations to copy to predicted Docs, see `annotations`.
    gold_tokens: whether predicted Docs have the words of the gold Docs.
    keep: whether to cache gold Docs in memory, so that later passes read no files.
    RAISES: SparseCRFError without a path, for a path without files, and an unknown annotation.
    """

    def __init__(
        self,
        path: Path | None,
        gold_preproc: bool = False,
        max_length: int = 0,
        limit: int = 0,
        augmenter: Callable[..., Any] | None = None,
        annotations: Sequence[str] = (),
        gold_tokens: bool = False,
        keep: bool = True,
    ) -> None:
        if path is None:
            raise SparseCRFError(Errors.SC228)
        reading: dict[str, Any] = {"gold_preproc": gold_preproc, "max_length": max_length}
        super().__init__(path, limit=limit, augmenter=augmenter, **reading)
        self._annotations = Annotations.parse(annotations)
        self._gold_tokens, self._keep = gold_tokens, keep
        self._augmented = augmenter is not None
        self._settings = repr((reading, limit, self._augmented, annotations, gold_tokens))
        # Gold Docs in memory; vocab, settings, and paths, modification times and sizes of files.
        self._kept: list[Doc] | None = None
        self._source: tuple[Any, ...] | None = None

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Read the Examples, in the order of the files.

        RAISES: SparseCRFError for an extension attribute to copy that is not registered.
        """
        check_path(self.path)
        files = walk_corpus(self.path, FILE_TYPE)
        states = [(path, path.stat().st_mtime_ns, path.stat().st_size) for path in files]
        source, given = (nlp.vocab, self._settings, *states), None
        if self._source != source:
            self._kept, self._source, given = None, source, OFFERED.pop(source, None)
            is_loop = extract_stack(limit=2)[0].name == "create_train_batches"
            given = given if is_loop or len(given or ()) > 1 else None  # one is for spaCy's loop
        offered = list[Example]()
        for example in given or super().__call__(nlp):
            if given is None:
                if self._augmented and self._gold_tokens and not have_same_tokens(example):
                    example = super()._make_example(nlp, example.reference, True)
                self._annotations.copy_to_predicted(example)
            if len(offered) < _N_OFFERED.get() and self._keep:
                offered.append(example)
            yield example
        if offered:
            OFFERED[source] = offered

    def _make_example(self, nlp: Language, reference: Doc, gold_preproc: bool) -> Example:
        """Return an Example of a gold Doc; gold_preproc: whether it has the gold words."""
        gold = reference.copy() if self._augmented else reference
        if not (gold_preproc or self._gold_tokens or gold.has_unknown_spaces):
            return Example(nlp.make_doc(gold.text), gold)
        # As spaCy's reader, which creates Tokens.
        words, spaces = gold.to_array(["ORTH", "SPACY"]).T.tolist()
        return Example(Doc(nlp.vocab, words=words, spaces=spaces), gold)

    def read_docbin(self, vocab: Vocab, locs: Iterable[str | Path]) -> Iterator[Doc]:
        """Yield the gold Docs of files, from the cache if it has them.

        Docs are cached after a complete pass only, as a streamed corpus may be read in part.
        """
        docs, read = list[Doc](), self._kept or _read_docs(vocab, map(Path, locs), self.limit)
        for doc in Task("Reading corpus", "docs", items=read):
            yield doc
            if self._keep:
                docs.append(doc)
        if self._keep:
            self._kept = docs


make_annotated_corpus = AnnotatedCorpus  # the name of the entry point


def check_path(path: Path) -> None:
    """Raise SparseCRFError if a path of a corpus does not exist. path: may be a pattern."""
    if "*" not in path.name and not path.exists():
        near = nearest(path.name, [each.name for each in path.parent.glob("*")])
        raise SparseCRFError(Errors.SC229.format(path=path, folder=Path.cwd(), nearest=near))


def _read_docs(vocab: Vocab, paths: Iterable[Path], limit: int) -> Iterator[Doc]:
    """Yield the Docs of .spacy files as spacy.Corpus.v1 does.

    srsly searches its registry and all entry points of the environment for each message, which
    takes milliseconds. So the span groups and the user data of a file are read as one message.
    limit: number of Docs, 0 for all.
    """
    n = 0
    for path in paths:
        if not path.name.endswith(FILE_TYPE):
            continue
        with reported_as(Errors.SC621, path=path):
            packed = DocBin().from_disk(path)
        groups = _group_contents(packed.span_groups)
        packed.span_groups = [b""] * len(groups)
        data = _unpacked([message or _NIL for message in packed.user_data], use_list=False)
        packed.user_data = [None] * len(data)
        for doc, own, more in zip_longest(packed.get_docs(vocab), groups, data):
            for content, keys in own:
                _set_group(doc, content, keys)
            doc.user_data.update(more or {})
            if len(doc):
                yield doc
                n += 1
                if 1 <= limit <= n:  # spaCy also reads a Doc of each further file.
                    break


def _group_contents(messages: Sequence[bytes]) -> list[list[tuple[Any, list[str]]]]:
    """Return the content and the keys of each span group of each Doc."""
    found = _unpacked([message or _NIL for message in messages])
    contents = iter(_unpacked([packed for own in found for packed in own or ()]))
    return [
        # Former versions of spaCy wrote lists.
        [(next(contents), own[packed] if isinstance(own, dict) else []) for packed in own or ()]
        for own in found
    ]


def _unpacked(messages: Sequence[bytes], use_list: bool = True) -> Sequence[Any]:
    """Unpack several messages as one array; use_list: whether arrays are lists, or tuples."""
    head = b"\xdd" + len(messages).to_bytes(4, "big")
    found: Sequence[Any] = srsly.msgpack_loads(head + b"".join(messages), use_list=use_list)
    return found


def _set_group(doc: Doc, content: Any, keys: Sequence[str]) -> None:
    """Set a span group of a Doc, and copies of it under further keys; none: under its name."""
    spans = [
        Span(doc, start, end, label=label, kb_id=kb_id, span_id=own)
        for own, kb_id, label, start, end, *_ in map(_SPAN.unpack, content["spans"])
    ]
    group = SpanGroup(doc, name=content["name"], attrs=dict(content["attrs"]), spans=spans)
    for key in keys or [group.name]:
        doc.spans[key] = group.copy() if key in keys[1:] else group
