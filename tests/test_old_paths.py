"""Import paths of earlier versions."""

import pickle
import subprocess
import sys
from importlib import import_module

import pytest

from spacy_sparsecrf.old_paths import MODULES, NAMES, PACKAGE

# Paths that were documented, named by entry points, or are in files that users have.
PUBLIC = {
    "SparseCRF": "pipeline.component.SparseCRFPipe",
    "cluster.engine.Ray": "distributed.ray_engine.Ray",
    "convert.columns.read_columns": "interop.columns.read_columns",
    "convert.columns.read_lines": "cli.files.read_lines",
    "convert.docs.read_docs": "interop.docs.read_docs",
    "convert.importing.import_model": "interop.importing.import_model",
    "convert.models.read_model": "interop.external_models.read_model",
    "corpus.graphs.GraphBuilder": "graphs.encoded.GraphBuilder",
    "corpus.graphs.Inference": "pipeline.graph_settings.Inference",
    "corpus.graphs.Observed": "graphs.encoded.Observed",
    "features.patterns.featurizer.CRFPPTemplates": "interop.patterns.featurizer.CRFPPTemplates",
    "features.patterns.featurizer.WapitiPatterns": "interop.patterns.featurizer.WapitiPatterns",
    "kernels.beliefs.Potentials": "graphs.belief_propagation.GraphPotentials",
    "loss.field.Field": "graphs.graph_inference.GraphInference",
    "loss.graph.GraphLoss": "graphs.loss.GraphLoss",
    "model.explanation.DocExplanation": "analysis.explanation.DocExplanation",
    "model.patching.patch": "analysis.edit_weights.patch",
    "pipeline.calibration.calibrate": "analysis.calibration.calibrate",
    "pipeline.links.Edge": "pipeline.graph_settings.Edge",
    "pipeline.mistakes.find_mistakes": "analysis.error_analysis.find_mistakes",
    "pipeline.path.PipelinePath": "analysis.path.PipelinePath",
    "pipeline.path.Point": "analysis.path.PathPoint",
    "pipeline.component.SparseCRF": "pipeline.component.SparseCRFPipe",
    "pipeline.settings.Settings": "pipeline.settings.ComponentSettings",
    "sklearn.crfsuite.CRF": "interop.sklearn.crfsuite.CRF",
    "sklearn.estimator.Settings": "interop.sklearn.estimator.EstimatorSettings",
    "sklearn.estimator.SparseCRF": "interop.sklearn.estimator.SparseCRF",
    "sklearn.pipes.make_pipe": "interop.sklearn.pipes.make_pipe",
    "solvers.base.needs": "solvers.base.requirements",
    "solvers.bcd.BCD": "solvers.bcd.bcd.BCD",
    "solvers.gis.GIS": "solvers.gis.gis.GIS",
    "solvers.mixing.Pass": "solvers.parameter_mixing.Pass",
    "solvers.newton_cg.NewtonCG": "solvers.newton.newton_cg.NewtonCG",
    "solvers.oeg.OEG": "solvers.oeg.oeg.OEG",
    "solvers.orthant_newton.OrthantNewton": "solvers.newton.orthant_newton.OrthantNewton",
    "solvers.sag.SAG": "solvers.sag.sag.SAG",
    "solvers.scgis.SCGIS": "solvers.gis.scgis.SCGIS",
    "training.path.follow": "analysis.regularization_path.follow",
    "writing.write_files": "atomic_write.write_files",
}


def attribute(path: str):
    module, _, name = f"{PACKAGE}.{path}".rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize("old", PUBLIC)
def test_old_paths_work_with_a_warning(old: str):
    with pytest.warns(DeprecationWarning, match=f"{PACKAGE}.{old} is deprecated: import"):
        found = attribute(old)
    assert found is attribute(PUBLIC[old])


def test_all_that_has_moved_is_there():
    for new in MODULES.values():
        import_module(f"{PACKAGE}.{new}")
    for new in NAMES.values():
        attribute(new)


@pytest.mark.parametrize("name", ["convert.nothing", "nothing", "cluster.engine.Nothing"])
def test_other_paths_are_errors(name: str):
    with pytest.raises((ImportError, AttributeError)):
        attribute(f"{name}.x")


def test_old_paths_are_found_by_pickle():
    data = b"cspacy_sparsecrf.sklearn.crfsuite\nCRF\n."
    with pytest.warns(DeprecationWarning, match="interop"):
        assert pickle.loads(data) is attribute("interop.sklearn.crfsuite.CRF")  # noqa: S301


def test_an_old_path_is_imported_by_a_statement():
    code = "from spacy_sparsecrf.convert.schemes import read_spans; import spacy_sparsecrf.cluster"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
