"""Scorers that spaCy lacks."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from spacy.scorer import PRFScore, Scorer
from spacy.tokens import Token
from spacy.training import Example
from spacy.util import registry

from .targets.token_attribute import OUTSIDE_LABEL, PREFIX, TOKEN_ATTR

DEFAULT_ATTR = "tag"
TOKEN_SCORER = "spacy_sparsecrf.token_scorer.v1"


@registry.scorers(TOKEN_SCORER)  # type: ignore[untyped-decorator]
def make_token_scorer(attr: str = "") -> Callable[..., dict[str, Any]]:
    """Create a scorer of the accuracy of a token attribute: `tag_acc`, `pos_acc`, ...

    attr: "tag", "pos", "morph", which is scored by feature too, or "_.name", whose score is
        `name_acc`; default: the attribute that the component's target learns, see
        `Target.scoring`, and no score if it names none. Tokens whose gold value is None or "" do
        not count. If the target has an outside label, also the precision, recall and F of the
        others: `tag_p`, `tag_r`, `tag_f`, ...
    """
    return partial(_score, attr)


def _score(attr: str, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score an attribute, see `make_token_scorer`; a function of the module can be pickled."""
    scored, outside = attr or kwargs.get(TOKEN_ATTR, ""), kwargs.get(OUTSIDE_LABEL, "")
    if not scored:
        return {}
    examples, name = [*examples], scored.removeprefix(PREFIX)
    read: dict[str, Any] = {}
    if scored == "morph":
        read = {"getter": _morphology_key}
    elif scored.startswith(PREFIX):
        read = {"getter": partial(_label, scored), "missing_values": {""}}
    scores: dict[str, Any] = _score_others(examples, scored, outside) if outside else {}
    scores |= Scorer.score_token_attr(examples, name, **read)
    if scored == "morph":
        # Feature by feature too, as spaCy's morphologizer does.
        scores |= Scorer.score_token_attr_per_feat(examples, name, **read)
    return scores


def _score_others(examples: Iterable[Example], attr: str, outside: str) -> dict[str, float]:
    """Score the labels of tokens but one: precision, recall and F."""
    score, skipped = PRFScore(), {"", outside}
    for example in examples:
        gold, aligned = [_label(attr, token) for token in example.reference], example.alignment.x2y
        predicted = {
            (int(aligned[token.i][0]), _label(attr, token))
            for token in example.predicted
            if aligned.lengths[token.i] == 1 and not token.is_space
        }
        score.score_set(
            {(i, label) for i, label in predicted if gold[i] and label not in skipped},
            {(i, label) for i, label in enumerate(gold) if label not in skipped},
        )
    return {f"{attr.removeprefix(PREFIX)}_{key}": x for key, x in score.to_dict().items()}


def _label(attr: str, token: Token, _: str = "") -> str:
    """Return the value of an attribute as text, "" for none."""
    if attr.startswith(PREFIX):
        return token._.get(attr.removeprefix(PREFIX)) or ""
    return (
        token.vocab.strings[_morphology_key(token)]
        if attr == "morph"
        else getattr(token, f"{attr}_")
    )


def _morphology_key(token: Any, _: str = "") -> int:
    key: int = token.morph.key
    return key
