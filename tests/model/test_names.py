"""Feature names: syntax, record of names, and the file that stores them."""

import copy

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.crf.model import names as names_module
from spacy_sparsecrf.crf.model.names import ALWAYS, Names, Outside, read_hash, read_name, write_name
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.pipeline.features.naming import NameRecord, hash_names

from ..support.reference_features import hash_values
from ..support.toy import ENGLISH, blank_with, docs_of, examples_of, run_steps, train

texts = st.text(st.characters(codec="utf-8"), min_size=1)
tricky = st.text(st.sampled_from("\\\t\n\r|=^$01 a"), min_size=1)
numbers = st.integers(0, 2**64 - 1)
outside = st.integers(-1000, 1000).filter(bool).map(Outside)
values = st.one_of(texts, tricky, numbers, outside)
parts = st.lists(st.tuples(st.one_of(texts, tricky), values), max_size=4)


@given(parts)
def test_a_name_is_read_as_it_was_written(parts):
    name = write_name(parts)
    assert read_name(name) == parts
    assert [type(value) for _, value in read_name(name)] == [type(value) for _, value in parts]
    assert not set("\t\n\r") & set(name)
    assert read_hash(name) is None


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ([], "always"),
        ([("lower[-1]", "the"), ("lower[0]", "cat")], "lower[-1]=the|lower[0]=cat"),
        ([("length[0]", 3), ("orth[0]", "3")], r"length[0]=3|orth[0]=\3"),
        ([("orth[-2]", Outside(-2)), ("orth[1]", Outside(1))], "orth[-2]=^2|orth[1]=$1"),
        ([("orth[0]", "^2"), ("orth[1]", "$")], r"orth[0]=\^2|orth[1]=$"),
        ([("orth[0]", "a|b=\\")], r"orth[0]=a\|b\=\\"),
        ([("orth[0]", "\n\t")], r"orth[0]=\n\t"),
    ],
)
def test_names_look_like_this(parts, name):
    assert write_name(parts) == name
    for bad in ("", "lower[0]", "a=", "=b", "a=b|", "a=b=c", "|a=b", "a=b\\", f"a={2**64}"):
        with pytest.raises(ValueError):
            read_name(bad)


def test_names_hash_to_their_tests():
    names = ["always", "lower[-1]=the|lower[0]=cat", r"length[0]=3|orth[0]=\3", "orth[-2]=^2"]
    assert hash_names(names[:3]).tolist() == [
        hash_values(""),
        hash_values("lower[-1]|lower[0]", "the", "cat"),
        hash_values("length[0]|orth[0]", 3, "3"),
    ]
    assert hash_names([]).tolist() == []
    first = Featurizer(["u:orth[-2]"])([Doc(Vocab(), words=["a", "b", "c"])]).hashes[:, 0]
    assert hash_names([names[3], "orth[-2]=^1", "orth[-2]=a"]).tolist() == first.tolist()


def test_a_name_that_would_not_hash_to_its_test_is_left_out(monkeypatch):
    features = Featurizer(["u:lower[0]"])
    record = NameRecord(features)
    keys = record([Doc(ENGLISH, words=["A", "b"])]).hashes.ravel()
    monkeypatch.setattr(features.words(ENGLISH), "readers", (lambda text: text,))
    assert [*record.names(keys).values()] == ["lower[0]=b"]


def test_a_file_of_names_is_read_as_it_was_written():
    names = Names()
    names.add({2**64 - 1: "orth[0]=Straße", 7: ALWAYS, 9: "orth[0]=b"})
    keys = np.array([2**64 - 1, 8], dtype=np.uint64), np.array([7], dtype=np.uint64)
    data = names.to_bytes(*keys)
    read = Names(data)
    assert len(read) == 2
    assert (read[2**64 - 1], read[7], read[9]) == ("orth[0]=Straße", ALWAYS, f"0x{9:016x}")
    assert 7 in read and 9 not in read
    assert read.missing(np.array([7, 9], dtype=np.uint64)).tolist() == [9]
    assert Names(data).to_bytes(*keys) == data
    assert Names().to_bytes(*keys) == b""
    names.add({7: "orth[0]=c"})
    assert Names(names.to_bytes(*keys))[7] == "orth[0]=c"


def test_no_name_is_missing_while_another_thread_reads_the_file(monkeypatch):
    written = Names()
    written.add({1: "b:", 2: "u:lower[0]=a"})
    names = Names(written.to_bytes(np.array([1, 2], np.uint64)))
    read = names_module._read_names

    def read_twice(data):
        monkeypatch.setattr(names_module, "_read_names", read)
        assert len(names) == 2
        return read(data)

    monkeypatch.setattr(names_module, "_read_names", read_twice)
    assert names[2] == "u:lower[0]=a" and len(names) == 2


def keys_of(pipe) -> set[int]:
    return {*pipe.model.unigram.keys.tolist(), *pipe.model.bigram.keys.tolist()}


def names_of(pipe) -> set[str]:
    return {pipe.trained.names[key] for key in keys_of(pipe)}


def test_names_survive_bytes_disk_copies_and_pickles(trained, trained_dir, tmp_path):
    pipe = trained.get_pipe("sparse_crf")
    expected = names_of(pipe)
    assert (trained_dir / "sparse_crf" / "names").is_file()
    assert len(pipe.trained.names) == len(keys_of(pipe))
    assert not [name for name in expected if name.startswith("0x")]
    assert ALWAYS in expected
    other = blank_with().get_pipe("sparse_crf")
    assert names_of(other.from_bytes(pipe.to_bytes())) == expected
    assert names_of(copy.deepcopy(pipe)) == expected
    trained.to_disk(tmp_path / "a")
    again = spacy.load(tmp_path / "a")
    assert names_of(again.get_pipe("sparse_crf")) == expected
    again.to_disk(tmp_path / "b")
    first, second = (tmp_path / x / "sparse_crf" / "names" for x in "ab")
    assert first.read_bytes() == second.read_bytes()
    # Without the file, a pipeline can be loaded and saved without names.
    first.unlink()
    nlp = spacy.load(tmp_path / "a")
    pipe = nlp.get_pipe("sparse_crf")
    assert all(name.startswith("0x") for name in names_of(pipe))
    # An existing file belongs to another model, and is removed.
    first.write_bytes(b"old")
    nlp.to_disk(tmp_path / "a")
    assert not first.exists()
    assert "names" not in spacy.util.srsly.msgpack_loads(pipe.to_bytes(exclude=["names"]))


def test_names_are_those_of_the_model_that_is_saved(nlp, corpus, tmp_path):
    examples = examples_of(nlp, corpus.train)
    nlp.initialize(lambda: examples)
    for _ in range(3):
        run_steps(nlp, examples, 1)
        nlp.to_disk(tmp_path)
        pipe = spacy.load(tmp_path).get_pipe("sparse_crf")
        assert sorted(pipe.trained.names._known().tolist()) == sorted(keys_of(pipe))


def test_weights_to_continue_from_bring_their_names(trained_dir, tmp_path):
    # No stored names, and no gold label in the corpus.
    nlp = blank_with(learning={"store_feature_names": False})
    pipe = nlp.get_pipe("sparse_crf")
    docs = docs_of(nlp, [(["a"], ["DT"])])
    examples = [spacy.training.Example(doc, doc.copy()) for doc in docs]
    pipe.initialize(lambda: examples, nlp=nlp, init_weights=trained_dir)
    expected = names_of(spacy.load(trained_dir).get_pipe("sparse_crf"))
    assert names_of(pipe) == expected
    pipe.to_disk(tmp_path / "x")
    assert (tmp_path / "x" / "names").is_file()


def test_features_of_another_kind_have_no_names(nlp, corpus):
    pipe, features = nlp.get_pipe("sparse_crf"), Featurizer(["u:lower[0]", "b:"])
    pipe.features = lambda docs, sequences: features(docs, sequences)
    examples = examples_of(nlp, corpus.train)
    train(nlp, examples, 1)
    assert "names" not in spacy.util.srsly.msgpack_loads(pipe.to_bytes(exclude=["features"]))
    assert all(name.startswith("0x") for name in names_of(pipe))
    pipe.explain_doc(examples[0].predicted)
