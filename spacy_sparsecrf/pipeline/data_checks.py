"""Checks of the Docs of training and evaluation, with warnings about probable mistakes."""

from collections.abc import Iterable, Iterator, Sequence

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import Warnings, warn
from ..model.model import CRFModel
from ..targets.base import Target, string_ids
from ..targets.entities import Entities
from ..targets.scheme import OUTSIDE
from ..targets.spans import SpanTarget
from .batchers import is_augmented
from .tokenization import TokenCuts

LANG = "lang"
"""The key of `doc.user_data` for the language given to `convert`."""

# The words of the dummy Doc that spaCy creates if `nlp.initialize` gets no examples.
_MADE_UP = ("x", "y", "z")
_ANY_LANGUAGE = ("", "xx")
# Maximum number of gold tokens to tokenize again.
_N_CUT = 20_000


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


class DataChecks:
    """The examples that `initialize` has read, and checks of those that come later.

    Stores a 64-bit hash of the words of each gold Doc, and the types of annotation that Docs have.
    Each check warns once.

    n_tokens: number of tokens of the examples.
    """

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self._target: Target | None = None
        self._kinds: dict[str, str] = {}
        self._n = 0
        self.n_tokens = 0
        self._augmented = False
        self._is_warned = self._is_evaluated = self._is_empty = False

    def watch(
        self, examples: Iterable[Example], name: str, nlp: Language | None
    ) -> Iterator[Example]:
        """Yield the examples, and record them.

        Warns about the first example whose language differs from the language of the pipeline
        `nlp`, and if the pipeline's tokenizer splits many of the first gold tokens differently.
        name: of the component, for warnings.
        """
        self._augmented = nlp is not None and is_augmented(nlp)
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

    def check_labels(self, name: str, target: Target, labels: Sequence[str], n_tokens: int) -> None:
        """Record the target and the number of tokens; warn if `name` has no entity or span."""
        self._target, self.n_tokens = target, n_tokens
        if isinstance(target, SpanTarget) and labels and not target.names_of(labels):
            warn(Warnings.SCW216.format(name=name, n=self._n, remedy=self.remedy))

    def warn_of_unseen(self, name: str, examples: Sequence[Example]) -> None:
        """Warn component `name` about an update that has none of the examples of `initialize`.

        There is no warning if an augmenter changes the examples.
        """
        if self._is_warned or self._augmented or not (self._hashes and examples):
            return
        if not any(_hash_of(each.reference) in self._hashes for each in examples):
            self._is_warned = True
            values = {"n": self._n, "text": examples[0].reference.text[:60]}
            warn(Warnings.SCW207.format(name=name, **values))

    def warn_of_empty(self, name: str, model: CRFModel, l1: float) -> None:
        """Warn about a model of component `name` whose weights are all zero; l1: the penalty."""
        if not (self._is_empty or model.n_active or len(model.labels) < 2):
            self._is_empty = True
            warn(Warnings.SCW218.format(name=name, l1=l1))

    def warn_of_evaluated(self, name: str, target: Target, examples: Sequence[Example]) -> None:
        """Warn if component `name` is evaluated in training on Docs without gold annotation."""
        if self._is_evaluated:
            return
        self._is_evaluated = True
        if any(
            label not in (None, "", (), OUTSIDE) for each in examples for label in target.gold(each)
        ):
            return
        what = f"{len(examples)} Docs without gold annotation" if examples else "no Docs"
        warn(Warnings.SCW217.format(name=name, what=what))


def _hash_of(doc: Doc) -> int:
    """Return a hash of a Doc's words, the same for Docs of any vocab in this process."""
    return hash(doc.to_array("ORTH").tobytes())
