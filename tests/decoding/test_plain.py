"""The plain decoder, held to the enumeration of all paths."""

import math

import numpy as np
import pytest

from spacy_sparsecrf.interop.sequences.plain_road import PlainSequence
from spacy_sparsecrf.portable import PairTable

from ..reference import random_problem
from ..support.plain_chain import PlainChain


@pytest.mark.parametrize("scale", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("start_label", [True, False], ids=["start", "no start"])
def test_the_plain_decoder_enumerates(scale, start_label):
    """Equal scores of paths, at a scale of 0, and such that only one path counts."""
    problem, _ = random_problem(7, 3, [5, 1, 0, 4], start_label=start_label, scale=scale)
    for tokens in problem.sequences():
        chain = problem.chain(tokens)
        assert len(chain) == len(tokens)
        if not len(tokens):
            assert chain.labels() == chain.marginals() == [] and chain.log_probability([]) == 0.0
            continue
        log_z, pairs = problem.pair_marginals(tokens)
        scores = {path: problem.score(tokens, path) for path in problem.paths(tokens)}
        best = chain.labels()
        assert scores[tuple(best)] == pytest.approx(max(scores.values()))
        if not scale:
            assert best == [0] * len(tokens)
        assert chain.log_z == pytest.approx(log_z)
        np.testing.assert_allclose(chain.marginals(), pairs.sum(axis=1), atol=1e-12)
        for path, score in scores.items():
            assert chain.log_probability(path) == pytest.approx(min(score - log_z, 0.0), abs=1e-9)
        assert math.isfinite(sum(map(sum, chain.marginals())))


@pytest.mark.parametrize("scale", [0.0, 0.5, 3.0, 60.0])
def test_the_scaled_recursion_is_that_of_logarithms(scale):
    """Also with ties, and tables of pairs with few weights, of both signs, and with all."""
    rng = np.random.default_rng(int(scale))
    for share in (0.0, 0.15, 1.0):
        scores = (rng.normal(size=(9, 7)) * scale).round(1).tolist()
        pairs = rng.normal(size=(8, 7)).round(1) * scale * (rng.random((8, 7)) < share)
        reference = PlainChain(scores, [pairs.tolist()] * 9)
        chain = PlainSequence(scores, [PairTable(pairs.tolist())] * 9, lambda: None)
        assert chain.labels() == reference.labels()
        assert chain.log_z == pytest.approx(reference.log_z, abs=1e-11)
        np.testing.assert_allclose(chain.marginals(), reference.marginals(), atol=1e-11)
