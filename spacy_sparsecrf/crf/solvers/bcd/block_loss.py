"""The chain loss a block at a time; a block has all working weights of one feature."""

import numpy as np

from ...corpus.numbering import Floats, Ints, Longs, find_ascending
from ...corpus.ragged import by_key, row_numbers
from ...kernels.indexing import select, take, transpose
from ...kernels.layout import Csr, Vectors
from ...loss.context_layout import row_sums
from ...loss.examples import ChainExampleLoss
from ...loss.feature_blocks import FeatureBlocks
from ...loss.lattice import Lattice
from ...parallel import cut
from ...penalty import ElasticNet
from .bcd_kernels import BcdSettings, BlockWeights, descend_blocks
from .blocks import Blocks, BlockSpace, StoredVectors, Sweep, weigh_tokens

# Rounding errors of one token's log-potential and normalisation, in units in the last place.
_NOISE = 8.0


class BlockLayout:
    """The layout of the blocks of a working set.

    A block has the weights of a unigram feature, of a bigram feature, or of both if the two occur
    at the same tokens, like those of one template: its weights need the same marginals. Blocks are
    in descending order of their number of tokens.

    unigram, bigram: [B] int32, feature blocks, -1 = none; tokens: of each block, ascending;
    sequence_of: [N] int32; blocks: all of these, as arguments of kernels.
    """

    def __init__(self, working: ChainExampleLoss) -> None:
        lattice = working.space.lattice
        self.sequence_of = row_numbers(lattice.offsets).astype(np.int32)
        starts = lattice.n_previous > working.space.n_labels
        unigram = take(lattice.feature_tokens, working.unigram.features.astype(np.int64))
        bigram = _bigram_tokens(lattice, working.bigram, starts)
        inner = unigram
        if not starts:
            number = np.where(lattice.begins, -1, np.arange(lattice.n_tokens)).astype(np.int32)
            inner = select(unigram, number)
        partner = _partners(inner, bigram, lattice.n_tokens)
        alone = np.setdiff1d(np.arange(len(working.bigram)), partner)
        tokens = _joined(unigram, take(bigram, alone))
        rows = np.concatenate((np.arange(len(working.unigram)), np.full(len(alone), -1)))
        pairs = np.concatenate((partner, alone))
        order = np.argsort(-np.diff(tokens.indptr), kind="stable")
        self.tokens = take(tokens, order)
        self.unigram: Ints = rows[order].astype(np.int32)
        self.bigram: Ints = pairs[order].astype(np.int32)
        matrices, contexts = self._dependent_potentials(working)
        self.blocks = Blocks(
            unigram=self.unigram,
            bigram=self.bigram,
            ptr=self.tokens.indptr,
            tokens=self.tokens.indices,
            sequence_of=self.sequence_of,
            mat_ptr=matrices.indptr,
            matrices=matrices.indices,
            ctx_ptr=contexts.indptr,
            contexts=contexts.indices,
        )

    def __len__(self) -> int:
        return len(self.unigram)

    def _dependent_potentials(self, working: ChainExampleLoss) -> tuple[Csr, Csr]:
        """Return the matrices and the contexts with sparse corrections of each bigram block."""
        contexts, rows = working.pairs.contexts, working.bigram
        columns = take(working.space.lattice.feature_contexts, rows.features.astype(np.int64))
        row = row_numbers(columns.indptr)
        n_contexts = len(contexts.arrays.matrix_of)
        distinct = np.unique(row * n_contexts + contexts.active[columns.indices])
        distinct = distinct[np.diff(contexts.arrays.corr_ptr)[distinct % n_contexts] > 0]
        bounds = np.searchsorted(distinct, np.arange(len(rows) + 1) * n_contexts)
        dependent_contexts = Csr(bounds.astype(np.int64), (distinct % n_contexts).astype(np.int32))
        return transpose(contexts.matrix_blocks, len(rows)), dependent_contexts


class BlockDescent:
    """A sweep over the blocks of a working loss, from the weights theta [K].

    working: laid out for a stochastic solver, so that site_blocks has all blocks of tokens;
    penalty: l1 and l2; least_kappa, common: see `BCD`; theta, kappa: [K] float64, changed in place.
    gradient, curvature: [K], of the loss, and an approximation of the diagonal of its Hessian, at
    the last evaluation of the weight's block. counts: [3] int64, evaluations of a sequence so far,
    tokens of forward steps, tokens of backward steps.
    """

    def __init__(
        self,
        working: ChainExampleLoss,
        penalty: ElasticNet,
        least_kappa: float,
        common: bool,
        theta: Floats,
        kappa: Floats,
    ) -> None:
        space = working.space
        self._working, self._layout = working, working.derived(BlockLayout)
        noise = _NOISE * float(np.finfo(space.dtype).eps)
        self._settings = BcdSettings(
            l1=penalty.l1, l2=penalty.l2, least_kappa=least_kappa, common=common, noise=noise
        )
        self.theta = theta
        self._weights = BlockWeights(theta, kappa, working.observed)
        self._old = np.zeros(len(theta))
        self.gradient = np.zeros(len(theta))
        self.curvature = np.zeros(len(theta))
        self.counts = np.zeros(3, np.int64)
        self._stored = self._new_vectors()
        self._evaluate_potentials()

    def _new_vectors(self) -> StoredVectors:
        """Allocate the vectors of all tokens, none of them valid."""
        space, lattice = self._working.space, self._working.space.lattice
        n_tokens = lattice.n_tokens
        evidence, alpha, backward, beta = (
            np.zeros((n_tokens, space.padded), space.dtype) for _ in range(4)
        )
        none = np.empty((0, space.padded), space.dtype)
        return StoredVectors(
            evidence=evidence,
            vectors=Vectors(
                alpha=alpha,
                backward=backward,
                marginals=beta,
                scales=np.zeros(n_tokens),
                norms=np.zeros(n_tokens),
                scratch=none,
            ),
            alpha_end=lattice.offsets[:-1].copy(),
            beta_begin=lattice.offsets[1:].copy(),
            partial=np.zeros(len(lattice.weights)),
        )

    def _evaluate_potentials(self) -> None:
        working, n_chunks = self._working, self._working.space.limits.n_chunks
        # The potentials are no longer those of the last evaluation.
        working.space.contents = None
        working.pairs.fill(self.theta[working.split :])
        theta, stored = self.theta[: working.split], self._stored

        def weigh(first: int, last: int) -> None:
            tokens = np.arange(first, last, dtype=np.int32)
            weigh_tokens(
                tokens,
                working.tables,
                theta=theta,
                evidence=stored.evidence,
                scales=stored.vectors.scales,
            )

        working.space.workers.map(weigh, cut(np.diff(working.site_blocks.indptr), n_chunks))

    def run(self) -> None:
        """Descend on all blocks once."""
        self.descend(np.arange(len(self._layout)))

    def descend(self, order: Longs) -> None:
        """Descend on some blocks, one after the other. order: [n] int64."""
        working, space, pairs = self._working, self._working.space, self._working.pairs.arrays
        product = np.zeros(space.padded, space.dtype)
        scratch = np.zeros(pairs.potentials.psi.shape[1:], space.dtype)
        stored = self._stored._replace(vectors=self._stored.vectors._replace(scratch=scratch))
        sweep = Sweep(
            blocks=self._layout.blocks,
            tables=working.tables,
            pairs=pairs,
            stored=stored,
            space=BlockSpace(
                old=self._old,
                gradient=self.gradient,
                curvature=self.curvature,
                product=product,
                parts=np.zeros((2, 2), np.int64),
                kappas=np.zeros(2),
                counts=self.counts,
            ),
        )
        descend_blocks(order, self._settings, self._weights, sweep)


def _bigram_tokens(lattice: Lattice, rows: FeatureBlocks, starts: bool) -> Csr:
    """Return the tokens of each feature block of bigram weights, ascending.

    starts: whether pairs of the start label and the first label of a sequence have weights.
    """
    tokens = np.flatnonzero(~lattice.begins | starts)
    indptr, order = by_key(lattice.context[tokens], len(lattice.ctx_features.indptr) - 1)
    by_context = tokens[order].astype(np.int32)
    contexts = take(lattice.feature_contexts, rows.features.astype(np.int64))
    unsorted = take(Csr(indptr, by_context), contexts.indices.astype(np.int64))
    row = row_numbers(contexts.indptr)
    row = np.repeat(row, np.diff(indptr)[contexts.indices])
    bounds = np.searchsorted(row, np.arange(len(rows) + 1)).astype(np.int64)
    return Csr(bounds, unsorted.indices[np.lexsort((unsorted.indices, row))])


def _partners(unigram: Csr, bigram: Csr, n_tokens: int) -> Longs:
    """Return the bigram block with the same tokens for each unigram block, or -1.

    No block has two partners. unigram, bigram: tokens of the blocks.
    """
    # Rows are compared by the sums of random numbers of their tokens, modulo 2**64.
    marks = np.random.default_rng(0).integers(1, 1 << 63, n_tokens, dtype=np.uint64)
    keys, rows = np.unique(row_sums(unigram, marks[unigram.indices]), return_index=True)
    wanted = row_sums(bigram, marks[bigram.indices])
    partner = np.full(len(unigram.indptr) - 1, -1, np.int64)
    position = find_ascending(keys, wanted)
    pairs = np.flatnonzero((position >= 0) & (wanted != 0))
    partnered, chosen = np.unique(rows[position[pairs]], return_index=True)
    a, b = take(unigram, partnered), take(bigram, pairs[chosen])
    if np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices):
        partner[partnered] = pairs[chosen]
    return partner


def _joined(a: Csr, b: Csr) -> Csr:
    """Return the rows of a, then those of b."""
    indptr = np.concatenate((a.indptr, a.indptr[-1] + b.indptr[1:]))
    return Csr(indptr, np.concatenate((a.indices, b.indices)))
