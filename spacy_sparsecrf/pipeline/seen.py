"""Which examples `initialize` has read: all that a batch solver learns from."""

import warnings
from collections.abc import Iterable, Iterator

from spacy.tokens import Doc
from spacy.training import Example

from ..errors import SparseCRFWarning, Warnings
from ..targets.base import string_ids

# The words of the one Doc that spaCy makes up where `nlp.initialize` is given no examples.
_MADE_UP = ("x", "y", "z")


class Seen:
    """Keeps a hash of the words of each gold Doc that `initialize` reads."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self._n = 0
        self._warned = False

    def watch(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples, and remember them."""
        for example in examples:
            self._hashes.add(_hash_of(example.reference))
            self._n += 1
            yield example

    @property
    def made_up(self) -> bool:
        """Whether there was nothing but the Doc that spaCy makes up where it gets no examples."""
        return self._n == 1 and self._hashes == {hash(string_ids(_MADE_UP).tobytes())}

    def warn_of_others(self, name: str, examples: Iterable[Example]) -> None:
        """Warn, once, if the first of some examples is none of those that were read.

        One of a batch is enough: batches of other examples follow each other. name: of the
        component that is updated with them, and does not learn from them.
        """
        first = None if self._warned else next(iter(examples), None)
        if first is None or not self._n or _hash_of(first.reference) in self._hashes:
            return
        self._warned = True
        text = first.reference.text[:60]
        message = Warnings.SCW207.format(name=name, n=self._n, text=text)
        warnings.warn(message, SparseCRFWarning, stacklevel=3)


def _hash_of(doc: Doc) -> int:
    """A hash of a Doc's words, the same for Docs of any vocab in this process."""
    return hash(doc.to_array("ORTH").tobytes())
