"""The only access to internals of the package, with a fallback for each name that may move."""

import inspect
from typing import Any

SOLVERS = (
    "OWLQN RPROP NewtonCG OrthantNewton SAG OEG SGDL1 SGD AdaGrad SMD Perceptron Hybrid BCD GIS "
    "SCGIS"
).split()


def registered_solvers() -> set[str]:
    """Return names without prefix and version, such as OWLQN."""
    from spacy_sparsecrf.registry import crf_solvers

    found = set()
    for name in SOLVERS:
        try:
            crf_solvers.get(f"spacy_sparsecrf.{name}.v1")
        except Exception:
            continue
        found.add(name)
    return found


def settings_of(solver: str) -> set[str]:
    """Return the names of a solver's settings."""
    from spacy_sparsecrf.registry import crf_solvers

    return {*inspect.signature(crf_solvers.get(f"spacy_sparsecrf.{solver}.v1")).parameters}


def fitted(config: dict[str, Any]) -> dict[str, Any]:
    """Move settings that the factory does not take to the block `learning`."""
    from spacy_sparsecrf.pipeline.factories import make_sparse_crf

    known = inspect.signature(make_sparse_crf).parameters
    moved = {key: value for key, value in config.items() if key not in known}
    kept = {key: value for key, value in config.items() if key in known}
    if moved:
        kept["learning"] = {**config.get("learning", {}), **moved}
    return kept


def seeded(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """Give the warm start the seed of the solver, which it had before it was an object."""
    from spacy_sparsecrf.pipeline.settings import LearningSettings

    if "warm_start" in LearningSettings.model_fields:
        config["learning"] = {**config.get("learning", {}), "warm_start": {"seed": seed}}
    return config


def trainer_of(pipe: Any) -> Any:
    """Return the object with the training run of a component, or None."""
    for path in (
        ("_session", "training"),
        ("_state", "training"),
        ("_state", "trainer"),
        ("state", "trainer"),
    ):
        found = pipe
        for name in path:
            found = getattr(found, name, None)
        if found is not None:
            return found
    return None


def report_of(pipe: Any, loss: float) -> dict[str, Any]:
    """Return objective, gap and convergence of the last step; loss: what `update` returned."""
    trainer = trainer_of(pipe)
    report = getattr(trainer, "report", None) or getattr(trainer, "last_report", None)
    return {
        "objective": repr(float(loss)),
        "gap": repr(float(report.gap)) if report is not None else None,
        "converged": trainer is None or bool(trainer.converged),
    }


def weights_of(pipe: Any) -> list[str]:
    """Return a line for each weight, sorted: kind, feature, previous label, label, value."""
    pipe.to_bytes()  # before the redesign, this took the model from the run
    return sorted(line for line in pipe.dump() if line and not line.startswith("#"))


def code_of(error: BaseException) -> str:
    """Return the code of a coded message, such as SC308, or the name of the error."""
    text = str(error)
    return text.split("]")[0].lstrip("[") if text.startswith("[SC") else type(error).__name__
