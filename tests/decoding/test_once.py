"""Names that occur once in a sequence: both roads, held to the enumeration of all paths."""

import itertools
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.crf.decoding import once as home
from spacy_sparsecrf.crf.decoding.decoder import Decoder
from spacy_sparsecrf.crf.decoding.once import Once
from spacy_sparsecrf.crf.decoding.once_decoder import OnceDecoder
from spacy_sparsecrf.crf.decoding.steps import Preference
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.interop.sequences.plain_road import PlainSequence
from spacy_sparsecrf.portable import PairTable

from ..reference import n_repetitions, obeying
from ..support.decoding_cases import (
    KINDS,
    make_case,
    n_illegal,
    random_mask,
    random_permitted,
    scheme_mask,
)

# Labels, and names that occur once: labels, and types in IOB2, BILUO and BIOES.
SETS = {
    "label": (["L0", "L1", "L2"], ["L1"]),
    "all": (["L0", "L1", "L2"], ["L0", "L1", "L2"]),
    "IOB2": (["O", "B-X", "I-X"], ["X"]),
    "types": (["B-X", "I-X", "B-Y", "I-Y"], ["X", "Y"]),
    "mixed": (["X", "B-X", "I-Y"], ["X", "Y", "B-X"]),
    "BILUO": (["B-X", "I-X", "L-X", "U-X", "O"], ["X"]),
    "BIOES": (["S-X", "E-X", "B-X", "O"], ["X", "E-X"]),
}


def essential(labels, names):
    """Leave out labels whose type is listed too: one span has at most one run of each."""
    types = {*names} - {*labels}
    return [x for x in names if x in types or x.partition("-")[2] not in types]


@pytest.mark.parametrize("name", SETS)
@given(data=st.data())
def test_repetitions_are_counted(name, data):
    labels, names = SETS[name]
    once = Once(labels, names)
    path = data.draw(st.lists(st.integers(0, len(labels) - 1), max_size=8))
    assert len(once.repeats(path)) == n_repetitions(path, labels, essential(labels, names))
    assert bool(once.repeats(path)) == bool(n_repetitions(path, labels, names))


def quiet(find, *arguments):
    """Call without the warnings of annotation that repeats names or is not valid."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*SCW40[13]", SparseCRFWarning)
        return find(*arguments)


@pytest.mark.parametrize("name", SETS)
@given(seed=st.integers(0, 10**6), ties=st.booleans(), length=st.integers(0, 5))
def test_the_plain_road_enumerates(name, seed, ties, length):
    labels, names = SETS[name]
    once, rng, n = Once(labels, names), np.random.default_rng(seed), len(labels)
    scores, pairs = rng.normal(size=(length, n)), rng.normal(size=(2, n + 1, n))
    if ties:
        scores, pairs = np.round(scores), np.round(pairs)
    context = rng.integers(0, 2, length)
    kinds = [*map(PairTable, pairs.tolist())]
    chain = PlainSequence(scores.tolist(), [kinds[c] for c in context], lambda: None)
    path = quiet(once.best, chain)

    def score(path):
        steps = zip(range(length), context, (n, *path), path, strict=False)
        return sum(scores[t, y] + pairs[c, before, y] for t, c, before, y in steps)

    table = {p: score(p) for p in itertools.product(range(n), repeat=length)}
    best = obeying(table, partial(n_repetitions, labels=labels, once=essential(labels, names)))
    assert best[tuple(path)] == pytest.approx(max(best.values()))


@st.composite
def problems(draw):
    """Draw a model, its labels and names, masks, and sequences, some without tokens."""
    name = draw(st.sampled_from([*SETS]))
    labels, names = SETS[name]
    kind = draw(st.sampled_from([x for x in KINDS if x != "clusters" or len(labels) == 3]))
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    seed, scale = draw(st.integers(0, 10**6)), draw(st.sampled_from([0.0, 1.0, 30.0]))
    case, rng = make_case(seed, kind, lengths, len(labels), scale), np.random.default_rng(seed)
    masks = [None, random_mask(rng, len(labels)), scheme_mask(labels, "LU" * (name == "BILUO"))]
    # A scheme may leave no sequence of some length.
    valid = masks[draw(st.integers(0, 2 if name in ("IOB2", "BILUO") else 1))]
    permitted = random_permitted(rng, sum(lengths), len(labels)) if draw(st.booleans()) else None
    return case, labels, names, valid, permitted


def tables(case, labels, names, valid, permitted):
    """Yield the tokens of each sequence, the scores of its paths, and numbers of mistakes."""
    repeats = partial(n_repetitions, labels=labels, once=essential(labels, names))
    for tokens in case.problem.sequences():
        mask = np.ones((len(tokens), len(labels)), bool)
        mask = mask if permitted is None else permitted[tokens.start : tokens.stop]
        choices = [np.flatnonzero(row).tolist() for row in mask]
        scores = {path: case.score(tokens, path) for path in itertools.product(*choices)}
        yield tokens, scores, (repeats, partial(n_illegal, valid=valid))


@given(problem=problems(), favourite=st.integers(0, 2), weight=st.sampled_from([0.0, 2.5]))
def test_labels_are_the_best_of_all_that_repeat_no_name(problem, favourite, weight):
    case, labels, names, valid, permitted = problem
    bare = Decoder(case.model, valid, favourite, [Preference(favourite, weight)])
    decoder = OnceDecoder(bare, Once(labels, names))
    source = case.observations
    found = quiet(decoder.viterbi, source, permitted)
    chosen, p = quiet(decoder.decode, source, "viterbi", permitted)
    by_sum, of_sum = quiet(decoder.decode, source, "posterior", permitted)
    np.testing.assert_array_equal(found, chosen)
    marginals = quiet(bare.marginals, source, permitted)
    np.testing.assert_allclose(p, marginals[np.arange(len(p)), chosen], atol=1e-12)
    np.testing.assert_allclose(of_sum, marginals[np.arange(len(p)), by_sum], atol=1e-12)
    for tokens, scores, mistakes in tables(*problem):
        own = slice(tokens.start, tokens.stop)
        biased = {path: x + weight * path.count(favourite) for path, x in scores.items()}
        best = obeying(biased, *mistakes)
        assert best[tuple(found[own].tolist())] == pytest.approx(max(best.values()), abs=1e-6)
        sums = {
            path: sum(marginals[t, y] for t, y in zip(tokens, path, strict=True)) for path in scores
        }
        best = obeying(sums, *mistakes)
        assert best[tuple(by_sum[own].tolist())] == pytest.approx(max(best.values()), abs=1e-6)


@given(problem=problems(), n=st.sampled_from([1, 2, 5, 40]))
def test_the_n_best_paths_repeat_no_name(problem, n):
    case, labels, names, valid, permitted = problem
    bare = Decoder(case.model, valid)
    decoder = OnceDecoder(bare, Once(labels, names))
    found = quiet(decoder.nbest, case.observations, n, permitted)
    labels_ = quiet(decoder.viterbi, case.observations, permitted)
    for (paths, log_p), (tokens, scores, mistakes) in zip(found, tables(*problem), strict=True):
        best = obeying(scores, *mistakes)
        assert paths[0].tolist() == labels_[tokens.start : tokens.stop].tolist()
        rows = [tuple(path) for path in paths.tolist()]
        if all(map(mistakes[1], scores)):
            # Of soft sequences, other paths may have more invalid transitions.
            assert best[rows[0]] == pytest.approx(max(best.values()), abs=1e-6)
            continue
        assert len({*rows}) == len(rows) == min(n, len(best))
        expected = [*best.values()][:n]
        np.testing.assert_allclose([best[row] for row in rows], expected, atol=1e-6)
        table = case.table(tokens, valid, permitted)
        np.testing.assert_allclose(log_p, [min(table[row], 0) for row in rows], atol=1e-9)
        assert (np.diff(log_p) <= 0.0).all()


def repetitive(n_labels=4, length=9):
    """Return a decoder whose labels alternate, and its observations."""
    case = make_case(3, "no-pairs", [length], n_labels, 3.0)
    return Decoder(case.model), case.observations, case.model.labels


def test_results_depend_neither_on_batches_nor_on_earlier_calls():
    case = make_case(11, "chain", [6, 1, 0, 7, 5], 4)
    decoder = OnceDecoder(Decoder(case.model), Once(case.model.labels, ["L1", "L3"]))
    source = case.observations
    whole = decoder.viterbi(source)
    assert (whole != Decoder(case.model).viterbi(source)).any()
    parts = [decoder.viterbi(source.sequences(s, s + 1)) for s in range(5)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(decoder.viterbi(source), whole)


def test_names_are_kept_out_if_there_would_be_too_many_states(monkeypatch):
    bare, source, labels = repetitive()
    once = Once(labels, labels)
    free = bare.viterbi(source).tolist()
    assert len({*once.repeats(free)}) > 1
    best = OnceDecoder(bare, once).viterbi(source)
    assert not once.repeats(best)
    monkeypatch.setattr(home, "MOST_STATES", 2 * len(labels))
    with pytest.warns(SparseCRFWarning, match=r"SCW404.*9 tokens repeats 'L.'.*more than 1 "):
        found = OnceDecoder(bare, once).viterbi(source)
    assert 0 < len(once.repeats(found)) < len(once.repeats(free))
    chain = bare.chains(source)
    pairs = chain.pairs.ready[0, :, : len(labels)].tolist()
    own = PlainSequence(
        chain.scores[:, : len(labels)].tolist(), [PairTable(pairs)] * 9, lambda: None
    )
    with pytest.warns(SparseCRFWarning, match="SCW404"):
        assert once.best(own) == found.tolist()
    with pytest.warns(SparseCRFWarning, match="SCW404"):
        [(paths, _)] = OnceDecoder(bare, once).nbest(source, 3)
    assert paths[0].tolist() == found.tolist()


def test_annotation_that_repeats_a_name_is_kept_and_nothing_else_repeats():
    bare, source, labels = repetitive()
    once = Once(labels, labels[:3])
    permitted = np.ones((9, 4), bool)
    permitted[[0, 8]] = np.arange(4) == 1
    permitted[4] = np.arange(4) == 3
    with pytest.warns(SparseCRFWarning, match=r"SCW403.*9 tokens repeats 'L1',"):
        found = OnceDecoder(bare, once).viterbi(source, permitted)
    assert found[[0, 4, 8]].tolist() == [1, 3, 1] and once.repeats(found) == ["L1"]


@pytest.mark.parametrize(
    ("names", "only_types", "message"),
    [
        (
            ["X", "B-x"],
            False,
            r"SC419.*once: 'B-x'.*Did you mean B-X\? Choose from: B-X, I-X, O, X\.",
        ),
        ({"Street"}, False, r"once: 'Street'.*correct it\. Choose from: [^.]*\.$"),
        (["B-X"], True, r"once: 'B-X'.*Choose from: X\."),
    ],
)
def test_unknown_names(names, only_types, message):
    with pytest.raises(SparseCRFError, match=message):
        Once(["B-X", "I-X", "O"], names, only_types)
