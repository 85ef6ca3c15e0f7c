"""Weights as text: dumps, and patches of models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.crf.model.edit_weights import dump, patch
from spacy_sparsecrf.crf.model.model import CRFModel, WeightTable
from spacy_sparsecrf.crf.model.names import Names
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.features.naming import hash_names

from ..support.golden import read_golden
from ..support.toy import examples_of, train

LABELS = ("#", "*", "*0", "a\tb", "Case=Nom|X", "\\n", "\n")


def make_table(entries: dict[tuple[int, int, int], float], pairs: bool, dtype: str) -> WeightTable:
    """Build a weight table entry by entry."""
    places = sorted(entries)
    keys = sorted({key for key, _, _ in places})
    counts = [sum(place[0] == key for place in places) for key in keys]
    return WeightTable(
        np.array(keys, np.uint64),
        np.cumsum([0, *counts]),
        np.array([place[1] for place in places] if pairs else [], np.uint16),
        np.array([place[2] for place in places], np.uint16),
        np.array([entries[place] for place in places], dtype),
    )


def places_of(table: WeightTable) -> set[tuple[int, int, int]]:
    keys = np.repeat(table.keys, np.diff(table.indptr)).tolist()
    return set(zip(keys, table.previous.tolist(), table.labels.tolist(), strict=True))


@st.composite
def models(draw: st.DrawFn) -> CRFModel:
    dtype = draw(st.sampled_from(["float32", "float64"]))
    width = 32 if dtype == "float32" else 64
    weights = st.floats(allow_nan=False, allow_infinity=False, width=width).filter(bool)
    keys, n = st.integers(0, 2**64 - 1), len(LABELS)
    bounds = draw(st.sampled_from([(), (0, 3, n)]))
    outcomes = st.integers(0, n + max(0, len(bounds) - 1) - 1)
    alone = st.tuples(keys, st.just(-1), outcomes)
    pairs = st.tuples(keys, st.integers(0, n), st.integers(0, n - 1))
    tables = [
        make_table(draw(st.dictionaries(places, weights, max_size=9)), places is pairs, dtype)
        for places in (alone, pairs)
    ]
    return CRFModel(LABELS, dtype, *tables, "maxent" if bounds else "chain", bounds)


def test_long_names_keep_the_other_names():
    names = Names()
    names.add({1: "lower[0]=a", 2: f"lower[0]={'b' * (20 << 20)}"})
    stored = Names(names.to_bytes(np.array([1, 2], np.uint64)))
    assert stored[1] == names[1] and stored[2] == names[2]
    lines = [f"u\t{names[2]}\t#\tX\t1"]
    with pytest.raises(SparseCRFError, match="'lower.0.=b{45}.*longer than 16777216") as error:
        patch(CRFModel(("X",), "float32"), lines, "x", hash_names)
    assert len(str(error.value)) < 300


@given(models(), st.booleans())
def test_a_dump_gives_the_same_bytes_again_and_replaces_another_model(model, replace):
    lines = [*dump(model, Names())]
    assert len(lines) == model.n_active
    assert all(len(line.split("\t")) == 5 and "\n" not in line for line in lines)
    names = {"kind": model.kind, "bounds": model.bounds}
    empty = CRFModel(model.labels, model.dtype, **names)
    patched = patch(empty, lines, "x", hash_names, replace=replace)
    assert patched.model.to_bytes() == model.to_bytes()
    assert patched.n_changes == model.n_active
    assert patch(model, lines, "x", hash_names).model.to_bytes() == model.to_bytes()
    table = make_table({(1, 0, 0): 2.0}, True, model.dtype)
    other = CRFModel(model.labels, model.dtype, bigram=table, **names)
    replaced = patch(other, lines, "x", hash_names, replace=True).model
    assert replaced.to_bytes() == model.to_bytes()
    expected = model.n_active + ((1, 0, 0) not in places_of(model.bigram))
    assert patch(other, lines, "x", hash_names).model.n_active == expected


@given(st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool))
def test_weights_are_short_and_exact(weight):
    table = make_table({(1, -1, 0): weight}, False, "float32")
    (line,) = dump(CRFModel(("A",), unigram=table), Names())
    text = line.split("\t")[-1]
    assert np.float32(text) == np.float32(weight)
    assert len(text) <= 15


def test_lines_look_like_this():
    names = Names()
    names.add({1: "lower[0]=a", 2: "always"})
    model = CRFModel(
        LABELS,
        unigram=make_table({(1, -1, 0): 0.5, (1, -1, 1): -1e-20, (3, -1, 3): 2.0}, False, "f4"),
        bigram=make_table({(2, 7, 1): 0.1, (2, 1, 0): 3.0}, True, "float32"),
    )
    assert [*dump(model, names)] == [
        "u\tlower[0]=a\t#\t#\t0.5",
        "u\tlower[0]=a\t#\t\\*\t-1e-20",
        f"u\t{Names()[3]}\t#\ta\\tb\t2.0",
        "b\talways\t\\*\t#\t3.0",
        "b\talways\t*\t\\*\t0.1",
    ]


def test_a_patch_adds_changes_and_removes():
    key = int(hash_names(["lower[0]=a"])[0])
    table = make_table({(key, -1, 0): 0.5, (key, -1, 1): 1.0, (9, -1, 1): 2.0}, False, "float32")
    model = CRFModel(("A", "B"), unigram=table)
    lines = [
        "# a note",
        "",
        "u\tlower[0]=a\t#\tA\t0.25\r\n",
        f"u\t{Names()[9]}\t#\tB\t0\n",
        "u\tlower[0]=a\t#\tB\t7",
        "u\tlower[0]=a\t#\tB\t-0.0",
        "u\tlower[0]=new\t#\tB\t+1.5e0",
        "b\talways\t*\tB\t.5",
        "b\talways\tA\tB\t0",
    ]
    before = model.to_bytes()
    patched = patch(model, lines, "x", hash_names)
    assert model.to_bytes() == before
    new = int(hash_names(["lower[0]=new"])[0])
    always = int(hash_names(["always"])[0])
    expected = CRFModel(
        ("A", "B"),
        unigram=make_table({(key, -1, 0): 0.25, (new, -1, 1): 1.5}, False, "float32"),
        bigram=make_table({(always, 2, 1): 0.5}, True, "float32"),
    )
    assert patched.model.to_bytes() == expected.to_bytes()
    assert patched.n_changes == 7
    assert patched.names[new] == "lower[0]=new"
    assert patch(model, [], "x", hash_names).model.to_bytes() == before


@pytest.mark.parametrize(("line", "message"), read_golden(__file__, "bad_lines.jsonl"))
def test_a_line_that_is_refused_is_named(line, message):
    model = CRFModel(("A", "B"))
    templates = {"u": frozenset(["", "lower[0]"]), "b": frozenset([""])}
    lines = ["u\tlower[0]=x\t#\tA\t1", line]
    with pytest.raises(SparseCRFError, match=message) as caught:
        patch(model, lines, "weights.tsv", hash_names, templates)
    assert "weights.tsv, line 2" in str(caught.value)


def test_a_component_that_still_trains_is_dumped_and_a_refused_patch_changes_nothing(nlp, corpus):
    train(nlp, examples_of(nlp, corpus.train), 2)
    pipe = nlp.get_pipe("sparse_crf")
    lines = [*pipe.dump()]
    assert len(lines) == pipe.model.n_active > 0
    assert not [line for line in lines if "\t0x" in line]
    before = pipe.to_bytes()
    with pytest.raises(SparseCRFError, match="SC603.*no label"):
        pipe.patch(["u\tlower[0]=a\t#\tDT\t50", "u\tlower[0]=a\t#\tZZ\t50"], replace=True)
    with pytest.raises(SparseCRFError, match="SC603.*no template"):
        pipe.patch(["u\tlower[7]=a\t#\tDT\t50"])
    assert pipe.to_bytes() == before
