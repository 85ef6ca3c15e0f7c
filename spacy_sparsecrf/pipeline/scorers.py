"""Scorers that spaCy lacks, and checks of the scores that a config asks for."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Token
from spacy.training import Example
from spacy.util import registry

from ..errors import Errors, SparseCRFError, Warnings, warn
from ..targets.base import Target
from ..targets.entities import Entities
from ..targets.token_attribute import PREFIX, TOKEN_ATTR
from .annotations import Annotations
from .batchers import block_of, names_corpus
from .settings import Setup

DEFAULT_ATTR = "tag"
DEFAULT_SCORE = "tag_acc"
TOKEN_SCORER = "spacy_sparsecrf.token_scorer.v1"
# Scorers whose score names are known; the names of a user's scorer are not.
_KNOWN_SCORERS = (TOKEN_SCORER, "spacy.tagger_scorer.v1", "spacy.morphologizer_scorer.v1")
_READER = "spacy_sparsecrf.AnnotatedCorpus.v1"
_NO_VALUE = {None, ""}


@registry.scorers(TOKEN_SCORER)  # type: ignore[untyped-decorator]
def make_token_scorer(attr: str = "") -> Callable[..., dict[str, Any]]:
    """Create a scorer of the accuracy of a token attribute: `tag_acc`, `pos_acc`, ...

    attr: "tag", "pos", "morph", which is scored by feature too, or "_.name", whose score is
        `name_acc`; default: the attribute that the component's target learns. Tokens whose gold
        value is None or "" do not count.
    """
    return partial(_score, attr)


def _score(attr: str, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score an attribute, see `make_token_scorer`; a function of the module can be pickled."""
    learnt = kwargs.pop(TOKEN_ATTR, DEFAULT_ATTR)
    scored = attr or learnt
    if scored == "morph":
        return _score_morphology(examples)
    if not scored.startswith(PREFIX):
        return Scorer.score_token_attr(examples, scored, **kwargs)
    name, missing = scored.removeprefix(PREFIX), _NO_VALUE
    return Scorer.score_token_attr(examples, name, getter=_extension, missing_values=missing)


def _score_morphology(examples: Iterable[Example]) -> dict[str, Any]:
    """Score whole strings of features, and features one by one, as spaCy's morphologizer does."""
    examples = list(examples)
    whole = Scorer.score_token_attr(examples, "morph", getter=_morphology_key)
    return {**whole, **Scorer.score_token_attr_per_feat(examples, "morph", getter=_morphology_key)}


def _extension(token: Token, name: str) -> str | None:
    return token._.get(name) or None


def _morphology_key(token: Token, name: str) -> int:
    key: int = getattr(token, name).key
    return key


def check_scores(setup: Setup, nlp: Language | None) -> None:
    """Check that scores in training are those of the component; see below. RAISES: SparseCRFError.

    nlp: the pipeline of the component, or None. A pipeline whose config names no training corpus is
        trained in a user's own loop.
    """
    _check_weights(setup.name, setup.target, nlp)
    _warn_of_copied(setup, nlp)


def _check_weights(name: str, target: Target, nlp: Language | None) -> None:
    """Reject a config that weights the accuracy of tags if another attribute is learnt: it stays 0.

    Warn if a target does not say what it learns.

    The default score weights of a factory are fixed and cannot depend on its target.

    RAISES: SparseCRFError with the lines to add to the config.
    """
    is_own = TOKEN_ATTR not in target.scoring()
    attr = target.scoring().get(TOKEN_ATTR, "")
    if nlp is None or attr == DEFAULT_ATTR or name not in nlp.component_names:
        return
    config = nlp.config.interpolate()
    scorer = config["components"][name].get("scorer") or {}
    if scorer.get("@scorers") not in _KNOWN_SCORERS or not names_corpus(nlp):
        return
    weights, own = config["training"]["score_weights"], f"{attr.removeprefix(PREFIX)}_acc"
    is_lost = weights.get(DEFAULT_SCORE) and not weights.get(own)
    if is_lost and not any(_scores_tags(nlp, other) for other in nlp.component_names):
        values = {"name": name, "attr": attr, "unfit": DEFAULT_SCORE, "own": own}
        if is_own:
            warn(Warnings.SCW228.format(name=name, unfit=DEFAULT_SCORE))
            return
        raise SparseCRFError(Errors.SC219.format(**values))


def _warn_of_copied(setup: Setup, nlp: Language | None) -> None:
    """Warn if development Docs get gold annotation that the component predicts, and would keep."""
    if nlp is None or setup.settings.overwrite or not names_corpus(nlp):
        return
    block = block_of(nlp, "dev_corpus")
    if block.get("@readers") != _READER:
        return
    copied, scored = Annotations.parse(block.get("annotations", ())), setup.target.scoring()
    attr, key = scored.get(TOKEN_ATTR, ""), scored.get("spans_key")
    of_spans = key is not None and (copied.groups is None or key in copied.groups)
    of_ents = copied.ents and isinstance(setup.target, Entities)
    extensions = {f"{PREFIX}{name}" for name in copied.extensions}
    if of_ents or of_spans or attr.upper() in copied.attributes or attr in extensions:
        warn(Warnings.SCW225.format(name=setup.name))


def _scores_tags(nlp: Language, name: str) -> bool:
    """Return whether a component of a pipeline has a score of tags."""
    target = getattr(nlp.get_pipe(name), "target", None)
    if isinstance(target, Target):
        return bool(target.scoring().get(TOKEN_ATTR) == DEFAULT_ATTR)
    return DEFAULT_SCORE in (nlp.get_pipe_meta(name).default_score_weights or {})
