"""Scorers of what spaCy has no scorer for."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.scorer import Scorer
from spacy.tokens import Token
from spacy.training import Example
from spacy.util import registry

from ..targets.token_extension import PREFIX


@registry.scorers("spacy_sparsecrf.token_scorer.v1")  # type: ignore[untyped-decorator]
def make_token_scorer(attr: str) -> Callable[..., dict[str, Any]]:
    """Create a scorer of an attribute of tokens: `name_acc` is its accuracy.

    attr: "_.name", an extension attribute. Tokens whose gold value is None or "" do not count.
    """
    name = attr.removeprefix(PREFIX)

    def value(token: Token, _: str) -> str | None:
        return token._.get(name) or None

    def score(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        return Scorer.score_token_attr(examples, name, getter=value, missing_values={None, ""})

    return score
