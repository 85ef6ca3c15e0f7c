"""The Docs of training and evaluation, and warnings about probable mistakes in them."""

from collections.abc import Iterable, Iterator, Sequence

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import SparseCRFError, Warnings, warn
from ..targets.base import Target, string_ids
from ..targets.entities import Entities
from ..targets.scheme import OUTSIDE
from ..targets.spans import SpanTarget
from .tokenization import TokenCuts

LANG = "lang"
"""The key of `doc.user_data` for the language given to `convert`."""

# The words of the dummy Doc that spaCy creates if `nlp.initialize` gets no examples.
_MADE_UP = ("x", "y", "z")
_ANY_LANGUAGE = ("", "xx")
# Maximum number of gold tokens to tokenize again.
_N_CUT = 20_000
# Why no examples are added to a corpus.
_NOT_KEPT = (
    "A corpus is not extended if the config names it ([corpora.train] path), or with checkpoint "
    "or shards."
)


def _found(doc: Doc) -> Iterator[tuple[str, str]]:
    """Yield each type of annotation that a Doc has, and how to learn it."""
    if doc.to_array("ENT_TYPE").any():
        yield "entities", "use `python -m spacy_sparsecrf config ner`"
    for key, group in doc.spans.items():
        if len(group):
            where = f'with key = "{key}" in [components.chunks.target]'
            yield f"doc.spans[{key!r}]", f"use `python -m spacy_sparsecrf config spans` {where}"
    if doc.to_array("TAG").any():
        yield "tags", "use `python -m spacy_sparsecrf config tagger`"
    elif doc.to_array("POS").any():
        yield "parts of speech", 'set attr = "pos" in the target of `config tagger`'


class Seen:
    """The examples that `initialize` has read, and new examples from `update`.

    Stores a hash of the words of each gold Doc, and the types of annotation that Docs have.

    new: unseen examples, by the hash of their words, that are not in the corpus yet. They replace
        examples with the same words, whose labels they correct.
    """

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        # Hashes of the labels of kept Docs with the same words.
        self._golds: dict[int, set[int | None]] = {}
        self._target: Target | None = None
        self._kinds: dict[str, str] = {}
        self._n = 0
        self._warned = False
        self._kept: list[Example] | None = None
        self.new: dict[int, Example] = {}
        self._n_again = 0

    def watch(
        self, examples: Iterable[Example], name: str, nlp: Language | None
    ) -> Iterator[Example]:
        """Yield the examples, and record them.

        Warns about the first example whose language differs from the language of the pipeline
        `nlp`, and if the pipeline's tokenizer splits many of the first gold tokens differently.
        name: of the component, for warnings.
        """
        cuts = None if nlp is None else TokenCuts(nlp.tokenizer)
        lang = None if nlp is None or nlp.lang in _ANY_LANGUAGE else nlp.lang
        for example in examples:
            doc = example.reference
            self._hashes.add(_hash_of(doc))
            self._n += 1
            self._kinds.update(_found(doc))
            own = doc.user_data.get(LANG, doc.lang_)
            if lang is not None and own != lang and own not in _ANY_LANGUAGE:
                values = {"name": name, "lang": lang, "own": own, "text": doc.text[:60]}
                warn(Warnings.SCW214.format(**values))
                lang = None
            if cuts is not None and cuts.n_tokens < _N_CUT:
                cuts.add(doc)
            yield example
        if cuts is not None and cuts.are_many:
            values = {"n": cuts.n_others, "n_tokens": cuts.n_tokens, "words": cuts.examples}
            warn(Warnings.SCW220.format(name=name, **values))

    @property
    def made_up(self) -> bool:
        """Whether the only example was the dummy Doc that spaCy creates if it gets none."""
        return self._n == 1 and self._hashes == {hash(string_ids(_MADE_UP).tobytes())}

    @property
    def remedy(self) -> str:
        """Advice on the config for the annotation that the examples have."""
        if isinstance(self._target, Entities) and "entities" in self._kinds:
            return "`python -m spacy_sparsecrf debug` counts entities that do not fit the tokens."
        if not self._kinds:
            return "The Docs have no tags, entities or spans: check the file, and how it was made."
        return " ".join(f"The Docs have {kind}: {how}." for kind, how in self._kinds.items())

    def check_labels(self, name: str, target: Target, labels: Sequence[str]) -> None:
        """Record the labels, and warn if there is no entity or span of component `name`."""
        self._target = target
        for example in self._kept or ():
            doc = example.reference
            self._golds.setdefault(_hash_of(doc), set()).add(self._gold_of(doc))
        if isinstance(target, SpanTarget) and labels and not target.names_of(labels):
            warn(Warnings.SCW216.format(name=name, n=self._n, remedy=self.remedy))

    def kept(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples, and keep references to them, so that the corpus can be extended."""
        self._kept = []
        for example in examples:
            self._kept.append(example)
            yield example

    def collect(self, name: str, examples: Iterable[Example]) -> bool:
        """Collect the unseen examples of an update, identified by their words and labels.

        If the examples of `initialize` are not kept, warn once if the first example is unseen.

        name: of the component. RETURNS: whether to extend the corpus now, which costs as much as
            reading it: if there are half as many new examples as old ones, or new ones repeat.
        """
        if not self._n:
            return False
        if self._kept is None:
            first = None if self._warned else next(iter(examples), None)
            if first is not None and _hash_of(first.reference) not in self._hashes:
                self.warn_of_ignored(name, [first], _NOT_KEPT)
            return False
        same_doc = False
        for example in examples:
            key, known = _hash_of(example.reference), self._golds
            gold = self._gold_of(example.reference)
            if key in self.new:
                # Different Docs with the same words do not show a new epoch, unless all repeat.
                same_doc |= self.new[key].reference is example.reference
                self._n_again += 1
            if key not in known or (gold is not None and gold not in known[key]):
                self.new[key] = example
                known.setdefault(key, set()).add(gold)
        n = len(self.new)
        return n > 0 and (same_doc or self._n_again >= n or 2 * n >= len(self._kept))

    @property
    def all(self) -> list[Example]:
        """The kept examples, with corrections in their places, and the other new examples."""
        kept = [self.new.get(_hash_of(each.reference), each) for each in self._kept or ()]
        return [*kept, *(each for key, each in self.new.items() if key not in self._hashes)]

    def _gold_of(self, doc: Doc) -> int | None:
        """Return a hash of the labels that the target reads; None if there are none."""
        assert self._target is not None
        try:
            labels = self._target.gold(Example(doc, doc))
        except SparseCRFError as error:
            return hash(str(error))  # Extending the corpus raises it again, with a warning.
        return hash(tuple(labels)) if any(labels) else None

    def extend(self) -> None:
        """Count the new examples as seen."""
        self._kept = self.all
        self._hashes.update(self.new)
        self._n = len(self._kept)
        self.new, self._n_again = {}, 0

    def warn_of_ignored(self, name: str, examples: Sequence[Example], cause: object) -> None:
        """Warn about examples that component `name` cannot learn from; stop collecting examples."""
        self._kept, self._warned, self.new = None, True, {}
        text = examples[0].reference.text[:60]
        values = {"n": self._n, "text": text, "cause": cause}
        warn(Warnings.SCW207.format(name=name, **values))


def check_evaluated(name: str, target: Target, examples: Sequence[Example]) -> None:
    """Warn if component `name` is evaluated in training on Docs without its gold annotation."""
    if any(
        label not in (None, "", (), OUTSIDE) for each in examples for label in target.gold(each)
    ):
        return
    what = f"{len(examples)} Docs without gold annotation" if examples else "no Docs"
    warn(Warnings.SCW217.format(name=name, what=what))


def _hash_of(doc: Doc) -> int:
    """Return a hash of a Doc's words, the same for Docs of any vocab in this process."""
    return hash(doc.to_array("ORTH").tobytes())
