"""Probabilities of labels, paths and spans against enumeration."""

import itertools
import warnings

import numpy as np
import pytest

from spacy_sparsecrf.crf.decoding import answers
from spacy_sparsecrf.crf.decoding.chains import SpanEvents
from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.crf.decoding.posterior import Posterior
from spacy_sparsecrf.crf.kernels import log_space
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning

from ..support.decoding_cases import KINDS, make_case, n_illegal, random_mask, random_permitted

LENGTHS = [4, 1, 0, 3, 2]
CONSTRAINTS = ["free", "legal", "permitted", "both"]


def constraints(name: str, seed: int, n_tokens: int, n_labels: int):
    """Return a mask of valid transitions and permitted labels, each or None."""
    rng = np.random.default_rng(seed)
    valid = random_mask(rng, n_labels) if name in ("legal", "both") else None
    permitted = random_permitted(rng, n_tokens, n_labels) if name in ("permitted", "both") else None
    return valid, permitted


def all_spans(tokens: range, n_labels: int) -> SpanEvents:
    """Return every run of up to three tokens of a sequence, each with random next labels."""
    found = [
        (start, labels)
        for start in tokens
        for length in range(1, min(3, tokens.stop - start) + 1)
        for labels in itertools.product(range(n_labels), repeat=length)
    ]
    after = np.random.default_rng(len(tokens)).random((len(found), n_labels)) < 0.5
    return SpanEvents.of(*zip(*found, strict=True), after)


def check_sequence(case, tokens: range, results: dict, table) -> None:
    """Compare all results of a decoder for a sequence with the table of all its paths."""
    part = slice(tokens.start, tokens.stop)
    paths = sorted(table, key=table.get, reverse=True)
    marginals = np.zeros((len(tokens), case.n_labels))
    for path, log_p in table.items():
        marginals[np.arange(len(tokens)), list(path)] += np.exp(log_p)
    np.testing.assert_allclose(results["marginals"][part], marginals, atol=1e-10)
    best = tuple(results["viterbi"][part].tolist())
    assert table[best] == pytest.approx(table[paths[0]], abs=1e-10)
    labels, log_p = results["nbest"]
    assert tuple(labels[0].tolist()) == best
    found = {tuple(row.tolist()): value for row, value in zip(labels, log_p, strict=True)}
    kept = {path: value for path, value in found.items() if path in table}
    assert len(found) == len(labels)
    assert kept == pytest.approx(table, abs=1e-10)
    assert sum(np.exp(value) for path, value in found.items() if path not in table) < 1e-10
    np.testing.assert_array_equal(log_p, np.sort(log_p)[::-1])
    right = tuple(results["posterior"][part].tolist())
    gains = {path: sum(marginals[np.arange(len(path)), list(path)]) for path in table}
    assert gains[right] == pytest.approx(max(gains.values()), abs=1e-9)


def check_spans(case, decoder, tables, permitted) -> None:
    for tokens, table in tables.items():
        spans = all_spans(tokens, case.n_labels)
        rows, weights = np.array(list(table)), np.exp(list(table.values()))
        without = SpanEvents(spans.starts, spans.run_ptr, spans.runs)
        bounded, unbounded = (
            decoder.span_probability(case.observations, each, permitted)
            for each in (spans, without)
        )
        for m, first in enumerate(spans.starts - tokens.start):
            run = spans.runs[spans.run_ptr[m] : spans.run_ptr[m + 1]]
            last = first + len(run)
            agree = (rows[:, first:last] == run).all(axis=1)
            assert unbounded[m] == pytest.approx(weights[agree].sum(), abs=1e-10)
            if last < len(tokens):
                agree &= spans.after[m][rows[:, last]]
            assert bounded[m] == pytest.approx(weights[agree].sum(), abs=1e-10)


@pytest.mark.filterwarnings("ignore:.*SCW40:spacy_sparsecrf.errors.SparseCRFWarning")
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_everything_equals_enumeration(kind, constraint):
    for seed, scale in enumerate((1.0, 30.0, 400.0)):
        case = make_case(seed, kind, LENGTHS, scale=scale)
        valid, permitted = constraints(constraint, seed, sum(LENGTHS), 3)
        decoder = Decoder(case.model, valid)
        source = case.observations
        ids = {
            "viterbi": decoder.viterbi(source, permitted),
            "marginals": decoder.marginals(source, permitted),
            "posterior": decoder.decode(source, "posterior", permitted)[0],
        }
        sequences = case.problem.sequences()
        tables = {s: case.table(s, valid, permitted) for s in sequences if len(s)}
        nbest = dict(zip(sequences, decoder.nbest(source, 10**4, permitted), strict=True))
        for tokens, table in tables.items():
            check_sequence(case, tokens, ids | {"nbest": nbest[tokens]}, table)
        labels, probabilities = decoder.decode(source, "viterbi", permitted)
        np.testing.assert_array_equal(labels, ids["viterbi"])
        chosen = ids["marginals"][np.arange(len(labels)), labels]
        np.testing.assert_allclose(probabilities, chosen, atol=1e-12)
        check_spans(case, decoder, tables, permitted)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_of_paths_equal_enumeration(kind, constraint):
    lengths = [3, 0, 2]
    case = make_case(11, kind, lengths)
    valid, permitted = constraints(constraint, 12, 5, 3)
    decoder = Decoder(case.model, valid)
    tables = [case.table(tokens, valid, permitted) for tokens in case.problem.sequences()]
    for path in itertools.product(range(3), repeat=5):
        found = decoder.log_probability(case.observations, np.array(path), permitted)
        expected = [tables[0].get(path[:3], -np.inf), 0.0, tables[2].get(path[3:], -np.inf)]
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_log_probabilities_of_certain_paths_are_not_positive():
    # Rounding may put a score above log Z.
    case = make_case(13, "chain", [4] * 30)
    for table in (case.model.unigram, case.model.bigram):
        table.values[:] *= 40.0
    labels = Decoder(case.model).viterbi(case.observations)
    found = Decoder(case.model).log_probability(case.observations, np.asarray(labels))
    assert (found <= 0.0).all() and (found > -1e-6).sum() > 10


def test_nbest_of_more_labels_and_few_paths():
    case = make_case(13, "chain", [3, 1], n_labels=6)
    all_few, all_many = (Decoder(case.model).nbest(case.observations, n) for n in (7, 10**6))
    for tokens, few, many in zip(case.problem.sequences(), all_few, all_many, strict=True):
        table = case.table(tokens)
        ranked = sorted(table.values(), reverse=True)
        assert len(many[0]) == 6 ** len(tokens)
        np.testing.assert_allclose(many[1], ranked, atol=1e-10)
        np.testing.assert_allclose(few[1], ranked[:7], atol=1e-10)
        np.testing.assert_array_equal(few[0], many[0][:7])
        assert [table[tuple(path)] for path in few[0].tolist()] == pytest.approx(ranked[:7])
    # Among equal scores, the best path is the first in order.
    case = make_case(14, "chain", [3], n_labels=2, scale=0.0)
    [(labels, log_p)] = Decoder(case.model).nbest(case.observations, 8)
    assert labels[0].tolist() == [0, 0, 0]
    assert len({tuple(path) for path in labels.tolist()}) == 8
    np.testing.assert_allclose(log_p, -3 * np.log(2), atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_long_sequences_are_accurate(scale):
    case = make_case(15, "chain", [1238], n_labels=9, scale=scale)
    decoder = Decoder(case.model)
    tokens = case.problem.sequences()[0]
    chain = case.problem.chain(tokens)
    log_z, expected = chain.log_z, chain.marginals()
    np.testing.assert_allclose(decoder.marginals(case.observations), expected, atol=1e-9)
    path = decoder.viterbi(case.observations)
    found = decoder.log_probability(case.observations, path)[0]
    score = case.problem.score(tokens, tuple(path.tolist()))
    assert found == pytest.approx(min(score - log_z, 0.0), abs=1e-8)
    [(labels, log_p)] = decoder.nbest(case.observations, 50)
    np.testing.assert_array_equal(labels[0], path)
    assert len({row.tobytes() for row in labels}) == 50
    again = [decoder.log_probability(case.observations, row)[0] for row in labels]
    np.testing.assert_allclose(again, log_p, atol=1e-8)
    spans = SpanEvents.of([0, 600, 1237], [path[:3], path[600:605], path[1237:]])
    assert (decoder.span_probability(case.observations, spans) <= 1.0).all()


def test_what_is_hopeless_early_may_win_late():
    """Labels never change: the first half favours one label, the second half another, more."""
    case = make_case(16, "no-pairs", [40], n_labels=2)
    decoder = Decoder(case.model, np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=bool))
    chains = decoder.chains(case.observations)
    gain = np.where(np.arange(40) < 20, -800.0, 800.0) + np.where(np.arange(40) == 39, 1.5, 0.0)
    chains.scores[:, 0], chains.scores[:, 1] = 0.0, gain
    chains.pairs.ready[:, 0, 0] += 3.0
    chains.pairs.ready[:, 1, 1] += 3.0
    found = Posterior(chains).marginals()
    np.testing.assert_allclose(found[:, 1], 1.0 / (1.0 + np.exp(-1.5)), rtol=1e-10)


def test_label_pairs_shared_by_all_tokens_are_exponentiated_once(monkeypatch):
    case, calls = make_case(19, "maxent", [4, 0, 2], n_labels=3), []
    decoder, run = Decoder(case.model), log_space.exponentiate_pairs
    monkeypatch.setattr(log_space, "exponentiate_pairs", lambda **own: calls.append(run(**own)))
    alone = [decoder.marginals(case.observations.sequences(s, s + 1)) for s in range(3)]
    np.testing.assert_array_equal(np.concatenate(alone), decoder.marginals(case.observations))
    assert len(calls) == 1


def test_parts_change_nothing(monkeypatch):
    case = make_case(17, "chain", [0, 7, 3, 0, 0, 5, 1, 9, 0], n_labels=4)
    valid, permitted = constraints("both", 18, 25, 4)
    decoder = Decoder(case.model, valid)
    source, path = case.observations, np.zeros(25, np.int32)

    def everything():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SparseCRFWarning)
            nbest = decoder.nbest(source, 5, permitted)
            return [
                decoder.viterbi(source, permitted),
                decoder.marginals(source, permitted),
                decoder.decode(source, "posterior", permitted)[0],
                decoder.log_probability(source, path, permitted),
                *(array for pair in nbest for array in pair),
            ]

    whole = everything()
    assert len(whole) == 4 + 2 * 9
    monkeypatch.setattr(answers, "CHUNK", 8)
    for a, b in zip(whole, everything(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_spans_may_go_over_the_boundaries_of_sequences():
    case = make_case(19, "chain", [2, 3])
    first, second = (case.table(tokens) for tokens in case.problem.sequences())
    left = sum(np.exp(p) for path, p in first.items() if path[1] == 2)
    right = sum(np.exp(p) for path, p in second.items() if path[:2] == (0, 1))
    spans = SpanEvents.of([1], [[2, 0, 1]])
    found = Decoder(case.model).span_probability(case.observations, spans)
    assert found[0] == pytest.approx(left * right, abs=1e-10)


def test_what_is_set_wins_over_the_mask_where_it_must():
    valid = np.ones((4, 4), dtype=bool)
    valid[0, 1] = valid[3, 2] = False
    case = make_case(21, "chain", [4, 3])
    permitted = np.ones((7, 3), dtype=bool)
    permitted[1:3] = [[1, 0, 0], [0, 1, 0]]  # L0 L1, an invalid transition
    decoder = Decoder(case.model, valid)
    with pytest.warns(SparseCRFWarning, match="SCW401.*1 sequences"):
        labels = decoder.viterbi(case.observations, permitted)
    first, second = tuple(labels[:4].tolist()), tuple(labels[4:].tolist())
    assert first[1:3] == (0, 1)
    assert (n_illegal(first, valid), n_illegal(second, valid)) == (1, 0)
    table = case.table(range(4), valid, permitted)
    assert table[first] == pytest.approx(max(table.values()), abs=1e-10)
    # A token that may get nothing gets anything.
    permitted[:], permitted[1] = True, False
    with pytest.warns(SparseCRFWarning, match="SCW402.*1 tokens"):
        labels = Decoder(case.model).viterbi(case.observations, permitted)
    np.testing.assert_array_equal(labels, Decoder(case.model).viterbi(case.observations))


SPAN = SpanEvents.of([0], [[1]])
SPANS = [SpanEvents.of([0, start], [[0], run]) for start, run in ((-1, [0]), (2, [0, 0]))]
SPANS += [SpanEvents.of([0, start], [[0], run]) for start, run in ((3, [0]), (0, []))]
MASKS = (np.ones((2, 3), bool), np.ones((3, 3)), [[True] * 3] * 3)
NO_MASK = r"SC405.*\[3, 3\] of bool.*`permitted`"


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        *((name, (m,), NO_MASK) for m in MASKS for name in ("viterbi", "marginals")),
        *(("decode", ("posterior", mask), NO_MASK) for mask in MASKS),
        *(("span_probability", (SPAN, mask), NO_MASK) for mask in MASKS),
        *(("nbest", (n,), "SC407") for n in (0, -1, 1.5, "2")),
        ("log_probability", (np.zeros(2, np.int32),), r"SC406.*2 labels.*3 tokens"),
        *(
            ("span_probability", (spans,), rf"SC408.*Span 1, .*{spans.starts[1]}.*3 tokens")
            for spans in SPANS
        ),
    ],
)
def test_arguments_that_are_refused(method, arguments, message):
    case = make_case(23, "chain", [3])
    with pytest.raises(SparseCRFError, match=message):
        getattr(Decoder(case.model), method)(case.observations, *arguments)
