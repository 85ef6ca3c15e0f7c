"""CRFsuite's model files: read in place, and written byte by byte as CRFsuite does."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.crfsuite_file import (
    CrfsuiteModel,
    ExternalWeights,
    hash_of,
    write_crfsuite,
)
from spacy_sparsecrf.interop.external_models import of_crfsuite, read_model

from ..support.peers import crfsuite
from ..support.sequences import make_xy

NONE = ExternalWeights(*[np.empty(0, np.int64)] * 4)
BYTES = st.binary(max_size=9).filter(lambda key: 0 not in key)
TEXTS = BYTES.map(lambda key: key.decode("utf8", "surrogateescape"))
NAMES = st.text(st.characters(codec="utf8", exclude_characters="\0")) | TEXTS


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    """A model that CRFsuite has trained, also on names that are not ASCII."""
    X, y = make_xy()
    X = [[{**token, "é": "\n\t ñ" * i} for i, token in enumerate(tokens)] for tokens in X]
    found: Path = tmp_path_factory.mktemp("crfsuite") / "model"
    crfsuite(X, y, found, c1=0.1, max_iterations=20)
    return found


def test_a_file_of_crfsuite_is_written_again_byte_by_byte(path):
    model = read_model(path)
    written = write_crfsuite(model.labels, model.features[:-1], model.weights)
    assert written == path.read_bytes()
    read = CrfsuiteModel(written)
    assert read.labels == model.labels and read.attributes == model.features[:-1]
    states = {
        (number, label): weight
        for number in range(1, len(read.attributes) + 1)
        for label, weight in read.states(number).items()
    }
    features, previous, labels, values = (each.tolist() for each in model.weights)
    rows = zip(features, previous, labels, values, strict=True)
    expected = {(k + 1 if i < 0 else (i,), y): value for k, i, y, value in rows}
    assert states | {((i,), y): weight for i, y, weight in read.transitions()} == expected


@given(st.lists(NAMES.filter(bool), unique=True, min_size=1), st.lists(NAMES, unique=True))
def test_names_of_any_bytes_are_found(labels, names):
    model = CrfsuiteModel(write_crfsuite(labels, names, NONE))
    assert model.labels == labels and model.attributes == names
    assert [model.numbers[name] for name in names] == [*range(1, len(names) + 1)]
    assert model.numbers["absent from all, surely"] == 0


def test_the_hash_is_that_of_the_published_program():
    """A value that lookup3's author gives for his own tests."""
    assert hash_of(b"Four score and seven years ago") == 0x17770551


def test_names_with_zero_bytes_are_refused():
    with pytest.raises(SparseCRFError, match=r"SC821\] 'a\\x00b'"):
        write_crfsuite(["a\0b"], [], NONE)


def test_damage_is_reported_where_it_is_met(path):
    """Each byte in turn is changed: the model is refused, or all that it returns is valid."""
    data, n = path.read_bytes(), 0
    for at in range(0, len(data), 7):
        changed = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
        try:
            model = CrfsuiteModel(changed)
            names = model.attributes
            n_labels = len(model.labels)
            assert all(max(i, y) < n_labels for i, y, _ in model.transitions())
            for name in names[:20]:
                number = model.numbers[name]
                assert number <= len(names)
                assert all(0 <= y < n_labels for y in model.states(number or 1))
        except SparseCRFError as error:
            n += 1
            assert "SC631" in str(error)
    assert n
    for size in (0, 3, 47, 60, len(data) - 1):
        with pytest.raises(SparseCRFError, match="SC631"):
            CrfsuiteModel(data[:size])


@pytest.mark.parametrize(
    ("labels", "reason"),
    [([], "has no labels"), (["A", ""], "is empty"), (["A", "B", "A"], "is there twice")],
)
def test_labels_that_are_none_are_refused(labels, reason, tmp_path):
    data = write_crfsuite(labels, ["a"], NONE)
    (tmp_path / "model").write_bytes(data)
    with pytest.raises(SparseCRFError, match=f"SC631.*the model is .*{reason}"):
        CrfsuiteModel(data)
    with pytest.raises(SparseCRFError, match=f"SC631.*{reason}"):
        read_model(tmp_path / "model")


@pytest.mark.parametrize("key", [b"l\0b\0", b"labe", b"\0\0\0\0"])
def test_names_end_with_their_only_zero_byte(key):
    data = write_crfsuite(["lab"], ["att"], NONE)
    with pytest.raises(SparseCRFError, match="SC631.*zero byte"):
        CrfsuiteModel(data.replace(b"lab\0", key))


@pytest.mark.parametrize("weight", [np.nan, np.inf, -1e39])
@pytest.mark.parametrize("place", [(0, -1), (1, 0)], ids=["of an attribute", "of a transition"])
def test_weights_whose_sums_may_be_infinite_are_refused(weight, place):
    data = write_crfsuite(["A"], ["a"], ExternalWeights.of([(*place, 0, weight)]))
    with pytest.raises(SparseCRFError, match="SC631.*not finite in 32 bits"):
        of_crfsuite(CrfsuiteModel(data))
