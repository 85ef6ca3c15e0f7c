"""Differences between gold tokens and the output of a pipeline's tokenizer."""

import re
from collections import Counter
from collections.abc import Callable

from spacy.tokens import Doc

# Scripts that are written without spaces between words: Thai to Myanmar, Khmer, Chinese, Japanese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"
)
_N_SHOWN = 3
MOST_CUT = 0.01


class TokenCuts:
    """Counts gold tokens, except blanks, and gold tokens that a tokenizer splits differently.

    tokenizer: creates the Doc of a text; n_tokens: number of gold tokens so far; n_others: number
    of gold tokens that are split differently; others: their frequencies.
    """

    def __init__(self, tokenizer: Callable[[str], Doc]) -> None:
        self.tokenizer = tokenizer
        self.n_tokens = self.n_others = 0
        self.others: Counter[str] = Counter()

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
        text, starts, found = gold.text, list[int](), set[tuple[int, int]]()
        if gold.has_unknown_spaces:
            text, starts = _joined([token.text for token in gold])
        for token in self.tokenizer(text):
            found.add((token.idx, len(token)))
        for token in gold:
            if token.is_space:
                continue
            self.n_tokens += 1
            start = starts[token.i] if starts else token.idx
            if (start, len(token)) not in found:
                self.others[token.text] += 1
                self.n_others += 1
        return gold


def _joined(words: list[str]) -> tuple[str, list[int]]:
    """Join words, with spaces unless their script has none. RETURNS: text, and start of each."""
    text, starts = "", []
    for word in words:
        has_space = word.isspace() or text[-1:].isspace()
        if text and not (has_space or (_UNSPACED.match(text[-1]) and _UNSPACED.match(word))):
            text += " "
        starts.append(len(text))
        text += word
    return text, starts
