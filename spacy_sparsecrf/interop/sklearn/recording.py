"""Solvers that record each of their iterations in a log."""

from dataclasses import dataclass, field, replace
from typing import Any

from ...penalty import ElasticNet
from ...solvers.base import StepReport, evaluate, smallest_subgradient
from ...solvers.owlqn import OWLQN
from ...solvers.perceptron import AveragedPerceptron
from .iterations import TrainingLog, euclidean


@dataclass(kw_only=True, eq=False)
class RecordedOWLQN(OWLQN):
    """OWL-QN that also stops by the norm of the gradient, as CRFsuite does.

    epsilon: stop if this norm is less than epsilon * max(1, norm of the weights).
    For other settings see `OWLQN`.
    """

    log: TrainingLog = field(repr=False)
    epsilon: float = 1e-5

    def step(self, loss: Any, penalty: ElasticNet, state: Any) -> StepReport:
        """Do one iteration and record it."""
        report = super().step(loss, penalty, state)
        slope = smallest_subgradient(penalty, state.theta, state.gradient)
        norm = euclidean(slope)
        small = norm < self.epsilon * max(1.0, euclidean(state.theta))
        report = replace(report, converged=report.converged or small)
        self.log.add(report, state.theta, norm)
        return report


@dataclass(kw_only=True, eq=False)
class RecordedPerceptron(AveragedPerceptron):
    """The averaged perceptron. log: records each pass, with the number of wrong labels as loss."""

    log: TrainingLog = field(repr=False)

    def step(self, loss: Any, penalty: ElasticNet, state: Any) -> StepReport:
        """Pass over all sequences once and record it.

        The CRF's loss takes as long as a pass, so it is only evaluated when the log is due.
        """
        self.visit(loss, state)
        converged = state.n_wrong == 0
        if converged or self.log.n_iterations + 1 >= self.log.due:
            state.value, state.gradient = evaluate(loss, penalty, state.theta)
        report = replace(self.report(penalty, state), converged=converged)
        self.log.add(replace(report, objective=float(state.n_wrong)), state.theta)
        return report
