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
_MOST_CUT = 0.01


class TokenCuts:
    """Counts gold tokens, and gold tokens that a tokenizer splits differently.

    tokenizer: creates the Doc of a text; n_tokens: number of gold tokens so far; others:
    frequencies of gold tokens that are split differently.
    """

    def __init__(self, tokenizer: Callable[[str], Doc]) -> None:
        self.tokenizer = tokenizer
        self.n_tokens = 0
        self.others: Counter[str] = Counter()

    @property
    def n_others(self) -> int:
        """The number of gold tokens that are split differently."""
        return self.others.total()

    @property
    def share(self) -> float:
        """The share of gold tokens that are split differently."""
        return self.n_others / max(1, self.n_tokens)

    @property
    def are_many(self) -> bool:
        """Whether a warning is due: more than 1 % of the gold tokens are split differently."""
        return self.share > _MOST_CUT

    @property
    def examples(self) -> str:
        """The most frequent words that are split differently, as text."""
        return ", ".join(f"{word!r} ({n})" for word, n in self.others.most_common(_N_SHOWN))

    def add(self, gold: Doc) -> None:
        """Tokenize the text of a gold Doc again, and count its tokens."""
        spaces = _spaces(gold)
        ends, end = [], 0
        for token, space in zip(gold, spaces, strict=True):
            ends.append(end + len(token))
            end = ends[-1] + len(space)
        text = "".join(token.text + space for token, space in zip(gold, spaces, strict=True))
        found = {(token.idx, token.idx + len(token)) for token in self.tokenizer(text)}
        self.n_tokens += len(gold)
        for token, end in zip(gold, ends, strict=True):
            if (end - len(token), end) not in found:
                self.others[token.text] += 1


def _spaces(gold: Doc) -> list[str]:
    """Return the white space after each token; if it is unknown, guess it from the script."""
    if not gold.has_unknown_spaces:
        return [token.whitespace_ for token in gold]
    words = [token.text for token in gold]
    return [
        "" if _UNSPACED.match(word[-1]) and _UNSPACED.match(after[:1]) else " "
        for word, after in zip(words, [*words[1:], ""], strict=False)
    ]
