"""The corpus reader: spaCy's, that keeps what it has read and hands annotations over."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.corpus import FILE_TYPE, create_docbin_reader, walk_corpus
from spacy.util import registry
from spacy.vocab import Vocab
from srsly.msgpack import msgpack_decoders

from ..progress import track
from .annotations import Annotations, have_same_words
from .batchers import needs_one_example

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
    """Create a reader of .spacy files; with spacy.Corpus.v1's settings it yields what that does.

    path: of a file or a directory of them.
    gold_preproc, max_length, limit, augmenter: as for spacy.Corpus.v1.
    annotations: names of gold annotations that predicted Docs get, see `annotations`.
    gold_tokens: whether predicted Docs have the words of the gold ones.
    keep: whether gold Docs stay in memory, so that the next reading reads no file.
    RAISES: ValueError without a path, SparseCRFError for an annotation that is not known.
    """
    reading = {"gold_preproc": gold_preproc, "max_length": max_length, "limit": limit}
    reader: Any = create_docbin_reader(path, augmenter=augmenter, **reading)
    handed = Annotations.parse(annotations)
    return AnnotatedCorpus(reader, handed, gold_tokens, keep, augmented=augmenter is not None)


class _KeptCorpus(NamedTuple):
    """Gold Docs in memory.

    vocab: theirs; files: paths, times of change and sizes of the files they come from.
    """

    vocab: Vocab
    files: list[tuple[Path, int, int]]
    docs: list[Doc]


@dataclass(eq=False)
class AnnotatedCorpus:
    """Reads Examples from .spacy files, whose gold Docs it keeps for the next time.

    Gold Docs of all readings are the same objects; predicted Docs are created each time, as
    pipes write to them. With an augmenter, which may write to gold Docs, they are copies.

    reader: spaCy's, which has path, gold_preproc, max_length, limit and augmenter.
    annotations: what predicted Docs get of the gold ones.
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

        Only the first for the loop of `spacy train` where it needs no other.
        RAISES: SparseCRFError for an extension attribute to copy that is not registered.
        """
        one = needs_one_example(nlp)
        shown = track(self._gold_docs(nlp.vocab), "Reading corpus", "docs")
        for gold in shown:
            for example in self._examples(nlp, gold):
                self.annotations.copy_to_predicted(example)
                yield example
                if one:
                    return

    def _examples(self, nlp: Language, gold: Doc) -> Iterator[Example]:
        """The Example of a gold Doc, or the Examples that the augmenter makes of it."""
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
        """A Doc without annotation; spaCy also uses gold words where the text is not known."""
        if self.gold_tokens or self.reader.gold_preproc or gold.has_unknown_spaces:
            return _with_words_of(gold, nlp.vocab)
        return nlp.make_doc(gold.text)

    def _gold_docs(self, vocab: Vocab) -> Iterator[Doc]:
        """Gold Docs as they are kept, or else from the files.

        They are kept once they are read to the end: who streams a corpus may not want all of it.
        """
        paths = walk_corpus(self.reader.path, FILE_TYPE)
        files = [(path, path.stat().st_mtime_ns, path.stat().st_size) for path in paths]
        kept = self._kept
        if kept is not None and kept.vocab is vocab and kept.files == files:
            yield from kept.docs
            return
        self._kept = None
        docs: list[Doc] = []
        with _decoders_known():
            for doc in self._cut(self.reader.read_docbin(vocab, paths)):
                yield doc
                if self.keep:
                    docs.append(doc)
        if self.keep:
            self._kept = _KeptCorpus(vocab, files, docs)

    def _cut(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        """Cut Docs into sentences where spacy.Corpus.v1 does, and leave out what it does."""
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


@contextmanager
def _decoders_known() -> Iterator[None]:
    """Look up once what decodes messages, and not again for each Doc with groups of spans.

    srsly goes through all that is registered, and all entry points of the environment, whenever it
    reads one, which takes milliseconds.
    """
    found = msgpack_decoders.get_all()
    vars(msgpack_decoders)["get_all"] = lambda: found
    try:
        yield
    finally:
        # Readings may overlap, and end in any order.
        vars(msgpack_decoders).pop("get_all", None)


def _with_words_of(gold: Doc, vocab: Vocab) -> Doc:
    words = [token.text for token in gold]
    spaces = [bool(token.whitespace_) for token in gold]
    return Doc(vocab, words=words, spaces=spaces)
