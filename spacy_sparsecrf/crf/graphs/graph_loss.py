"""Negative log-likelihood of the labels of graphs, with approximate inference of log Z.

    l(theta) = sum_s w_s (log Z(x_s) - score(x_s, y_s))        (Vishwanathan 2006, equation 7)

log Z is the Bethe approximation, exact in forests, or the naive mean field, which is never above
log Z. The mean-field loss of complete labels is thus never above the negative log-likelihood, and
may fall without end once its inference is in a local optimum. Alternatively, the loss is the
negative log pseudo-likelihood (equations 13 to 15). Missing gold labels are summed over: a
*clamped* copy of their graph, with permitted labels only, has weight -w_s.
"""

from copy import copy
from typing import Any

import numpy as np

from ...errors import Errors, SparseCRFError
from ..corpus.encoded import MISSING
from ..corpus.numbering import Array, Floats, Longs, Mask
from ..corpus.ragged import row_numbers
from ..loss.chain_loss import largest
from ..loss.examples import DenseSteps
from ..loss.lattice import set_numbers, set_table
from ..loss.protocols import Violators
from ..parallel import Workers, dot
from .encoded_graphs import EncodedGraph
from .graph_inference import STEP, GraphInference, Inference, InferenceSpace, selected

LBP = Inference()
# Rounding errors of the loss, as a fraction of the score.
_ROUNDING = 1e-9


class GraphLoss(DenseSteps):
    """Value and gradient of the loss of graphs, as a function of all weights or of a working set.

    graphs: training graphs; n_labels: Y; workers: threads; inference: settings for log Z and
    marginals. theta [K] are the weights of `coordinates` [K] int64, ascending, as numbered by
    `GraphInference`; all others are zero. As an `ExampleLoss`, its examples are the graphs with
    gold labels, and all weights change at each step.
    RAISES: SparseCRFError for invalid label ids, if no gold label is known, and for
        pseudo-likelihood if some gold labels are missing.
    """

    def __init__(
        self, graphs: EncodedGraph, n_labels: int, workers: Workers, inference: Inference = LBP
    ) -> None:
        self.workers = workers
        if graphs.n_nodes and graphs.labels.max() >= n_labels:
            raise SparseCRFError(Errors.SC374.format(label=graphs.labels.max(), n=n_labels))
        n_known, _ = _counts(graphs)
        chosen = np.flatnonzero((n_known > 0) & (graphs.weights > 0.0))
        if not len(chosen):
            raise SparseCRFError(Errors.SC305)
        graphs = selected(graphs, chosen)
        self.complete: Mask = _counts(graphs)[1] == np.diff(graphs.offsets)
        incomplete = np.flatnonzero(~self.complete)
        if len(incomplete) and inference.method == "pseudo_likelihood":
            raise SparseCRFError(Errors.SC375.format(n=len(incomplete)))
        self.sequences = np.arange(len(chosen))
        self._clamped = np.full(len(chosen), -1)
        self._clamped[incomplete] = len(chosen) + np.arange(len(incomplete))
        everything = selected(graphs, np.concatenate((self.sequences, incomplete)))
        everything.weights[len(self.sequences) :] *= -1.0
        is_gold = np.append(self.complete, np.zeros(len(incomplete), np.bool_))
        is_gold = np.repeat(is_gold, np.diff(everything.offsets))
        gold = np.where(is_gold, everything.labels, MISSING).astype(np.int32)
        numbers = set_numbers(everything.labels[graphs.n_nodes :], n_labels)
        permitted = set_table(graphs.sets, n_labels)[numbers]
        self.field = GraphInference(
            everything, n_labels, gold=gold, permitted=permitted, inference=inference
        )
        self.n_potential = self.field.n_weights
        # Distinct rows of the edges of each visited graph.
        self._rows: dict[int, Longs] = {}
        self.work_on(np.arange(self.n_potential))

    def work_on(self, coordinates: Longs) -> None:
        """Set the working set: theta has the weights of these coordinates [K] int64, ascending."""
        self.coordinates, self.n_weights = coordinates, len(coordinates)
        # The point that was evaluated last, and the gradient at all weights there.
        self._evaluated: tuple[Floats, Floats] | None = None

    def restrict(self, coordinates: Longs) -> "GraphLoss":
        """Return the loss restricted to weights [K] int64, ascending; all others are zero."""
        restricted = copy(self)
        restricted.work_on(coordinates)
        return restricted

    # The approximations for graphs with cycles are not convex.
    is_convex = False

    def screen(
        self, working: "GraphLoss", theta: Floats, threshold: float, limit: int
    ) -> Violators:
        """Find weights whose gradient exceeds a threshold; see `ChainLoss.screen`."""
        gradient = working.everywhere(theta)
        violators = np.flatnonzero(np.abs(gradient) > threshold)
        return largest(violators, gradient[violators], threshold, limit)

    def everywhere(self, theta: Floats) -> Floats:
        """Return the gradient of all weights, [n_potential], at theta [K]."""
        if self._evaluated is None or not np.array_equal(self._evaluated[0], theta):
            self.value_and_grad(theta)
        assert self._evaluated is not None
        return self._evaluated[1]

    def _expand(self, theta: Array) -> Array:
        """Expand weights [K] of the working set to all weights, [n_potential]."""
        if len(theta) == self.n_potential:
            return theta
        expanded = np.zeros(self.n_potential, theta.dtype)
        expanded[self.coordinates] = theta
        return expanded

    @property
    def n_examples(self) -> int:
        """Number of graphs with gold labels."""
        return len(self.sequences)

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient [K] at theta [K]; infinite if no labels are possible.

        RAISES: SparseCRFError if the mean-field loss is negative, which ends training.
        """
        field = self.field
        space = field.infer_all(self._expand(theta), self.workers)
        space.residual[:] = 0.0
        self.workers.map(
            lambda first, last: field.add_pairs(field.by_row[first:last], space), field.row_chunks
        )
        score = field.settle(slice(None), slice(None), space)
        value = dot(field.graphs.weights, space.beliefs.log_z) - score
        gradient = np.zeros(self.n_potential)
        field.scatter(
            np.arange(field.graphs.n_nodes),
            np.arange(field.n_rows),
            node_residual=space.left,
            pair_residual=space.residual,
            total=gradient,
        )
        self._evaluated = theta.copy(), gradient
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta)
        if field.inference.method == "mean_field" and value < -_ROUNDING * abs(score):
            raise SparseCRFError(Errors.SC376.format(value=value))
        return value, gradient[self.coordinates]

    def curvature(self, gradient: Floats) -> Floats:
        """Approximate the diagonal of the Hessian, [K], at the last evaluated point.

        sum x^2 p (1 - p), as if nodes were independent and all label pairs equally likely.
        """
        return self.field.curvature()[self.coordinates]

    def add(self, members: Longs, theta: Floats, gradient: Floats) -> float:
        """Add the gradients [K] of examples [b] at theta [K]; RETURNS: the sum of their losses."""
        return float(self._add(members, theta, gradient, self.field.real))

    def add_product(
        self, members: Longs, theta: Floats, direction: Floats, gradient: Floats, product: Floats
    ) -> float:
        """Add the gradient of examples [b], and their Hessian times a direction, [K] each.

        The gradient at theta + i epsilon direction has the gradient as real, and the product as
        imaginary part (Vishwanathan 2006, equation 12). RETURNS: the sum of the examples' losses.
        """
        complex_gradient = np.zeros(len(theta), np.complex128)
        space = self.field.complex
        loss = self._add(members, theta + 1j * STEP * direction, complex_gradient, space)
        gradient += complex_gradient.real
        product += complex_gradient.imag / STEP
        return float(loss.real)

    def _add(self, members: Longs, theta: Array, gradient: Array, space: InferenceSpace) -> Any:
        """Add the gradients of examples, real or complex, and return the sum of their losses."""
        field, clamped = self.field, self._clamped[members]
        graphs, tables, loss = field.graphs, field.tables(self._expand(theta)), 0.0
        total = np.zeros(self.n_potential, theta.dtype)
        for s in (*members.tolist(), *clamped[clamped >= 0].tolist()):
            nodes, edges = (
                slice(int(bounds[s]), int(bounds[s + 1]))
                for bounds in (graphs.offsets, graphs.edge_offsets)
            )
            rows = self._rows.get(s)
            if rows is None:
                rows = self._rows[s] = np.unique(graphs.row[edges]).astype(np.int64)
            field.score_pairs(rows, tables, space)
            field.infer(s, s + 1, tables, space)
            field.warn(space, slice(s, s + 1))
            space.residual[rows] = 0.0
            field.add_pairs(np.arange(edges.start, edges.stop), space)
            loss += graphs.weights[s] * space.beliefs.log_z[s] - field.settle(nodes, edges, space)
            field.scatter(
                np.arange(nodes.start, nodes.stop),
                rows,
                node_residual=space.left,
                pair_residual=space.residual,
                total=total,
            )
        gradient += total[self.coordinates]
        return loss


def _counts(graphs: EncodedGraph) -> tuple[Longs, Longs]:
    """Count the nodes with gold labels, and with a single gold label, of each graph [S]."""
    graph = row_numbers(graphs.offsets)
    n = graphs.n_graphs
    labelled, sure = graph[graphs.labels != MISSING], graph[graphs.labels >= 0]
    return np.bincount(labelled, minlength=n), np.bincount(sure, minlength=n)
