"""A corpus reader that caches gold Docs and copies gold annotations to predicted Docs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from struct import Struct
from typing import Any

import srsly
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Example
from spacy.training.corpus import FILE_TYPE, Corpus, walk_corpus
from spacy.util import registry
from spacy.vocab import Vocab

from ..errors import Errors, SparseCRFError, Warnings, nearest, warn
from ..progress import Task
from ..schema import reported_as
from .annotations import Annotations
from .loop import made_without_collections
from .targets.target import have_same_tokens

_NIL = b"\xc0"  # the message of nothing
# A span in a message: id, knowledge base id, label, first token, token after the last, characters.
_SPAN = Struct(">QQQllll")


@registry.readers("spacy_sparsecrf.AnnotatedCorpus.v1")
class AnnotatedCorpus(Corpus):
    """Reads Examples from .spacy files; extends spacy.Corpus.v1 by the last three settings.

    Gold Docs are the same objects in all passes; predicted Docs are created in each pass, because
    pipes write to them. With an augmenter, which may write to gold Docs, gold Docs are copied.

    path: of a file, or of a directory of files.
    gold_preproc, limit, augmenter: as for spacy.Corpus.v1.
    max_length: without effect, with a warning if a Doc is as long: a CRF needs no limit.
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
        super().__init__(path, gold_preproc=gold_preproc, limit=limit, augmenter=augmenter)
        self._most = max_length
        self._annotations = Annotations.parse(annotations)
        self._gold_tokens, self._keep = gold_tokens, keep
        self._augmented = augmenter is not None
        # Gold Docs in memory; vocab, and paths, modification times and sizes of files.
        self._gold: list[Doc] | None = None
        self._source: tuple[Any, ...] | None = None

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Read the Examples, in the order of the files.

        RAISES: SparseCRFError for an extension attribute to copy that is not registered.
        """
        check_path(self.path)
        files = walk_corpus(self.path, FILE_TYPE)
        source = nlp.vocab, [(path, path.stat().st_mtime_ns, path.stat().st_size) for path in files]
        if self._source != source:
            self._gold, self._source = None, source
        return made_without_collections(self._examples(nlp))

    def _examples(self, nlp: Language) -> Iterator[Example]:
        """Yield the Examples, with the annotations to copy."""
        for example in super().__call__(nlp):
            if self._augmented and self._gold_tokens and not have_same_tokens(example):
                example = super()._make_example(nlp, example.reference, True)
            self._annotations.copy_to_predicted(example)
            yield example

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
        stored = self._gold or _read_docs(vocab, map(Path, locs), self.limit)
        docs, lengths = list[Doc](), list[int]()
        for doc in Task("Reading corpus", "docs", items=stored):
            yield doc
            if self._keep:
                docs.append(doc)
            lengths.append(len(doc))
        if self._keep:
            self._gold = docs
        if n := sum(length >= self._most > 0 for length in lengths):
            warn(Warnings.SCW240.format(value=self._most, n=n, n_docs=len(lengths)))
            self._most = 0


make_annotated_corpus = AnnotatedCorpus  # the name of the entry point


def check_path(path: Path) -> None:
    """Raise SparseCRFError if a path of a corpus does not exist. path: may be a pattern."""
    if "*" not in path.name and not path.exists():
        near = nearest(path.name, [file.name for file in path.parent.glob("*")])
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
        user_data = _unpacked([message or _NIL for message in packed.user_data], use_list=False)
        packed.user_data = [None] * len(user_data)
        docs = packed.get_docs(vocab)
        for doc, groups_of_doc, data_of_doc in zip_longest(docs, groups, user_data):
            for content, keys in groups_of_doc:
                _set_group(doc, content, keys)
            doc.user_data.update(data_of_doc or {})
            if len(doc):
                yield doc
                n += 1
                if 1 <= limit <= n:  # spaCy also reads a Doc of each further file.
                    break


def _group_contents(messages: Sequence[bytes]) -> list[list[tuple[Any, list[str]]]]:
    """Return the content and the keys of each span group of each Doc."""
    docs = [groups or () for groups in _unpacked([message or _NIL for message in messages])]
    contents = iter(_unpacked([packed for groups in docs for packed in groups]))
    return [
        # Former versions of spaCy wrote lists.
        [(next(contents), groups[packed] if isinstance(groups, dict) else []) for packed in groups]
        for groups in docs
    ]


def _unpacked(messages: Sequence[bytes], use_list: bool = True) -> Sequence[Any]:
    """Unpack several messages as one array; use_list: whether arrays are lists, or tuples."""
    head = b"\xdd" + len(messages).to_bytes(4, "big")
    unpacked: Sequence[Any] = srsly.msgpack_loads(head + b"".join(messages), use_list=use_list)
    return unpacked


def _set_group(doc: Doc, content: Any, keys: Sequence[str]) -> None:
    """Set a span group of a Doc, and copies of it under further keys; none: under its name."""
    spans = [
        Span(doc, start, end, label=label, kb_id=kb_id, span_id=span_id)
        for span_id, kb_id, label, start, end, *_ in map(_SPAN.unpack, content["spans"])
    ]
    group = SpanGroup(doc, name=content["name"], attrs=dict(content["attrs"]), spans=spans)
    for key in keys or [group.name]:
        doc.spans[key] = group.copy() if key in keys[1:] else group
