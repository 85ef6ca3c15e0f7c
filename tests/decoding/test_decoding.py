"""Decoders of trained models, and the search for best paths, against reference implementations."""

import numpy as np
import pytest

from spacy_sparsecrf.crf.corpus.encoded import Observations
from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.crf.decoding.steps import Preference, Temperature
from spacy_sparsecrf.crf.decoding.transitions import Transitions, combined_transitions
from spacy_sparsecrf.crf.kernels.layout import Scored
from spacy_sparsecrf.crf.kernels.viterbi import viterbi
from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.errors import SparseCRFError

from ..support.data import ORACLE, needs, read_oracle
from ..support.decoding_cases import (
    make_case,
    random_mask,
    reference_best_labels,
    scheme_labels,
    scheme_mask,
)
from ..support.kernel_functions import function
from ..support.oracle_cases import oracle_observations, oracle_training


def test_ties_no_tokens_and_unknown_features():
    case = make_case(36, "chain", [4, 2])
    assert Decoder(CRFModel(["a", "b", "c"])).viterbi(case.observations).tolist() == [0] * 6
    columns = case.observations.unigram_columns, case.observations.bigram_columns
    none = Observations(case.observations.hashes[:0], np.zeros(1, np.int64), *columns)
    assert Decoder(case.model).viterbi(none).shape == (0,)
    others = case.observations.hashes + np.uint64(10**6)
    unknown = Observations(others, case.observations.offsets, *columns)
    np.testing.assert_allclose(Decoder(case.model).marginals(unknown), 1 / 3, atol=1e-12)


@pytest.mark.parametrize("kind", ["chain", "memm", "maxent"])
@pytest.mark.parametrize("favourite", [0, 2])
def test_a_favourite_label_wins_ties(kind, favourite):
    observations = make_case(36, "chain", [4, 2]).observations
    model, valid = CRFModel(["a", "b", "c"], kind=kind), np.ones((4, 4), dtype=bool)
    valid[0, 1] = valid[1, 3] = False
    permitted = np.ones((6, 3), dtype=bool)
    permitted[1] = [False, True, False]
    for mask in None, valid:
        decoder = Decoder(model, mask, favourite, [Preference(favourite, -3.0)])
        for labels in (
            decoder.viterbi(observations).tolist(),
            decoder.decode(observations, "posterior")[0].tolist(),
            [y for paths, _ in decoder.nbest(observations, 3) for y in paths[0].tolist()],
        ):
            assert labels == [favourite] * 6
        labels = decoder.viterbi(observations, permitted).tolist()
        before = favourite if mask is None or favourite == 2 else 1
        assert labels == [before, 1, *[favourite] * 4]


@needs(ORACLE / "oracle.json")
def test_marginals_equal_the_independent_programs():
    training, observations = oracle_training("l2", n_steps=30), oracle_observations()
    marginals = Decoder(training.model()).marginals(observations)
    case = read_oracle()["cases"]["l2"]
    for figures in case["sentence_figures"]:
        first, last = observations.offsets[figures["sentence"] :][:2]
        np.testing.assert_allclose(marginals[first:last], figures["marginals"], atol=1e-6)


def masks(rng: np.random.Generator) -> list[np.ndarray]:
    kinds = [scheme_mask(scheme_labels(n, ends), ends) for n in (1, 4) for ends in ("", "LU")]
    return [*kinds, random_mask(rng, 2), random_mask(rng, 9), random_mask(rng, 20)]


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("integers", [True, False], ids=["ties", "no-ties"])
@pytest.mark.parametrize(
    ("n_contexts", "n_labels", "jit"),
    [
        *((*sizes, jit) for sizes in ((1, 1), (1, 8), (3, 13), (50, 5)) for jit in (True, False)),
        *((1, None, True), (3, None, True)),
    ],
)
def test_the_search_equals_that_of_everything(prune, integers, n_contexts, n_labels, jit):
    """Search with and without pruning; n_labels: None for masks of valid transitions."""
    for seed in range(10 if jit else 1):
        rng = np.random.default_rng(seed)
        for valid in [None] if n_labels else masks(rng):
            n = n_labels or len(valid) - 1
            padded = -(-n // 8) * 8
            offsets = np.array([0, 7, 7, 8, 30, 200], dtype=np.int64)
            scores = rng.normal(scale=3.0, size=(200, padded))
            pairs = rng.normal(scale=2.0, size=(n_contexts, n + 1, padded))
            if integers:
                scores, pairs = np.round(scores), np.round(pairs)
            context = rng.integers(0, n_contexts, 200).astype(np.int32)
            expected = reference_best_labels(offsets, scores, context, pairs, valid)
            of, labels = Transitions.make(valid, n, padded), np.empty(200, np.int32)
            if valid is not None:
                scores[offsets[[1, 3, 4, 5]] - 1, :n] += np.where(of.ends, 0.0, -np.inf)
            scored = Scored(n, offsets, scores, context, pairs)
            slack = of.finish(pairs, prune)
            function(viterbi, jit)(scored, slack, of.search, np.empty(padded), labels)
            np.testing.assert_array_equal(labels, expected)


# Valid transitions: masks and lists, and invalid settings.

LABELS = ["A", "B", "C"]


def test_lists_of_pairs_and_schemes_apply_together():
    assert combined_transitions(LABELS) is None
    assert combined_transitions(LABELS, scheme=np.ones((4, 4), dtype=bool)) is None
    valid = combined_transitions(LABELS, forbidden=[["A", "B"], ["", "C"], ["B", ""]])
    expected = np.ones((4, 4), dtype=bool)
    expected[0, 1] = expected[3, 2] = expected[1, 3] = False
    np.testing.assert_array_equal(valid, expected)
    pairs = [("", "A"), ("A", "B"), ("A", "A"), ("B", ""), ("A", "")]
    valid = combined_transitions(LABELS, allowed=pairs)
    assert valid.sum() == len(pairs) + 1
    assert all(valid[(*LABELS, "").index(a), (*LABELS, "").index(b)] for a, b in pairs)
    with_both = combined_transitions(LABELS, forbidden=[["A", "B"]], allowed=pairs)
    assert not with_both[0, 1] and with_both[0, 0]
    labels = scheme_labels(1, "LU")
    valid = combined_transitions(labels, [["O", "U-0"]], scheme=scheme_mask(labels, "LU"))
    cases = [("O", "U-0"), ("O", "L-0"), ("B-0", "L-0")]
    found = [valid[labels.index(a), labels.index(b)] for a, b in cases]
    assert found == [False, False, True]


UNKNOWN = r"SC403.*{} names 'X'.*A, B, C"
CIRCLE = [["", "A"], ["A", ""], ["A", "B"]]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        *(({key: [["A", "X"]]}, UNKNOWN.format(key)) for key in ("forbidden", "allowed")),
        ({"forbidden": [["", y] for y in LABELS]}, "SC404.*no label can begin a sequence"),
        ({"forbidden": [[y, ""] for y in LABELS]}, "SC404.*no label can end a sequence"),
        ({"allowed": [["A", "B"], ["B", "A"]]}, "SC404.*no label can begin a sequence"),
        ({"allowed": [["", "A"], ["A", ""]]}, "SC404.*no sequence of 2 tokens"),
        ({"allowed": [*CIRCLE, ["B", "A"]]}, "SC404.*no sequence of 2 tokens"),
        ({"allowed": [*CIRCLE, ["B", "C"], ["C", "C"], ["C", ""]]}, "SC404.*of 2"),
    ],
)
def test_unknown_labels_and_masks_that_leave_no_path(lists, message):
    with pytest.raises(SparseCRFError, match=message):
        combined_transitions(LABELS, **lists)


@pytest.mark.parametrize("mask", [np.ones((3, 3), bool), np.ones((4, 4)), None, [[True]]])
def test_masks_of_another_shape_or_type(mask):
    with pytest.raises(SparseCRFError, match=r"SC405.*\[4, 4\] of bool.*`valid_transitions`"):
        combined_transitions(LABELS, scheme=mask if mask is not None else np.ones(4, bool))
    if mask is not None:
        with pytest.raises(SparseCRFError, match="SC405"):
            Decoder(CRFModel(LABELS), mask)
    with pytest.raises(SparseCRFError, match="SC404"):
        Decoder(CRFModel(LABELS), np.zeros((4, 4), dtype=bool))


@pytest.mark.parametrize("name", ["chain", "no-start-label", "memm", "maxent", "clusters"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_preferred_label_changes_choices_and_no_probability(name, masked):
    case = make_case(37, name, [4, 1, 3, 5])
    valid = np.array(VALID, np.bool_) if masked else None
    marginals = Decoder(case.model, valid, options=[Temperature(1.3)]).marginals(case.observations)
    tables, counts = [(s, case.table(s, valid)) for s in case.problem.sequences()], []
    for weight in (-2.0, -0.3, 0.4, 3.0):
        options = [Temperature(1.3), Preference(1, weight / 1.3)]
        decoder = Decoder(case.model, valid, 1, options)
        found = decoder.viterbi(case.observations)
        for tokens, table in tables:
            scores = {path: score + weight * path.count(1) for path, score in table.items()}
            # An MEMM or clusters with weights divided by a temperature are a different model.
            if name not in ("memm", "clusters"):
                own = tuple(found[tokens.start : tokens.stop])
                assert scores[own] == pytest.approx(max(scores.values()), abs=1e-9)
        labels, p = decoder.decode(case.observations, "viterbi")
        np.testing.assert_array_equal(labels, found)
        np.testing.assert_array_equal(p, marginals[np.arange(len(labels)), labels])
        counts.append(int((found == 1).sum()))
    assert counts == sorted(counts) and counts[0] < counts[-1]


VALID = [[1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 1, 1], [1, 1, 1, 0]]
