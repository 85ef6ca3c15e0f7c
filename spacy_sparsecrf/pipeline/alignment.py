"""Gold labels that predicted tokens do not get, as they are cut otherwise than gold tokens."""

from collections.abc import Sequence

from spacy.training import Example

from ..targets.base import Target, have_same_tokens

Gold = Sequence[str | tuple[str, ...] | None]


class AlignmentCount:
    """Counts gold labels, and those of them that are lost to alignment.

    n_gold: labels that the tokens of gold Docs have; n_lost: of tokens none of whose predicted
    tokens has a label; word, text: the first of those tokens, and the beginning of its Doc.
    """

    def __init__(self) -> None:
        self.n_gold = self.n_lost = 0
        self.word = self.text = ""

    @property
    def share(self) -> float:
        """The share of gold labels that are lost."""
        return self.n_lost / self.n_gold if self.n_gold else 0.0

    def add(self, example: Example, gold: Gold, target: Target) -> None:
        """Count an example. gold: what the target has read of it, [predicted tokens]."""
        if have_same_tokens(example):
            self.n_gold += sum(map(bool, gold))
            return
        doc = example.reference
        own = target.gold(Example(doc, doc))
        of_gold_token = example.alignment.y2x
        for i, label in enumerate(own):
            if not label:
                continue
            self.n_gold += 1
            if not any(gold[int(j)] for j in of_gold_token[i]):
                self.n_lost += 1
                if not self.text:
                    self.word, self.text = doc[i].text, doc.text[:60]
