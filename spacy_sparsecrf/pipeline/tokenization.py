"""Differences between gold tokens and the output of a pipeline's tokenizer."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from spacy.tokens import Doc

# Scripts that are written without spaces between words: Thai to Myanmar, Khmer, Chinese, Japanese.
_UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"
)
# The last character of a word, and the next word, if no space is between them.
_TOUCHING = re.compile(rf"{_UNSPACED}{{2}}|\s|.\s+\Z", re.DOTALL)
_N_SHOWN = 3
MOST_CUT = 0.01
MOST_MASKED = 0.1


@dataclass
class TokenCuts:
    """Counts gold tokens, except blanks, and gold tokens that a tokenizer splits differently.

    tokenizer: creates the Doc of a text; n_tokens: number of gold tokens so far; n_masked: of these
    in Docs of several words with but one character, such as _; others: frequencies of gold tokens
    that are split differently.
    """

    tokenizer: Callable[[str], Doc]
    n_tokens: int = 0
    n_masked: int = 0
    others: Counter[str] = field(default_factory=Counter)

    @property
    def n_others(self) -> int:
        """The number of gold tokens that are split differently."""
        return self.others.total()

    @property
    def share(self) -> float:
        """The share of gold tokens that are split differently; a warning is due above MOST_CUT."""
        return self.n_others / max(1, self.n_tokens)

    @property
    def examples(self) -> str:
        """The most frequent words that are split differently, as text."""
        return ", ".join(f"{word!r} ({n})" for word, n in self.others.most_common(_N_SHOWN))

    def add(self, gold: Doc) -> Doc:
        """Tokenize the text of a gold Doc again, and count its tokens. RETURNS: the Doc."""
        doc = _with_spaces(gold) if gold.has_unknown_spaces else gold
        predicted = {(token.idx, len(token)) for token in self.tokenizer(doc.text)}
        words = [token for token in doc if not token.is_space]
        self.n_tokens += len(words)
        self.n_masked += len(words) * (len({*"".join(x.text for x in words)}) == 1 < len(words))
        self.others.update(x.text for x in words if (x.idx, len(x)) not in predicted)
        return gold


def _with_spaces(doc: Doc) -> Doc:
    """Return a Doc with spaces between its words, unless their script has none."""
    words = [token.text for token in doc]
    spaces = [not _TOUCHING.match(a[-1:] + b) for a, b in pairwise(words)]
    return Doc(doc.vocab, words=words, spaces=[*spaces, False][: len(words)])
