"""Public import paths of earlier versions, which still work with a DeprecationWarning."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from warnings import warn

PACKAGE = __name__.rpartition(".")[0]

# Modules that have moved. A module of a moved package keeps its name unless it has its own entry.
MODULES = {
    "cluster": "distributed",
    "cluster.engine": "distributed.ray_engine",
    "convert": "interop",
    "convert.models": "interop.external_models",
    "corpus.graphs": "graphs.encoded",
    "decoding.legal": "decoding.transitions",
    "features.foreign": "interop.external_features",
    "features.patterns": "interop.patterns",
    "kernels.beliefs": "graphs.belief_propagation",
    "loss.field": "graphs.graph_inference",
    "loss.graph": "graphs.loss",
    "model.explanation": "analysis.explanation",
    "model.patching": "analysis.edit_weights",
    "pipeline.calibration": "analysis.calibration",
    "pipeline.links": "graphs.edges",
    "pipeline.mistakes": "analysis.error_analysis",
    "pipeline.path": "analysis.path",
    **{
        f"sklearn.{name}": f"interop.sklearn.{name}"
        for name in ("attributes", "crfsuite", "encoding", "estimator", "pipes")
    },
    "solvers.mixing": "solvers.parameter_mixing",
    "solvers.newton_cg": "solvers.newton.newton_cg",
    "solvers.orthant_newton": "solvers.newton.orthant_newton",
    "solvers.scgis": "solvers.gis.scgis",
    "training.path": "analysis.regularization_path",
    "writing": "atomic_write",
}

# Names that were moved or renamed, by their path with the module's new name.
NAMES = {
    "SparseCRF": "pipeline.component.SparseCRFPipe",
    "analysis.explanation.TestWeight": "analysis.explanation.FeatureWeight",
    "analysis.path.Point": "analysis.path.PathPoint",
    "graphs.belief_propagation.Potentials": "graphs.belief_propagation.GraphPotentials",
    "graphs.edges.Edge": "pipeline.graph_settings.Edge",
    "graphs.edges.LinkRecord": "graphs.component.LinkRecord",
    "graphs.edges.parse": "pipeline.graph_settings.parse_edges",
    "graphs.encoded.Inference": "pipeline.graph_settings.Inference",
    "graphs.encoded.Rows": "graphs.encoded.FeatureRows",
    "graphs.graph_inference.Field": "graphs.graph_inference.GraphInference",
    "interop.columns.read_lines": "cli.files.read_lines",
    "interop.docs.unpack": "cli.files.unpack",
    "interop.schemes.Scheme": "interop.schemes.ColumnScheme",
    "interop.sklearn.estimator.Settings": "interop.sklearn.estimator.EstimatorSettings",
    "pipeline.component.SparseCRF": "pipeline.component.SparseCRFPipe",
    "pipeline.settings.Settings": "pipeline.settings.ComponentSettings",
    **{
        f"solvers.{name.lower()}.{name}": f"solvers.{name.lower()}.{name.lower()}.{name}"
        for name in ("BCD", "GIS", "OEG", "SAG")
    },
    "solvers.base.lacks": "solvers.base.unsupported",
    "solvers.base.needs": "solvers.base.requirements",
    "solvers.base.refuse": "solvers.base.check_supported",
}


def serve_old_names(module: str, new: str = "") -> None:
    """Make a module serve names by their earlier paths, with a DeprecationWarning.

    new: the module that now defines all of its names; "" if only some of its names have moved.
    """
    # Not a `def` statement: type checkers would then accept any name.
    vars(sys.modules[module])["__getattr__"] = lambda name: find_old_name(module, name, new)


def find_old_name(module: str, name: str, new: str = "") -> Any:
    """Return the object that a module had under a name of earlier versions; warn its user.

    new: see `serve_old_names`. RAISES: AttributeError for other names.
    """
    path = f"{new or module}.{name}".removeprefix(f"{PACKAGE}.")
    found = NAMES.get(path, new and path)
    if not found or name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    owner, _, new_name = found.rpartition(".")
    value = getattr(import_module(f"{PACKAGE}.{owner}"), new_name)
    message = f"{module}.{name} is deprecated: import {PACKAGE}.{found} instead"
    warn(message, DeprecationWarning, stacklevel=3)
    return value


class OldPaths(MetaPathFinder, Loader):
    """Finds modules by their earlier paths. Each looks up its names in the new module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that has moved; None for any other."""
        top, _, old = fullname.partition(".")
        package, _, name = old.rpartition(".")
        moved = MODULES.get(package)
        new = MODULES.get(old, f"{moved}.{name}" if moved else None)
        if top != PACKAGE or new is None:
            return None
        return ModuleSpec(fullname, self, loader_state=new, is_package=old in MODULES)

    def exec_module(self, module: ModuleType) -> None:
        """Make a module look up its names in the new module."""
        assert module.__spec__ is not None
        serve_old_names(module.__name__, module.__spec__.loader_state)


def install() -> None:
    """Enable imports of modules by their earlier paths."""
    if not any(type(finder).__name__ == OldPaths.__name__ for finder in sys.meta_path):
        sys.meta_path.append(OldPaths())
