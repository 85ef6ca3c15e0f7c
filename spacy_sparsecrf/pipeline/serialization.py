"""Files of a component: `cfg`, `model`, and optionally `names` and `clusters`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import srsly
from spacy.language import Language

from ..errors import Errors, SparseCRFError, Warnings, warn
from ..features.attributes import OF_WORDS
from ..features.classes import WordClasses, pack, unpack
from ..features.featurizer import Featurizer
from ..model.model import CRFModel
from ..model.names import Names, read_feature_parts
from ..targets.base import Target
from ..targets.spans import SpanTarget
from .settings import Setup

FORMAT = 1  # of `cfg`; a model file has its own
CFG, MODEL, NAMES, CLUSTERS = PARTS = "cfg", "model", "names", "clusters"
TEMPLATES, SCHEME = "templates", "scheme"
SETTING = "the directory that the pipeline is saved to"
INIT_WEIGHTS = "[initialize.components.{name}] init_weights"
PRIOR = "[components.{name}.learning] prior"
HAS_CLUSTERS = "has_clusters"


def new_cfg() -> dict[str, Any]:
    """Return `cfg` before training, without learnt values."""
    return {"format": FORMAT, "labels": [], "sequences": None}


def check_loaded(
    setup: Setup, cfg: dict[str, Any], model: CRFModel, clusters: bytes, exclude: Iterable[str]
) -> None:
    """Check a loaded component, except for excluded parts, and restore learnt values of features.

    clusters: output of `clusters_to_bytes`, or nothing.
    RAISES: SparseCRFError for a newer format, for a `cfg` and a model that do not match, for
        settings that do not fit the labels, for templates that differ from training, and for
        damaged word classes.
    """
    name, labels = setup.name, tuple(cfg["labels"])
    if cfg["format"] > FORMAT:
        raise SparseCRFError(Errors.SC210.format(name=name, found=cfg["format"], known=FORMAT))
    if {"cfg", "model"}.isdisjoint(exclude) and labels != model.labels:
        raise SparseCRFError(Errors.SC211.format(name=name, cfg=labels, model=model.labels))
    has_first, folds = model.first is not None, setup.settings.learning.stack.folds
    if has_first != (folds > 0) and (has_first or model.n_active) and "model" not in exclude:
        raise SparseCRFError(Errors.SC415.format(name=name))
    if labels:
        setup.valid_transitions(labels)
    features: object = setup.features
    if "cfg" not in exclude and cfg.get(TEMPLATES, "") not in ("", digest_of(features)):
        raise SparseCRFError(Errors.SC225.format(name=name))
    if "cfg" not in exclude:
        _check_scheme(setup.name, setup.target, cfg, "cfg")
    learnt = cfg.get("features", {})
    if cfg.get(HAS_CLUSTERS) and not clusters and {"cfg", CLUSTERS}.isdisjoint(exclude):
        reason = f"the file `{CLUSTERS}` with word classes or labels of words is missing"
        raise SparseCRFError(Errors.SC137.format(reason=reason))
    if clusters and isinstance(learnt, dict):
        learnt = {**learnt, CLUSTERS: unpack(clusters)}
    if isinstance(features, Learning) and learnt:
        features.restore(learnt)


def digest_of(features: object) -> str:
    """Return a digest of templates, independent of their order; "" without templates."""
    if not isinstance(features, Featurizer):
        return ""
    text = "\n".join(sorted(features.written_out))
    # spaCy doubles dollar signs each time that it saves a config.
    text = re.sub(r"\$+", "$", text)
    return blake2b(text.encode("utf8", "surrogatepass"), digest_size=8).hexdigest()


def write_out_sets(features: object, nlp: Language | None, name: str) -> None:
    """Replace template sets in the config of a pipeline by their templates.

    A later version may change the templates of a set; the saved pipeline keeps the templates of its
    training. features: of the component `name` of nlp; nlp: None to do nothing.
    """
    if nlp is None or not isinstance(features, Featurizer) or name not in nlp.component_names:
        return
    block = nlp.get_pipe_config(name).get("features", {})
    if [*features.templates] != features.written_out and "templates" in block:
        block["templates"] = [*features.written_out]


def clusters_to_bytes(features: object, names: Names, model: CRFModel) -> bytes:
    """Serialise the word classes of features, if any, pruned to classes that the model uses."""
    if not isinstance(features, Featurizer) or CLUSTERS not in features.learnt:
        return b""
    keys = np.concatenate(model.keys).tolist()
    nameless = sum(key not in names for key in keys) if features.prunes else 0
    if nameless:
        warn(Warnings.SCW211.format(n=nameless))
    if not features.prunes or nameless or not keys:
        return pack(features.learnt[CLUSTERS])
    return pack(
        features.pruned_classes(part for key in keys for part in read_feature_parts(names[key]))
    )


def read_part(path: str | Path, part: str) -> bytes:
    """Read a file of a component; empty if there is none."""
    file = Path(path) / part
    return file.read_bytes() if file.is_file() else b""


# Weights of an earlier training run, to continue from


def scheme_of(target: Target) -> str:
    """Return the labelling scheme of spans; "" for other targets."""
    return target.scheme.name if isinstance(target, SpanTarget) else ""


def _check_scheme(name: str, target: Target, cfg: Mapping[str, Any], source: object) -> None:
    """Refuse weights of another scheme, in which equal labels differ. RAISES: SparseCRFError."""
    trained, given = cfg.get(SCHEME, ""), scheme_of(target)
    if trained and given and trained != given:
        values = {"name": name, "source": source, "trained": trained, "given": given}
        raise SparseCRFError(Errors.SC418.format(**values))


def load_weights(
    path: str | Path | None, setup: Setup, key: str = INIT_WEIGHTS
) -> tuple[CRFModel | None, Names]:
    """Load a model of an earlier training run, and the names next to it.

    path: a saved pipeline that has a component of this name, the directory of one component,
        or a component's file `model`; None or "" for no model and no names.
    setup: of the component; key: of the setting, for messages.
    RAISES: SparseCRFError if there is no such file, it is not a model, or its labels have another
        scheme.
    """
    if not path:
        return None, Names()
    file = _find(Path(path), setup.name, key)
    features: object = setup.features
    if (saved := file.with_name("cfg")).is_file():
        cfg = srsly.read_json(saved)
        _check_scheme(setup.name, setup.target, cfg, path)
        if cfg.get(TEMPLATES, "") not in ("", digest_of(features)):
            warn(
                Warnings.SCW222.format(name=setup.name, key=key.format(name=setup.name), path=path)
            )
    return CRFModel().from_bytes(file.read_bytes()), Names(read_part(file.parent, NAMES))


def _word_labels(path: str | Path | None, setup: Setup, key: str) -> list[WordClasses]:
    """Return the labels of words in an earlier run, if any. Arguments: see `load_weights`."""
    features: Any = setup.features
    reads = path and features.reads_word_labels
    data = read_part(_find(Path(path), setup.name, key).parent, CLUSTERS) if path and reads else b""
    found = unpack(data).get(OF_WORDS) if data else None
    return [] if found is None else [found]


def labels_of(*models: CRFModel | None) -> tuple[str, ...]:
    """Return the labels of some models, each once."""
    every = (label for model in models if model is not None for label in model.labels)
    return tuple(dict.fromkeys(every))


def _find(path: Path, name: str, key: str) -> Path:
    tried = [path, path / "model", path / name / "model"]
    for candidate in tried:
        if candidate.is_file():
            return candidate
    shown = ", ".join(map(str, tried))
    raise SparseCRFError(
        Errors.SC207.format(name=name, key=key.format(name=name), path=path, tried=shown)
    )


# Values that features learn before training, for example phrases from files


@runtime_checkable
class Learning(Protocol):
    """Features that learn something before training; see `Featurizer`."""

    @property
    def learnt(self) -> dict[str, Any]:
        """The learnt values, JSON-able except for `clusters`."""

    def initialize(self, nlp: Language | None = None) -> None:
        """Learn again."""

    def restore(self, learnt: dict[str, Any]) -> None:
        """Restore learnt values."""


@contextmanager
def renewed(setup: Setup, nlp: Language | None, init_weights: str | Path | None) -> Iterator[None]:
    """Let features learn again, and write out template sets; restore features if the body fails.

    The labels that words had in an earlier run, see `load_weights`, are kept for other words.
    """
    features: object = setup.features
    if not isinstance(features, Learning):
        yield
        return
    before, prior = features.learnt, setup.settings.learning.prior
    if isinstance(features, Featurizer):
        features.earlier = [
            *_word_labels(init_weights, setup, INIT_WEIGHTS),
            *_word_labels(prior, setup, PRIOR),
        ]
    features.initialize(nlp)
    try:
        yield
    except BaseException:
        features.restore(before)
        raise
    write_out_sets(features, nlp, setup.name)


def learnt_cfg(
    setup: Setup, labels: Sequence[str], cut: str | None, shares: Mapping[str, float]
) -> dict[str, Any]:
    """Return `cfg` after reading a corpus; empty values are left out.

    setup: learnt values of its features, except for word classes, which have a file, a digest of
    their templates and the scheme of its target are stored; cut: division of Docs into sequences;
    shares: share of the training tokens with a value, by attribute.
    """
    features: object = setup.features
    learnt = features.learnt if isinstance(features, Learning) else {}
    found = {
        "features": {key: value for key, value in learnt.items() if key != CLUSTERS},
        "shares": dict(shares),
        TEMPLATES: digest_of(features),
        SCHEME: scheme_of(setup.target),
        HAS_CLUSTERS: isinstance(features, Featurizer) and CLUSTERS in learnt,
    }
    kept = {key: value for key, value in found.items() if value}
    return {**new_cfg(), "labels": list(labels), "sequences": cut, **kept}
