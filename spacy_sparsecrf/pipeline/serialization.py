"""Files of a component: `cfg`, `model`, and optionally `names` and `clusters`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import srsly
from spacy.language import Language

from ..errors import Errors, SparseCRFError, Warnings, warn
from ..features.attributes import OF_WORDS
from ..features.classes import WordClasses, pack, unpack
from ..features.featurizer import Featurizer, PlanFeaturizer
from ..model.model import CRFModel
from ..model.names import Names, read_feature_parts
from ..targets.base import Target
from ..targets.spans import SpanTarget
from .data_checks import DataChecks
from .settings import Setup

FORMAT = 1  # of `cfg`; a model file has its own
CFG, MODEL, NAMES, CLUSTERS = PARTS = "cfg", "model", "names", "clusters"
TEMPLATES, SCHEME = "templates", "scheme"
SETTING = "the directory that the pipeline is saved to"
INIT_WEIGHTS = "[initialize.components.{name}] init_weights"
PRIOR = "[components.{name}.learning] prior"
HAS_CLUSTERS = "has_clusters"


NEW_CFG: dict[str, Any] = {"format": FORMAT, "labels": [], "sentences": False}
"""The content of `cfg` before training, without learnt values."""


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
    features: object = setup.features
    has_first, reads = model.first is not None, bool(getattr(features, "stacked", ()))
    if has_first != reads and (has_first or model.n_active) and "model" not in exclude:
        raise SparseCRFError(Errors.SC415.format(name=name))
    if labels:
        setup.valid_transitions(labels)
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
    if isinstance(features, PlanFeaturizer) and learnt:
        features.restore(learnt)


def digest_of(features: object) -> str:
    """Return a digest of templates, independent of their order; "" without templates."""
    if not isinstance(features, Featurizer):
        return ""
    text = "\n".join(sorted(features.written_out))
    # spaCy doubles dollar signs each time that it saves a config.
    text = re.sub(r"\$+", "$", text)
    return blake2b(text.encode("utf8", "surrogatepass"), digest_size=8).hexdigest()


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


class Earlier(NamedTuple):
    """Weights of earlier training runs, and what was saved with them.

    init, prior: the models of `init_weights` and of the setting `prior`, or None; labels: of both;
    names: of their features, or None; word_labels: labels of words, if features read them.
    """

    init: CRFModel | None = None
    prior: CRFModel | None = None
    labels: tuple[str, ...] = ()
    names: Names | None = None
    word_labels: Sequence[WordClasses] = ()


def load_earlier(setup: Setup, init_weights: str | Path | None) -> Earlier:
    """Load the weights that a training run continues from, or that are its prior.

    setup: of the component; init_weights: path, as the setting `prior`, of a saved pipeline that
        has a component of this name, of the directory of one component, or of a component's file
        `model`; None or "" for none.
    RAISES: SparseCRFError if there is no such file, it is not a model, or its labels have another
        scheme.
    """
    models: dict[str, CRFModel] = {}
    prior = setup.settings.learning.prior
    if not (init_weights or prior):
        return Earlier()
    labels, names, word_labels = dict[str, None](), Names(), list[WordClasses]()
    features: Any = setup.features
    for path, key in ((prior, PRIOR), (init_weights, INIT_WEIGHTS)):
        if not path:
            continue
        file = _find(Path(path), setup.name, key.format(name=setup.name))
        if (saved := file.with_name(CFG)).is_file():
            cfg = srsly.read_json(saved)
            _check_scheme(setup.name, setup.target, cfg, path)
            if cfg.get(TEMPLATES, "") not in ("", digest_of(features)):
                where = key.format(name=setup.name)
                warn(Warnings.SCW222.format(name=setup.name, key=where, path=path))
        models[key] = CRFModel().from_bytes(file.read_bytes())
        labels |= dict.fromkeys(models[key].labels)
        names.add(Names(read_part(file.parent, NAMES)).by_hash())
        classes = read_part(file.parent, CLUSTERS)
        if classes and getattr(features, "reads_word_labels", False):
            own = unpack(classes).get(OF_WORDS)
            word_labels += [] if own is None else [own]
    found = models.get(INIT_WEIGHTS), models.get(PRIOR)
    return Earlier(*found, tuple(labels), names, word_labels)


def _find(path: Path, name: str, key: str) -> Path:
    """Return the file `model` of a path; key: the setting of the path."""
    tried = [path, path / MODEL, path / name / MODEL]
    for candidate in tried:
        if candidate.is_file():
            return candidate
    shown = ", ".join(map(str, tried))
    raise SparseCRFError(Errors.SC207.format(name=name, key=key, path=path, tried=shown))


def _scheme_of(target: Target) -> str:
    """Return the labelling scheme of spans; "" for other targets."""
    return target.scheme.name if isinstance(target, SpanTarget) else ""


def _check_scheme(name: str, target: Target, cfg: Mapping[str, Any], source: object) -> None:
    """Refuse weights of another scheme, in which equal labels differ. RAISES: SparseCRFError."""
    trained, given = cfg.get(SCHEME, ""), _scheme_of(target)
    if trained and given and trained != given:
        values = {"name": name, "source": source, "trained": trained, "given": given}
        raise SparseCRFError(Errors.SC418.format(**values))


# Values that features learn before training, for example phrases from files


@contextmanager
def renewed(setup: Setup, nlp: Language | None, earlier: Earlier) -> Iterator[None]:
    """Let features learn again; restore them if the body fails.

    Template sets in the config of the pipeline are replaced by their templates: a later version may
    change the templates of a set, but the saved pipeline keeps the templates of its training.

    earlier: has the labels of words that this corpus lacks.
    """
    features: Any = setup.features
    if not isinstance(features, PlanFeaturizer):
        yield
        return
    before = features.learnt
    if isinstance(features, Featurizer):
        features.earlier = [*earlier.word_labels]
    features.initialize(nlp)
    try:
        yield
    except BaseException:
        features.restore(before)
        raise
    if nlp is not None and setup.name in nlp.component_names:
        block = nlp.get_pipe_config(setup.name).get("features", {})
        if isinstance(features, Featurizer) and "templates" in block:
            block["templates"] = [*features.written_out]


def learnt_cfg(setup: Setup, labels: Sequence[str], checks: DataChecks) -> dict[str, Any]:
    """Return `cfg` after reading a corpus; empty values are left out.

    setup: learnt values of its features, except for word classes, which have a file, a digest of
    their templates and the scheme of its target are stored; checks: of the corpus.
    """
    features: object = setup.features
    learnt = dict(features.learnt) if isinstance(features, PlanFeaturizer) else {}
    found = {
        HAS_CLUSTERS: learnt.pop(CLUSTERS, None) is not None,
        "features": learnt,
        "shares": checks.shares if checks.values else {},
        TEMPLATES: digest_of(features),
        SCHEME: _scheme_of(setup.target),
    }
    own = {**NEW_CFG, "labels": list(labels), "sentences": checks.has_sentences}
    return own | {key: value for key, value in found.items() if value}
