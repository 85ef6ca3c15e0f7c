"""`import`: convert trained models of Wapiti, CRF++ and CRFsuite to pipelines."""

import json
from pathlib import Path
from typing import Annotated, Any, cast

import spacy
import typer

from ...errors import Errors, refused_option
from ...interop.importing import import_model as read
from ...interop.importing import set_weights
from ...pipeline.component import SparseCRFPipe
from ...schema import reported_as
from .common import Force, check_free, reported, with_folder
from .printing import msg

_EXAMPLE = '{"word.lower()": "lower[0]", "BOS": "lower[-1]=^1"}'


def import_model(
    source: Annotated[
        Path,
        typer.Argument(help="Model of Wapiti, of CRF++ as text (crf_learn -t), or of CRFsuite"),
    ],
    output: Annotated[Path, typer.Argument(help="Directory for the pipeline")],
    columns: Annotated[
        str, typer.Option(help="Attributes of the columns that patterns read, such as orth,tag")
    ] = "orth",
    target: Annotated[
        str, typer.Option(help="Attribute that gets the labels: tag, pos, morph or _.NAME")
    ] = "tag",
    features: Annotated[
        Path | None,
        typer.Option(help=f"JSON file from CRFsuite's features to templates': {_EXAMPLE}"),
    ] = None,
    lang: Annotated[str, typer.Option(help="Language of the pipeline")] = "xx",
    dtype: Annotated[
        str, typer.Option(help="float64, or float32 for half the size and rounded weights")
    ] = "float64",
    force: Force = False,
) -> None:
    """Convert a model of another program to a pipeline.

    It assigns the same labels to the same columns. Models of Wapiti and CRF++ contain the patterns;
    the features of CRFsuite must be expressible by templates, under any names.
    """
    with reported():
        check_free(force, output)
        names, target = [*map(str.strip, columns.split(","))], target.strip()
        imported = read(source, names, _read_names(features), dtype)
        named = imported.features.get("columns", names)
        if target in named:
            raise refused_option("target", target, "it is among --columns; name another")
        if features and "templates" not in imported.features:
            raise typer.BadParameter("--features is for models of CRFsuite; this has patterns")
        nlp = spacy.blank(lang)
        block = {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", "attr": target}
        config: dict[str, Any] = {"features": imported.features, "target": block}
        config |= {"model": imported.model.kind, "learning": {"dtype": dtype}}
        pipe = cast(SparseCRFPipe, nlp.add_pipe("sparse_crf", config=config))
        set_weights(pipe, imported.model, imported.names, str(source))
        nlp.to_disk(with_folder(output))
        if named != names:
            msg.info(f"Columns are {','.join(named)} (--columns names the attributes)")
        if imported.n_never:
            msg.warn(f"Left out {imported.n_never} features that no pattern generates")
        counts = f"{pipe.model.n_active} weights and {len(pipe.label_data)} labels"
        msg.good(f"{counts} of {source} are in {output}")


def _read_names(path: Path | None) -> dict[str, str]:
    """Read the template names of features. RAISES: SparseCRFError for an invalid file."""
    if path is None:
        return {}
    with reported_as(Errors.SC614, option="features", value=path):
        names = json.loads(path.read_text(encoding="utf-8-sig"))
        if not isinstance(names, dict) or not all(isinstance(x, str) for x in names.values()):
            raise ValueError(f"it is not a JSON object of strings, such as {_EXAMPLE}")
    return names
