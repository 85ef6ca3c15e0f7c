"""Conversion of estimators to pipeline components with the same weights.

A component reads features from Docs with templates; an estimator gets them from the user. It can
be converted if each feature is a template feature, see `interop.external_features`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from spacy.language import Language

from ...crf.model.model import CRFModel
from ...crf.model.names import ALWAYS
from ...pipeline.component import SparseCRFPipe
from ..external_features import names_of, templates_of
from ..importing import set_weights
from ..sequences import item_encoding as encoding

_OF_SPANS = ("sparse_crf_ner", "sparse_crf_spans")


def make_pipe(
    nlp: Language,
    model: CRFModel,
    attributes: Sequence[str],
    template_names: Mapping[str, str],
    factory: str,
    config: Mapping[str, Any],
) -> SparseCRFPipe:
    """Add a component with an estimator's weights to a pipeline.

    model, attributes: of the estimator; template_names: of features; factory: of the
    component; config: its block, without templates; the default scheme of spans is that of the
    labels. RETURNS: the component.
    RAISES: SparseCRFError if templates cannot express a feature, or two features have one name.
    """
    of_attributes = enumerate(names_of(attributes, template_names), start=encoding.ALWAYS + 1)
    names = {encoding.ALWAYS: ALWAYS, **dict(of_attributes)}
    features = {"templates": templates_of(model, names), **config.get("features", {})}
    config = {"model": model.kind, **config, "features": features}
    target = config.get("target", {})
    if factory in _OF_SPANS and not {"@crf_targets", "scheme"} & target.keys():
        is_biluo = any(label.startswith(("L-", "U-")) for label in model.labels)
        config["target"] = {**target, "scheme": "BILUO" if is_biluo else "IOB2"}
    pipe = cast("SparseCRFPipe", nlp.add_pipe(factory, config=config))
    set_weights(pipe, model, {key: [name] for key, name in names.items()}, "the estimator")
    return pipe
