"""One sequence: inference, loss, and residuals.

An *example* is a sequence with gold labels, or a sequence with missing labels and its clamped
lattice. With missing labels, the loss is log Z minus log Z of the clamped lattice.
"""

from .chain import go_forward, infer, log_partition
from .exp import log
from .layout import Floats, Ints, Pairs, SequenceWorkspace, Tables, Vectors
from .numba_support import inlined
from .pair_counts import add_correction_products, add_products, corrections_of, settle_context
from .pairs import build_for_tokens, potential
from .scores import evidence_of, score_token
from .small import add_at, fill

# Arguments of logarithms are at least this.
_LEAST = 1e-300
# A product is added as a logarithm once it leaves these bounds.
_SMALL = 1e-8
_LARGE = 1e8


@inlined
def _observe_part(s: int, part: int, tables: Tables, theta: Floats, vectors: Vectors) -> None:
    """Write the evidence of `infer_part` to `vectors`."""
    sequences = tables.sequences
    begin, at = sequences.offsets[s], sequences.offsets[part]
    length, n_labels = sequences.offsets[s + 1] - begin, sequences.n_labels
    for i in range(length):
        evidence = vectors.backward[i]
        fill(evidence, 0, len(evidence), 0.0)
        score_token(begin + i, n_labels, tables.unigrams, theta, evidence)
        vectors.scales[i] = evidence_of(evidence, n_labels, sequences.allowed[at + i])


@inlined
def infer_part(
    s: int, part: int, tables: Tables, theta: Floats, work: SequenceWorkspace, vectors: Vectors
) -> float:
    """Run forward-backward on sequence s with the labels that sequence `part` may have.

    part: s, or its clamped lattice, which has the same features; theta: unigram weights; work: with
    the potentials of the bigram weights; vectors: out. RETURNS: log Z.
    """
    sequences = tables.sequences
    context = sequences.context[sequences.offsets[s] : sequences.offsets[s + 1]]
    _observe_part(s, part, tables, theta, vectors)
    return infer(context, work.pairs, vectors)


@inlined
def infer_example(
    s: int, number: int, tables: Tables, theta: Floats, pair_theta: Floats, work: SequenceWorkspace
) -> float:
    """Run forward-backward on sequence s and, if it has one, on its clamped lattice.

    number: of the step, see `build_for_tokens`; theta, pair_theta: unigram and bigram weights;
    work: `marginals` become the residuals of the example, expected minus observed labels;
    `backward` of the clamped lattice is negated. RETURNS: the loss, not weighted.
    """
    sequences, vectors, clamped = tables.sequences, work.vectors, work.clamped
    begin, end = sequences.offsets[s], sequences.offsets[s + 1]
    context, lattice = sequences.context[begin:end], sequences.clamped[s]
    build_for_tokens(number, context, work.pairs, tables.bigrams, pair_theta)
    log_z = infer_part(s, s, tables, theta, work, vectors)
    residual = vectors.marginals
    if lattice >= 0:
        log_z -= infer_part(s, lattice, tables, theta, work, clamped)
        for i in range(end - begin):
            for y in range(residual.shape[1]):
                residual[i, y] -= clamped.marginals[i, y]
                clamped.backward[i, y] = -clamped.backward[i, y]
        return log_z
    gold = sequences.labels[begin:end]
    loss = path_loss(gold, context, work.pairs, vectors)
    for i in range(end - begin):
        residual[i, gold[i]] -= 1.0
    return loss


@inlined
def path_loss(labels: Ints, context: Ints, pairs: Pairs, vectors: Vectors) -> float:
    """Return -log p(y | x) of gold labels [T], as the product of p(y_t | y_{t-1})."""
    padded, start = vectors.backward.shape[1], pairs.n_labels
    loss, product = 0.0, 1.0
    for i in range(len(labels)):
        y = labels[i]
        previous = start if i == 0 else labels[i - 1]
        pair_place = previous * padded + y
        pair = vectors.backward[i, y] * potential(context[i], pair_place, pairs)
        marginal = 1.0
        if i > 0:
            pair *= vectors.alpha[i - 1, previous]
            marginal = float(vectors.marginals[i - 1, previous])
        product *= max(pair, _LEAST) / max(marginal, _LEAST)
        if product < _SMALL:
            loss -= log(product)
            product = 1.0
    return float(loss - log(product))


@inlined
def forward_loss(
    s: int, part: int, tables: Tables, theta: Floats, work: SequenceWorkspace
) -> float:
    """Return -log p(y | x) of the gold labels, or log Z without them, by the forward pass alone.

    Arguments: see `infer_part`. p(y | x) is the product of E_t(y_t) / n_t, which the forward pass
    writes, and of the pair potentials.
    RETURNS: not finite where no path has positive probability within the arrays' range.
    """
    sequences, vectors, pairs = tables.sequences, work.vectors, work.pairs
    context = sequences.context[sequences.offsets[s] : sequences.offsets[s + 1]]
    n, at = len(context), sequences.offsets[part]
    labels, padded = sequences.labels[at : at + n], vectors.backward.shape[1]
    _observe_part(s, part, tables, theta, vectors)
    go_forward(context, pairs, vectors)
    if labels[0] < 0:
        return log_partition(0, n, context, pairs, vectors)
    loss, product = 0.0, 1.0
    for i in range(n):
        previous = sequences.n_labels if i == 0 else labels[i - 1]
        pair = potential(context[i], previous * padded + labels[i], pairs)
        product *= max(vectors.backward[i, labels[i]] * pair, _LEAST)
        if product < _SMALL or product > _LARGE:
            loss -= log(product)
            product = 1.0
    return float(loss - log(product))


@inlined
def example_loss(
    s: int, number: int, tables: Tables, theta: Floats, pair_theta: Floats, work: SequenceWorkspace
) -> float:
    """Return the loss of `infer_example`, with the same arguments, without its residuals."""
    sequences = tables.sequences
    context = sequences.context[sequences.offsets[s] : sequences.offsets[s + 1]]
    build_for_tokens(number, context, work.pairs, tables.bigrams, pair_theta)
    loss, clamped = forward_loss(s, s, tables, theta, work), sequences.clamped[s]
    if clamped >= 0:
        loss -= forward_loss(s, clamped, tables, theta, work)
    return loss


@inlined
def expect_example_pairs(
    first: int, last: int, m: int, has_clamped: bool, work: SequenceWorkspace
) -> None:
    """Write the expected pairs of tokens first:last, which share matrix m, to `pair_sums`.

    Sparse corrections are not included. work: after `infer_example`; has_clamped: whether the
    example has a clamped lattice.
    """
    n_labels, total, psi = (work.pairs.n_labels, work.pair_sums, work.pairs.potentials.psi[m])
    vectors, clamped, middle = work.vectors, work.clamped, max(first, 1)
    tokens, starts = work.tokens[middle:last], work.tokens[first:middle]
    fill(total.reshape(-1), 0, total.size, 0.0)
    add_products(tokens, starts, n_labels, vectors.alpha, vectors.backward, total)
    if has_clamped:
        add_products(tokens, starts, n_labels, clamped.alpha, clamped.backward, total)
    for i in range(total.shape[0]):
        for y in range(total.shape[1]):
            total[i, y] *= psi[i, y]


@inlined
def settle_example_corrections(
    first: int, last: int, c: int, has_clamped: bool, labels: Ints, work: SequenceWorkspace
) -> None:
    """Write expected minus observed counts of corrections of context c to `correction_sums`.

    Tokens first:last have context c; all of them begin the example, or none does. The counts of
    their matrix, in `work.pair_sums`, are corrected. labels: [T].
    """
    contexts, potentials, sums = (work.pairs.contexts, work.pairs.potentials, work.correction_sums)
    tokens, begins, m = work.tokens[first:last], first == 0, contexts.matrix_of[c]
    e, end = corrections_of(first, c, contexts)
    vectors, clamped, padded = work.vectors, work.clamped, work.pair_sums.shape[1]
    fill(sums, 0, end - e, 0.0)
    add_correction_products(tokens, begins, e, end, contexts, vectors.alpha, vectors.backward, sums)
    if has_clamped:
        add_correction_products(
            tokens, begins, e, end, contexts, clamped.alpha, clamped.backward, sums
        )
    psi, value = potentials.psi[m], potentials.value
    settle_context(e, end, m, contexts, psi, value, work.pair_sums, sums)
    for t in tokens:
        if labels[t] >= 0:
            previous = work.pairs.n_labels if begins else labels[t - 1]
            add_at(contexts.corr_place[e:end], previous * padded + labels[t], -1.0, sums)
