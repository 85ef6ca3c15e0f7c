"""A corpus reader that caches gold Docs and copies gold annotations to predicted Docs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

import srsly
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Example
from spacy.training.corpus import FILE_TYPE, create_docbin_reader, walk_corpus
from spacy.util import registry
from spacy.vocab import Vocab

from ..progress import Task
from .annotations import Annotations, have_same_words

_NIL = b"\xc0"  # the message of nothing
# A span in a message: id, knowledge base id, label, first token, token after the last, characters.
_SPAN = Struct(">QQQllll")

Augmenter: TypeAlias = Callable[[Language, Example], Iterable[Example]]


@registry.readers("spacy_sparsecrf.AnnotatedCorpus.v1")  # type: ignore[untyped-decorator]
def make_annotated_corpus(
    path: Path | None,
    gold_preproc: bool = False,
    max_length: int = 0,
    limit: int = 0,
    augmenter: Callable[..., Any] | None = None,
    annotations: Sequence[str] = (),
    gold_tokens: bool = False,
    keep: bool = True,
) -> "AnnotatedCorpus":
    """Create a reader of .spacy files, which extends spacy.Corpus.v1 by the last three settings.

    path: of a file, or of a directory of files.
    gold_preproc, max_length, limit, augmenter: as for spacy.Corpus.v1.
    annotations: names of gold annotations to copy to predicted Docs, see `annotations`.
    gold_tokens: whether predicted Docs have the words of the gold Docs.
    keep: whether to cache gold Docs in memory, so that later passes read no files.
    RAISES: ValueError without a path, SparseCRFError for an unknown annotation.
    """
    reading = {"gold_preproc": gold_preproc, "max_length": max_length, "limit": limit}
    reader: Any = create_docbin_reader(path, augmenter=augmenter, **reading)
    handed = Annotations.parse(annotations)
    return AnnotatedCorpus(reader, handed, gold_tokens, keep, augmented=augmenter is not None)


class _KeptCorpus(NamedTuple):
    """Gold Docs in memory.

    vocab: of the Docs; files: paths, modification times and sizes of their files.
    """

    vocab: Vocab
    files: list[tuple[Path, int, int]]
    docs: list[Doc]


@dataclass(eq=False)
class AnnotatedCorpus:
    """Reads Examples from .spacy files, and caches their gold Docs for the next pass.

    Gold Docs are the same objects in all passes; predicted Docs are created in each pass, because
    pipes write to them. With an augmenter, which may write to gold Docs, gold Docs are copied.

    reader: spaCy's reader, with path, gold_preproc, max_length, limit and augmenter.
    annotations: gold annotations to copy to predicted Docs.
    gold_tokens, keep: see `make_annotated_corpus`; augmented: whether there is an augmenter.
    """

    reader: Any
    annotations: Annotations
    gold_tokens: bool
    keep: bool
    augmented: bool
    _kept: _KeptCorpus | None = field(default=None, init=False, repr=False)

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Read the Examples, in the order of the files.

        RAISES: SparseCRFError for an extension attribute to copy that is not registered.
        """
        shown = Task("Reading corpus", "docs", items=self._gold_docs(nlp.vocab))
        for gold in shown:
            for example in self._examples(nlp, gold):
                self.annotations.copy_to_predicted(example)
                yield example

    def _examples(self, nlp: Language, gold: Doc) -> Iterator[Example]:
        """Yield the Example of a gold Doc, or the Examples that the augmenter creates from it."""
        if not self.augmented:
            yield Example(self._predicted(nlp, gold), gold)
            return
        gold = gold.copy()
        example = Example(self._predicted(nlp, gold), gold)
        for augmented in self.reader.augmenter(nlp, example):
            gold, predicted = augmented.reference, augmented.predicted
            if self.gold_tokens and not have_same_words(predicted, gold):
                yield Example(_with_words_of(gold, nlp.vocab), gold)
            else:
                yield augmented

    def _predicted(self, nlp: Language, gold: Doc) -> Doc:
        """Return a Doc without annotation; as in spaCy, with gold words if the text is unknown."""
        if self.gold_tokens or self.reader.gold_preproc or gold.has_unknown_spaces:
            return _with_words_of(gold, nlp.vocab)
        return nlp.make_doc(gold.text)

    def _gold_docs(self, vocab: Vocab) -> Iterator[Doc]:
        """Yield gold Docs, from the cache or from the files.

        Docs are cached after a complete pass only, as a streamed corpus may be read in part.
        """
        paths = walk_corpus(self.reader.path, FILE_TYPE)
        files = [(path, path.stat().st_mtime_ns, path.stat().st_size) for path in paths]
        kept = self._kept
        if kept is not None and kept.vocab is vocab and kept.files == files:
            yield from kept.docs
            return
        self._kept = None
        docs: list[Doc] = []
        for doc in self._cut(_read_docs(vocab, paths, self.reader.limit)):
            yield doc
            if self.keep:
                docs.append(doc)
        if self.keep:
            self._kept = _KeptCorpus(vocab, files, docs)

    def _cut(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        """Divide Docs into sentences, and leave out long ones, as spacy.Corpus.v1 does."""
        by_sentence, longest = self.reader.gold_preproc, self.reader.max_length
        for doc in docs:
            if not by_sentence and (longest == 0 or len(doc) < longest):
                yield doc
            elif doc.has_annotation("SENT_START"):
                for sentence in doc.sents:
                    if by_sentence or len(sentence) < longest:
                        yield sentence.as_doc()
            elif by_sentence:
                yield doc


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


def _with_words_of(gold: Doc, vocab: Vocab) -> Doc:
    words = [token.text for token in gold]
    spaces = [bool(token.whitespace_) for token in gold]
    return Doc(vocab, words=words, spaces=spaces)
