"""Scorers that spaCy lacks."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from spacy.scorer import Scorer
from spacy.tokens import Token
from spacy.training import Example
from spacy.util import registry

from .targets.token_attribute import PREFIX, TOKEN_ATTR

DEFAULT_ATTR = "tag"
TOKEN_SCORER = "spacy_sparsecrf.token_scorer.v1"
_NO_VALUE = {None, ""}


@registry.scorers(TOKEN_SCORER)  # type: ignore[untyped-decorator]
def make_token_scorer(attr: str = "") -> Callable[..., dict[str, Any]]:
    """Create a scorer of the accuracy of a token attribute: `tag_acc`, `pos_acc`, ...

    attr: "tag", "pos", "morph", which is scored by feature too, or "_.name", whose score is
        `name_acc`; default: the attribute that the component's target learns, see
        `Target.scoring`, and no score if it names none. Tokens whose gold value is None or "" do
        not count.
    """
    return partial(_score, attr)


def _score(attr: str, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score an attribute, see `make_token_scorer`; a function of the module can be pickled."""
    scored = attr or kwargs.get(TOKEN_ATTR, "")
    if not scored:
        return {}
    if scored == "morph":
        # Whole strings of features, and features one by one, as spaCy's morphologizer does.
        examples = [*examples]
        of_strings = Scorer.score_token_attr(examples, "morph", getter=_morphology_key)
        by_feature = Scorer.score_token_attr_per_feat(examples, "morph", getter=_morphology_key)
        return {**of_strings, **by_feature}
    if not scored.startswith(PREFIX):
        return Scorer.score_token_attr(examples, scored, **kwargs)
    name = scored.removeprefix(PREFIX)
    return Scorer.score_token_attr(examples, name, getter=_extension, missing_values=_NO_VALUE)


def _extension(token: Token, name: str) -> str | None:
    return token._.get(name) or None


def _morphology_key(token: Token, name: str) -> int:
    key: int = getattr(token, name).key
    return key
