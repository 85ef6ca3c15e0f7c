"""SCGIS: sequential conditional generalised iterative scaling, and the base class of GIS.

Minimises F(theta) = l(theta) + l1 |theta|_1 + l2 / 2 |theta|^2 of a per-position model (Goodman
2002, figure 2). A sweep moves the weights of one feature after the other, frequent features first;
without penalty

    theta_i := theta_i + log(O_i / E_i) / max_t f_i(x_t)

with E_i at the current weights, from stored scores of all tokens and labels (N Y numbers), which
are recomputed before each sweep; with penalties see `kernels.scaled_weight`. F never rises. Stops
as all solvers do (see `base`).
"""

from dataclasses import dataclass

import numpy as np

from ....errors import Errors, SparseCRFError
from ....registry import crf_solvers
from ...corpus.numbering import Floats
from ...loss.working import ChainWorkingLoss
from ...parallel import cut
from ...penalty import ElasticNet
from ..solver import BatchSolver, SolverState, StepReport, evaluate, requirements
from ..warm_start import WarmStart
from .gis_kernels import SweepTables, repetitions, scale_in_turn, token_masses


class IterativeScaling(BatchSolver[ChainWorkingLoss]):
    """Base class of iterative scaling (Goodman 2002): its requirements and checks."""

    requires = requirements("single tokens", "indicators", "complete labels", "no prior")
    linear_rate = True
    warm_start = WarmStart(epochs=6, averaged=False)

    def start(self, loss: ChainWorkingLoss, penalty: ElasticNet, theta: Floats) -> SolverState:
        """Check the objective, and evaluate the first point; see `BatchSolver.start`.

        RAISES: SparseCRFError also if labels of a sequence depend on each other.
        """
        lengths = np.diff(loss.space.lattice.offsets)
        if lengths.max(initial=0) > 1 or loss.split < len(loss.coordinates):
            raise SparseCRFError(Errors.SC340.format(solver=type(self).__name__, name="NAME"))
        return super().start(loss, penalty, theta)


@crf_solvers("spacy_sparsecrf.SCGIS.v1")
@dataclass(kw_only=True, eq=False)
class SCGIS(IterativeScaling):
    """Sequential conditional generalized iterative scaling (Goodman 2002, figure 2).

    See the module for the update. A sweep counts as one pass; the evaluation after it, for the
    report, does not. A sweep runs in one thread.

    by_feature: whether the weights of a feature move at once, with expectations at the same point;
        false: one after the other, as in the paper. No two of them are on at the same label, so
        steps are as long as those of single weights.
    """

    by_feature: bool = True

    def step(self, loss: ChainWorkingLoss, penalty: ElasticNet, state: SolverState) -> StepReport:
        """Do one sweep."""
        mass = probabilities(loss, state.theta)
        state.theta = state.theta.copy()
        self.sweep(loss, penalty, state.theta, mass=mass, total=np.ones(len(mass)))
        state.value, state.gradient = evaluate(loss, penalty, state.theta)
        return self.report(penalty, state)

    def sweep(
        self,
        loss: ChainWorkingLoss,
        penalty: ElasticNet,
        theta: Floats,
        mass: Floats,
        total: Floats,
    ) -> None:
        """Move each weight once.

        theta: [K], in and out; mass: [N, Yp], total: [N], in and out: p(y | x) is mass / total.
        """
        lattice, rows = loss.space.lattice, loss.unigram
        columns = lattice.feature_tokens
        most = np.empty(len(columns.indptr) - 1, dtype=np.int32)
        repetitions(columns.indptr, columns.indices, most)
        tables = SweepTables(
            row_features=rows.features,
            block_ptr=rows.ptr,
            block_labels=rows.places,
            col_ptr=columns.indptr,
            col_tokens=columns.indices,
            most=most,
            token_weight=lattice.token_weight,
            observed=loss.observed,
        )
        scale_in_turn(
            self.by_feature,
            tables,
            l1=penalty.l1,
            l2=penalty.l2,
            theta=theta,
            mass=mass,
            total=total,
        )


def probabilities(loss: ChainWorkingLoss, theta: Floats) -> Floats:
    """Return p(y | x) of each token of a per-position model, [N, Yp] float64, padding 0.

    theta: [K]. The workspace may have float32, so probabilities are computed from the weights.
    """
    space, lattice = loss.space, loss.space.lattice
    loss.score_bundles(theta, loss.table)
    mass = np.empty((lattice.n_tokens, space.padded))
    chunks = cut(np.ones(lattice.n_tokens, np.int64), space.limits.n_chunks)
    space.workers.map(
        token_masses,
        chunks,
        n_labels=space.n_labels,
        unigrams=loss.tables.unigrams,
        theta=theta,
        mass=mass,
    )
    return mass
