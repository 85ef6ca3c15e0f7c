"""Files of a component: `cfg`, `model`, and optionally `names` and `clusters`."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import srsly
from spacy.language import Language

from ..crf.model.model import CRFModel
from ..crf.model.names import Names, read_feature_parts
from ..errors import Errors, SparseCRFError, Warnings, warn
from ..schema import check_distinct, check_json, parse, reported_as
from .data_checks import DataChecks
from .features.attributes.clusters import OF_WORDS
from .features.classes import WordClasses, pack, unpack
from .features.featurizer import Featurizer, PlanFeaturizer
from .settings import Setup
from .targets.spans import SpanTarget
from .targets.target import Target

FORMAT = 2  # of `cfg`; a model file has its own
CFG, MODEL, NAMES, CLUSTERS = PARTS = "cfg", "model", "names", "clusters"
TEMPLATES, SCHEME, DIGEST = "templates", "scheme", "digest"
SETTING = "the directory that the pipeline is saved to"
INIT_WEIGHTS = "[initialize.components.{name}] init_weights"
PRIOR = "[components.{name}.learning] prior"


NEW_CFG: dict[str, Any] = {"labels": [], "sentences": False, "features": {}, "shares": {}}
NEW_CFG |= {TEMPLATES: "", SCHEME: ""}
"""The attribute `cfg` of a component before training, see `learnt_cfg`."""
_FILE = {"labels": [str], "sentences": bool, "features": dict, "shares": {str: float}}
# The file has the digest of `clusters`, and of all other values, too.
_FILE |= {TEMPLATES: str, SCHEME: str, "format": int, CLUSTERS: str, DIGEST: str}


def parts_of(features: object, cfg: Any, model: CRFModel, names: Names) -> dict[str, bytes]:
    """Return the content of the files of a component; an empty part has no file.

    The model has the digest of `cfg`, and `cfg` that of `clusters`.
    """
    clusters = clusters_to_bytes(features, names, model)
    content = {"format": FORMAT, **{key: cfg[key] for key in NEW_CFG}, CLUSTERS: _hash(clusters)}
    content[DIGEST] = _hash(json.dumps(content).encode())
    return {
        CFG: json.dumps(content, indent=2).encode(),
        MODEL: model.to_bytes(content[DIGEST]),
        NAMES: names.to_bytes(*model.keys),
        CLUSTERS: clusters,
    }


def read_cfg(data: bytes, source: object) -> dict[str, Any]:
    """Parse the file `cfg`. source: of the data, for messages.

    RAISES: SparseCRFError for a newer format, and for a file that was damaged or changed.
    """
    with reported_as(Errors.SC219, (ValueError, RecursionError), source=source):
        if not data:
            raise ValueError("it is missing or empty")
        cfg = parse(data, len(data))  # lists of phrases may be long
        version = cfg.get("format") if isinstance(cfg, dict) else None
        if type(version) is int and version > FORMAT:
            raise SparseCRFError(Errors.SC210.format(source=source, found=version, known=FORMAT))
        check_json(cfg, _FILE, "it")
        check_distinct(cfg["labels"], "its labels")
        shares, features = cfg["shares"].values(), cfg["features"]
        if CLUSTERS in features or not all(0.0 <= share <= 1.0 for share in shares):
            raise ValueError("its shares are not from 0 to 1, or its features have clusters")
        content = {key: value for key, value in cfg.items() if key != DIGEST}
        if version != FORMAT or cfg[DIGEST] != _hash(json.dumps(content).encode()):
            raise ValueError(f"its format is {version}, or its digest does not fit its content")
    return cast("dict[str, Any]", cfg)


def check_together(cfg: Any, source: Any, model: CRFModel | None, clusters: bytes | None) -> None:
    """Check that `cfg`, the model and the file `clusters`, if given, were saved together.

    source: of `cfg`, for messages. RAISES: SparseCRFError.
    """
    fits = model is None or model.cfg in ("", cfg[DIGEST])
    fits = fits and (model is None or tuple(cfg["labels"]) == model.labels)
    if not fits or (clusters is not None and _hash(clusters) != cfg[CLUSTERS]):
        raise SparseCRFError(Errors.SC211.format(source=source, part=CLUSTERS if fits else MODEL))


def load_parts(
    setup: Setup, parts: Mapping[str, bytes], cfg: dict[str, Any], model: CRFModel
) -> tuple[dict[str, Any], CRFModel, Names]:
    """Read the files of a component, and restore the learnt values of features.

    parts: the content of the files to read, empty if missing; cfg, model: of the component, which
    stay if their files are not read. RETURNS: `cfg`, the model, and names of features.
    RAISES: SparseCRFError for a newer format, damaged files, files that were not saved together,
        settings that do not fit the labels, and templates that differ from training.
    """
    name, source = setup.name, f"`cfg` of component '{setup.name}'"
    features: Any = setup.features
    clusters, saved = parts.get(CLUSTERS), None
    if CFG in parts:
        cfg = read_cfg(parts[CFG], source)
    if MODEL in parts:
        saved = model = CRFModel.from_bytes(parts[MODEL])
        has_first, reads = model.first is not None, bool(getattr(features, "stacked", ()))
        if has_first != reads and (has_first or model.n_active):
            raise SparseCRFError(Errors.SC415.format(name=name))
    if CFG in parts:
        check_together(cfg, source, saved, clusters)
        if cfg[TEMPLATES] not in ("", digest_of(features)):
            raise SparseCRFError(Errors.SC225.format(name=name))
        _check_scheme(name, setup.target, cfg, "cfg")
    if cfg["labels"]:
        setup.transitions_of(cfg["labels"])
    learnt = cfg["features"] | ({CLUSTERS: unpack(clusters)} if clusters else {})
    if isinstance(features, PlanFeaturizer) and learnt:
        features.restore(learnt)
    return {key: cfg[key] for key in NEW_CFG}, model, Names(parts.get(NAMES, b""))


def _hash(data: bytes) -> str:
    """Return a digest, which detects changes by accident or by hand."""
    return blake2b(data, digest_size=16).hexdigest()


def digest_of(features: object) -> str:
    """Return a digest of templates, independent of their order; "" without templates."""
    if not isinstance(features, Featurizer):
        return ""
    text = "\n".join(sorted(features.written_out))
    # spaCy doubles dollar signs each time that it saves a config.
    text = re.sub(r"\$+", "$", text)
    return _hash(text.encode("utf8", "surrogatepass"))


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
    parts = (part for key in keys for part in read_feature_parts(names[key]))
    return pack(features.pruned_classes(parts))


def unpack_parts(data: bytes, name: str) -> dict[str, bytes]:
    """Return the parts that `to_bytes` of component `name` packed. RAISES: SparseCRFError."""
    with reported_as(Errors.SC219, (ValueError, TypeError), source=f"data of component '{name}'"):
        parts = srsly.msgpack_loads(data)
        check_json(parts, {str: bytes}, "it")
    return {CLUSTERS: b"", **parts}


def read_part(path: str | Path, part: str) -> bytes:
    """Read a file of a component; empty if there is none. RAISES: SparseCRFError."""
    file = Path(path) / part
    with reported_as(Errors.SC219, (OSError,), source=file):
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
        models[key] = CRFModel.from_bytes(file.read_bytes())
        classes = read_part(file.parent, CLUSTERS)
        if (saved := file.with_name(CFG)).exists():
            cfg = read_cfg(read_part(file.parent, CFG), saved)
            check_together(cfg, saved, models[key], classes)
            _check_scheme(setup.name, setup.target, cfg, path)
            if cfg[TEMPLATES] not in ("", digest_of(features)):
                where = key.format(name=setup.name)
                warn(Warnings.SCW222.format(name=setup.name, key=where, path=path))
        labels |= dict.fromkeys(models[key].labels)
        names.add(Names(read_part(file.parent, NAMES)).by_hash())
        if classes and getattr(features, "reads_word_labels", False):
            of_words = unpack(classes).get(OF_WORDS)
            word_labels += [] if of_words is None else [of_words]
    return Earlier(
        init=models.get(INIT_WEIGHTS),
        prior=models.get(PRIOR),
        labels=tuple(labels),
        names=names,
        word_labels=word_labels,
    )


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
    trained, scheme = cfg[SCHEME], _scheme_of(target)
    if trained and scheme and trained != scheme:
        values = {"name": name, "source": source, "trained": trained, "given": scheme}
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
    learnt_earlier = features.learnt
    if isinstance(features, Featurizer):
        features.earlier = [*earlier.word_labels]
    features.initialize(nlp)
    try:
        yield
    except BaseException:
        features.restore(learnt_earlier)
        raise
    if nlp is not None and setup.name in nlp.component_names:
        block = nlp.get_pipe_config(setup.name).get("features", {})
        if isinstance(features, Featurizer) and "templates" in block:
            block["templates"] = [*features.written_out]


def learnt_cfg(setup: Setup, labels: Sequence[str], checks: DataChecks) -> dict[str, Any]:
    """Return `cfg` after reading a corpus.

    setup: learnt values of its features, except for word classes, which have a file, a digest of
    their templates and the scheme of its target are stored; checks: of the corpus: whether Docs had
    sentence boundaries, and `Expected.shares`.
    """
    features: object = setup.features
    learnt = features.learnt if isinstance(features, PlanFeaturizer) else {}
    return {
        "labels": list(labels),
        "sentences": checks.n["divided"] > 0,
        "features": {key: value for key, value in learnt.items() if key != CLUSTERS},
        "shares": checks.shares,
        TEMPLATES: digest_of(features),
        SCHEME: _scheme_of(setup.target),
    }
