"""Import paths of earlier versions."""

import pickle
from importlib import import_module

import pytest

from spacy_sparsecrf.old_paths import MODULES, NAMES, PACKAGE

# Paths that were documented, are named by entry points, or occur in users' files.
PUBLIC = {
    "SparseCRF": "pipeline.component.SparseCRFPipe",
    "cluster.engine.Ray": "distributed.ray_engine.Ray",
    "convert.columns.read_columns": "interop.columns.read_columns",
    "corpus.graphs.GraphBuilder": "graphs.encoded.GraphBuilder",
    "features.patterns.featurizer.WapitiPatterns": "interop.patterns.featurizer.WapitiPatterns",
    "loss.field.Field": "graphs.graph_inference.GraphInference",
    "model.explanation.DocExplanation": "analysis.explanation.DocExplanation",
    "pipeline.calibration.calibrate": "analysis.calibration.calibrate",
    "pipeline.component.SparseCRF": "pipeline.component.SparseCRFPipe",
    "pipeline.path.Point": "analysis.path.PathPoint",
    "pipeline.settings.Settings": "pipeline.settings.ComponentSettings",
    "sklearn.crfsuite.CRF": "interop.sklearn.crfsuite.CRF",
    "sklearn.estimator.Settings": "interop.sklearn.estimator.EstimatorSettings",
    "solvers.base.needs": "solvers.base.requirements",
    "solvers.bcd.BCD": "solvers.bcd.bcd.BCD",
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
