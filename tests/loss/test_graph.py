"""Graph inference and losses equal enumeration where exact, and warn where they are not."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.crf.graphs.encoded_graphs import EncodedGraph, GraphBuilder, Observed
from spacy_sparsecrf.crf.graphs.graph_inference import GraphInference, Inference
from spacy_sparsecrf.crf.graphs.graph_loss import GraphLoss
from spacy_sparsecrf.crf.parallel import Workers
from spacy_sparsecrf.crf.penalty import ElasticNet
from spacy_sparsecrf.crf.solvers.adagrad import AdaGrad
from spacy_sparsecrf.crf.solvers.hybrid import Hybrid
from spacy_sparsecrf.crf.solvers.owlqn import OWLQN
from spacy_sparsecrf.crf.solvers.rprop import RPROP
from spacy_sparsecrf.crf.solvers.sgd import SGD
from spacy_sparsecrf.crf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.crf.solvers.smd import SMD
from spacy_sparsecrf.crf.solvers.solver import BatchSolver
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

from ..reference import ToyGraph, lattice_edges, random_graph, random_tree
from ..support.graph_cases import encoded

METHODS = ("lbp", "mean_field", "pseudo_likelihood")
EXACT = Inference(tolerance=1e-13)


def in_order(graphs: EncodedGraph, n_labels: int) -> np.ndarray:
    """Return the positions of a `ToyGraph`'s weights, as features are sorted by frequency."""
    nodes = [list(graphs.node_keys).index(key) for key in (5, 3)]
    edges = [list(graphs.edge_keys).index(key) for key in (9, 7) if key in graphs.edge_keys]
    n = n_labels
    places = [o * n + np.arange(n) for o in nodes]
    places += [2 * n + o * n * n + np.arange(n * n) for o in edges]
    return np.concatenate(places)


def placed(theta: np.ndarray, graphs: EncodedGraph, n_labels: int) -> np.ndarray:
    """Return the weights of a `ToyGraph` in the order of features."""
    given_theta = np.empty_like(theta)
    given_theta[in_order(graphs, n_labels)] = theta
    return given_theta


def random_graphs(seed: int, n_labels: int, edges, n: int, missing: float = 0.0) -> list[ToyGraph]:
    rng = np.random.default_rng(seed)
    return [random_graph(rng, n, edges(rng, n), n_labels, missing) for _ in range(3)]


def whole_tree(rng: np.random.Generator, n: int) -> list[tuple[int, int]]:
    return random_tree(rng, n) or [(0, 1)]


def ladder(_: np.random.Generator, n: int) -> list[tuple[int, int]]:
    return lattice_edges(2, n // 2)


def theta_of(graphs: list[ToyGraph], seed: int, size: float = 1.0) -> np.ndarray:
    n = graphs[0].n_labels
    return size * np.random.default_rng(seed).normal(size=2 * n + 2 * n * n)


def with_all_tests(graphs: list[ToyGraph]) -> list[ToyGraph]:
    """Make sure that both edge features occur."""
    graphs[0].numbers[0] = 0.5
    return graphs


@settings(max_examples=25)
@given(
    st.integers(0, 10_000),
    st.integers(2, 4),
    st.integers(2, 5),
    st.sampled_from((0.0, 0.4)),
    st.sampled_from(("sweep", "parallel")),
)
def test_propagation_is_exact_in_forests(seed, n_labels, n, missing, schedule):
    graphs = with_all_tests(random_graphs(seed, n_labels, whole_tree, n, missing))
    for graph in graphs:
        graph.labels[0] = 0
    weights, theta = [1.0, 0.5, 2.0], theta_of(graphs, seed)
    corpus = encoded(graphs, weights)
    order = in_order(corpus, n_labels)
    loss = GraphLoss(corpus, n_labels, Workers(1), Inference(schedule=schedule))
    value, gradient = loss.value_and_grad(placed(theta, corpus, n_labels))
    exact = [graph.loss(theta) for graph in graphs]
    assert value == pytest.approx(np.dot(weights, [v for v, _ in exact]), abs=1e-10)
    expected = np.array(weights) @ np.array([g for _, g in exact])
    np.testing.assert_allclose(gradient[order], expected, atol=1e-10)
    marginals = np.concatenate([graph.marginals(theta) for graph in graphs])
    found = loss.field.real.beliefs.nodes[: len(marginals)]
    np.testing.assert_allclose(found, marginals, atol=1e-10)
    assert (loss.field.real.beliefs.iterations <= (2 if schedule == "sweep" else n + 1)).all()


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("schedule", ["sweep", "parallel"])
def test_a_fixed_point_on_a_lattice_has_the_conditions_of_bethe(size, schedule):
    rng = np.random.default_rng(size)
    graph = random_graph(rng, size * size, lattice_edges(size, size), 3)
    corpus = encoded([graph])
    loss = GraphLoss(corpus, 3, Workers(1), Inference(schedule=schedule, tolerance=1e-12))
    theta = 0.5 * theta_of([graph], size)
    _, gradient = loss.value_and_grad(theta)
    space, log_psi = loss.field.real, loss.field.real.potentials.log_psi
    nodes, messages = space.beliefs.nodes, space.beliefs.messages
    log_phi, entropy = space.potentials.log_phi, 0.0
    energy = (nodes * log_phi).sum()
    for e, (i, j) in enumerate(corpus.ends):
        psi = log_psi[corpus.row[e]]
        pair = np.outer(nodes[i] / messages[2 * e + 1], nodes[j] / messages[2 * e]) * np.exp(psi)
        pair /= pair.sum()
        np.testing.assert_allclose(pair.sum(axis=1), nodes[i], atol=1e-8)
        np.testing.assert_allclose(pair.sum(axis=0), nodes[j], atol=1e-8)
        energy += (pair * psi).sum()
        entropy -= (pair * np.log(pair / np.outer(nodes[i], nodes[j]))).sum()
    entropy -= (nodes * np.log(nodes)).sum()
    # Minus the Bethe free energy of these beliefs is log Z.
    assert space.beliefs.log_z[0] == pytest.approx(energy + entropy, abs=1e-8)
    for k in rng.permutation(len(theta))[:8]:
        step = np.zeros_like(theta)
        step[k] = 1e-4
        slope = (loss.value_and_grad(theta + step)[0] - loss.value_and_grad(theta - step)[0]) / 2e-4
        assert slope == pytest.approx(gradient[k], abs=1e-6)


def test_mean_field_is_a_lower_bound_of_log_z_and_of_the_loss():
    rng, graphs = np.random.default_rng(0), []
    for _ in range(200):
        n = int(rng.integers(2, 6))
        edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6] or [(0, 1)]
        graphs.append(random_graph(rng, n, edges, 3))
    corpus, theta = encoded(graphs), 1.5 * theta_of(graphs, 1)
    loss = GraphLoss(corpus, 3, Workers(1), Inference(method="mean_field", limit=1000))
    value, _ = loss.value_and_grad(placed(theta, corpus, 3))
    bounds = loss.field.real.beliefs.log_z
    exact = np.array([graph.log_z(theta, graph.paths)[0] for graph in graphs])
    assert (bounds <= exact + 1e-9).all()
    assert np.mean(exact - bounds) < 2.0
    assert 0.0 < value < sum(graph.loss(theta)[0] for graph in graphs) - 1.0


@pytest.mark.filterwarnings("ignore:.*SCW370")
@pytest.mark.parametrize("solver", [OWLQN(), RPROP(), SGD(schedule="constant", eta0=0.1), SGDL1()])
@pytest.mark.parametrize("l2", [0.01, 1.0, 30.0])
def test_a_negative_mean_field_loss_ends_training(l2, solver):
    rng, builder = np.random.default_rng(2), GraphBuilder()
    edges = np.array(lattice_edges(4, 4))
    for i in range(20):
        shown = np.where(rng.random((16, 1)) < 0.2, i % 2, 1 - i % 2)
        pairs = Observed(np.full((len(edges), 1), 9, np.uint64))
        builder.add(Observed((10 + shown).astype(np.uint64)), edges, pairs, np.full(16, i % 2))
    loss = GraphLoss(builder.build(), 2, Workers(1), Inference(method="mean_field"))
    penalty = ElasticNet(0.0, l2)
    state = solver.start(loss, penalty, np.zeros(loss.n_weights))

    def train() -> None:
        for _ in range(40):
            assert solver.step(loss, penalty, state).objective > 0.0

    if l2 == 30.0:
        train()
    else:
        with pytest.raises(SparseCRFError, match=r"SC376.*loss is -\d.*method = 'lbp'.*larger l2"):
            train()
    # The last point is kept.
    assert np.isfinite(state.theta).all() and state.value > 0.0


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_pseudo_likelihood_equals_enumeration(seed, n_labels):
    graphs = with_all_tests(random_graphs(seed, n_labels, ladder, 4))
    corpus, theta = encoded(graphs), theta_of(graphs, seed)
    loss = GraphLoss(corpus, n_labels, Workers(1), Inference(method="pseudo_likelihood"))
    value, gradient = loss.value_and_grad(placed(theta, corpus, n_labels))
    exact = [graph.pseudo_loss(theta) for graph in graphs]
    assert value == pytest.approx(sum(v for v, _ in exact), abs=1e-10)
    expected = sum(g for _, g in exact)
    np.testing.assert_allclose(gradient[in_order(corpus, n_labels)], expected, atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_examples_add_up_and_products_are_derivatives(method):
    missing = 0.0 if method == "pseudo_likelihood" else 0.3
    graphs = random_graphs(3, 3, ladder, 6, missing)
    loss = GraphLoss(encoded(graphs), 3, Workers(1), Inference(method=method, tolerance=1e-12))
    theta, rng = 0.5 * theta_of(graphs, 4), np.random.default_rng(5)
    value, gradient = loss.value_and_grad(theta)
    slopes = np.array(
        [
            (loss.value_and_grad(theta + e)[0] - loss.value_and_grad(theta - e)[0]) / 2e-5
            for e in 1e-5 * np.eye(len(theta))
        ]
    )
    np.testing.assert_allclose(gradient, slopes, atol=1e-6)
    direction = rng.normal(size=len(theta))
    change = [loss.value_and_grad(theta + h * direction)[1] for h in (1e-5, -1e-5)]
    added, product = np.zeros_like(theta), np.zeros_like(theta)
    found = loss.add_product(loss.sequences, theta, direction, added, product)
    assert found == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(added, gradient, atol=1e-9)
    np.testing.assert_allclose(product, (change[0] - change[1]) / 2e-5, atol=1e-6)
    again = np.zeros_like(theta)
    losses = [loss.add(np.array([s]), theta, again) for s in loss.sequences]
    assert sum(losses) == pytest.approx(value)
    np.testing.assert_allclose(again, gradient, atol=1e-9)


def test_max_product_finds_the_best_labels_of_trees():
    for seed in range(10):
        graphs = with_all_tests(random_graphs(seed, 3, whole_tree, 5))
        corpus, theta = encoded(graphs), theta_of(graphs, seed)
        given_theta = placed(theta, corpus, 3)
        nothing = np.full(corpus.n_nodes, -1, np.int32)
        field = GraphInference(corpus, 3, nothing, np.zeros((0, 3), np.bool_), Inference())
        best = field.infer_all(given_theta, Workers(1), best=True).beliefs.nodes.argmax(axis=1)
        exact = [graph.paths[(graph.counts(graph.paths) @ theta).argmax()] for graph in graphs]
        np.testing.assert_array_equal(best, np.concatenate(exact))


def lattices(n: int = 8, size: int = 4, missing: float = 0.0) -> GraphLoss:
    graphs = [
        random_graph(np.random.default_rng(i), size * size, lattice_edges(size, size), 2, missing)
        for i in range(n)
    ]
    return GraphLoss(encoded(graphs), 2, Workers(1))


SOLVERS = {"owlqn": OWLQN(), "rprop": RPROP(), "hybrid": Hybrid(), "sgd": SGD(average_from=15)}
SOLVERS |= {"sgd-l1": SGDL1(), "adagrad": AdaGrad(), "smd": SMD(eta0=0.02, batch=2)}


@pytest.mark.parametrize("l1", [0.0, 0.5])
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_come_to_one_minimum(name, l1):
    solver: BatchSolver = SOLVERS[name]
    if l1 > 0.0 and "no l1" in solver.requires:
        pytest.skip("minimises l1 = 0 only")
    loss, penalty = lattices(missing=0.1), ElasticNet(l1, 1.0)
    objectives = []
    for each in (OWLQN(), solver):
        state = each.start(loss, penalty, np.zeros(loss.n_weights))
        for _ in range(40):
            report = each.step(loss, penalty, state)
            if report.converged:
                break
        objectives.append(report.objective)
    gap = (objectives[1] - objectives[0]) / objectives[0]
    assert -1e-9 < gap < (1e-6 if solver.exact and name != "rprop" else 5e-3)


def test_results_are_the_same_bits_for_any_number_of_threads_and_points_evaluated_before():
    loss = lattices(40)
    theta, other = np.random.default_rng(0).normal(size=(2, loss.n_weights))
    value, gradient = loss.value_and_grad(theta)
    for n_threads in (2, 3):
        found = GraphLoss(loss.field.graphs, 2, Workers(n_threads)).value_and_grad(theta)
        assert found[0] == value
        np.testing.assert_array_equal(found[1], gradient)
    loss.value_and_grad(other)
    coordinates, found, *_ = loss.screen(loss, theta, 0.0, loss.n_weights)
    np.testing.assert_array_equal(found, gradient[coordinates])
    assert len(found) > 5


def test_ties_are_weights_that_labels_share():
    graph = random_graph(np.random.default_rng(2), 9, lattice_edges(3, 3), 2)
    untied = encoded([graph])
    ties = np.array([[-1.0], [1.0]]), np.array([[1.0], [-1.0], [-1.0], [1.0]])
    loss = GraphLoss(encoded([graph], ties=ties), 2, Workers(1), EXACT)
    whole = GraphLoss(untied, 2, Workers(1), EXACT)
    theta = np.array([0.3, -0.4, 0.2, 0.6])
    tables = loss.field.tables(theta)
    np.testing.assert_allclose(tables.nodes, np.outer(theta[:2], [-1.0, 1.0]))
    order = in_order(untied, 2)
    expanded = np.empty(len(order))
    keys = [list(loss.field.graphs.edge_keys).index(k) for k in (9, 7)]
    own = [list(loss.field.graphs.node_keys).index(k) for k in (5, 3)]
    expanded[order] = np.concatenate((tables.nodes[own].ravel(), tables.pairs[keys].ravel()))
    value, gradient = loss.value_and_grad(theta)
    other, full = whole.value_and_grad(expanded)
    assert value == pytest.approx(other)
    full = full[order]
    np.testing.assert_allclose(gradient[:2][own], full[:4].reshape(2, 2) @ ties[0][:, 0])
    np.testing.assert_allclose(gradient[2:][keys], full[4:].reshape(2, 4) @ ties[1][:, 0])
    # `curvature` squares what `value_and_grad` scatters.
    assert (loss.curvature(gradient) > 0.0).all()


def test_what_has_not_converged_says_so_once_and_damping_helps():
    everyone = [(i, j) for i in range(5) for j in range(i)]
    graph = random_graph(np.random.default_rng(1), 5, everyone, 2)
    graph.nodes[:], graph.numbers[:, 0], graph.numbers[:, 1] = 0.1, 1.0, 0.0
    corpus = encoded([graph])
    # Neighbouring nodes differ so strongly that parallel messages oscillate forever.
    theta = np.array([1.0, -1.0, 0.0, 0.0, -1.2, 1.2, 1.2, -1.2])
    swinging = GraphLoss(corpus, 2, Workers(1), Inference(schedule="parallel", limit=20))
    with pytest.warns(SparseCRFWarning, match="SCW370.*1 of 1 graphs.*20 iterations"):
        value, _ = swinging.value_and_grad(theta)
    assert np.isfinite(value)
    swinging.value_and_grad(theta)
    damped = Inference(schedule="parallel", damping=0.5)
    assert np.isfinite(GraphLoss(corpus, 2, Workers(1), damped).value_and_grad(theta)[0])


def test_graphs_without_edges_and_without_nodes():
    alone = ToyGraph(np.ones((1, 2)), [], np.zeros((0, 2)), np.array([1]), 2)
    many = random_graph(np.random.default_rng(0), 4, [], 2)
    empty = ToyGraph(np.zeros((0, 2)), [], np.zeros((0, 2)), np.zeros(0, np.int64), 2)
    for method in METHODS:
        loss = GraphLoss(encoded([alone, empty, many]), 2, Workers(1), Inference(method=method))
        theta = np.array([0.1, -0.2, 0.3, 0.5])
        # Both features occur equally often, so they keep their order.
        dense = np.concatenate((theta, np.zeros(8)))
        exact = [graph.loss(dense)[0] for graph in (alone, many)]
        assert loss.n_examples == 2
        assert loss.value_and_grad(theta)[0] == pytest.approx(sum(exact), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_node_with_very_many_neighbours(method):
    n = 100_000
    builder = GraphBuilder()
    nodes = Observed(np.full((n, 1), 5, np.uint64))
    ends = np.stack((np.zeros(n - 1), np.arange(1, n)), 1)
    builder.add(nodes, ends, Observed(np.full((n - 1, 1), 9, np.uint64)), np.arange(n) % 2)
    loss = GraphLoss(builder.build(), 2, Workers(1), Inference(method=method))
    value, gradient = loss.value_and_grad(np.array([0.1, 0.0, 0.5, 0.0, 0.0, 0.5]))
    assert np.isfinite(value) and np.isfinite(gradient).all()
    if method == "lbp":
        # For a star, log Z has a closed form.
        each = np.logaddexp([0.6, 0.1], [0.0, 0.5])
        log_z = np.logaddexp.reduce(np.array([0.1, 0.0]) + (n - 1) * each)
        assert loss.field.real.beliefs.log_z[0] == pytest.approx(log_z, rel=1e-10)


@pytest.mark.filterwarnings("ignore:.*SCW370")
@pytest.mark.parametrize("eta0", [1e3, 1e150])
def test_what_diverges_says_so_and_loses_nothing(eta0):
    loss, penalty = lattices(2), ElasticNet(0.0, 1.0)
    start = np.zeros(loss.n_weights)
    before, solver = loss.value_and_grad(start)[0], SMD(eta0=eta0, batch=1)
    state = solver.start(loss, penalty, start)
    with pytest.raises(SparseCRFError, match="SC338.*SMD"), np.errstate(all="ignore"):
        for _ in range(3):
            solver.step(loss, penalty, state)
    assert loss.value_and_grad(start)[0] == before and not start.any()


def test_bad_graphs_and_settings_are_refused():
    node, nobody = Observed(np.ones((2, 1), np.uint64)), Observed(np.zeros((0, 1), np.uint64))
    edge = Observed(np.ones((1, 1), np.uint64))

    def build(*given) -> EncodedGraph:
        builder = GraphBuilder()
        builder.add(node, np.zeros((0, 2)), nobody)
        builder.add(node, *given)
        return builder.build()

    def loss(*given, **settings) -> GraphLoss:
        return GraphLoss(build([[0, 1]], edge, *given), 2, Workers(1), Inference(**settings))

    bad: list[Any] = [(key, value) for key in ("method", "schedule") for value in ("x",)]
    bad += [("damping", 1.0), ("limit", 0), ("tolerance", -1.0)]
    for make, message in (
        (lambda: build([[0, 1]], nobody), r"SC370.*Graph 1:"),
        (lambda: build([[0, 1]], Observed(edge.hashes, np.array([[np.nan]]))), r"SC370.*Graph 1:"),
        (lambda: build([[0, 2]], edge), r"SC371.*Edge 0 of graph 1 .*\[0, 2\]"),
        (lambda: build([[1, 1]], edge), r"SC372.*Edge 0 of graph 1 .*\[1, 1\]"),
        (GraphBuilder().build, "SC302"),
        (loss, "SC305"),
        (lambda: loss([0, 5]), "SC374.*Label 5"),
        (lambda: loss([0, -1], method="pseudo_likelihood"), "SC375.* 1 graphs"),
        *((lambda own=own: Inference(**dict([own])), f"SC373.*{own[0]} = ") for own in bad),
    ):
        with pytest.raises(SparseCRFError, match=message):
            make()
    assert not loss([0, -1]).complete.any()
