"""The model and its file: exact round trips, and refusals."""

import struct

import numpy as np
import pytest

from spacy_sparsecrf.crf.model.file import FORMAT_VERSION
from spacy_sparsecrf.crf.model.model import CRFModel, WeightTable
from spacy_sparsecrf.errors import SparseCRFError

from ..support.file_types import model_of, stacked


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_round_trip_is_exact(dtype, tmp_path):
    model = model_of(dtype=dtype)
    again = CRFModel.from_bytes(model.to_bytes())
    assert again.labels == model.labels
    assert again.dtype == dtype
    assert again.n_active == 8
    for kind in ("unigram", "bigram"):
        for name, array in vars(getattr(model, kind)).items():
            other = getattr(getattr(again, kind), name)
            assert other.dtype == array.dtype
            np.testing.assert_array_equal(other, array)
    two = stacked(model)
    assert CRFModel.from_bytes(two.to_bytes()).to_bytes() == two.to_bytes()
    model.to_disk(tmp_path / "model")
    assert CRFModel.from_disk(tmp_path / "model").to_bytes() == model.to_bytes()


def test_features_with_very_many_weights_keep_their_counts():
    n = 70_000
    table = WeightTable(
        keys=np.array([5], np.uint64),
        indptr=np.array([0, n], np.int64),
        previous=np.repeat(np.arange(300, dtype=np.uint16), 300)[:n],
        labels=np.tile(np.arange(300, dtype=np.uint16), 300)[:n],
        values=np.ones(n, np.float32),
    )
    model = CRFModel([str(y) for y in range(300)], "float32", None, table)
    assert CRFModel.from_bytes(model.to_bytes()).bigram.indptr.tolist() == [0, n]


def test_every_truncation_every_changed_byte_and_newer_formats_are_refused():
    data = model_of().to_bytes()
    for position in range(len(data)):
        with pytest.raises(SparseCRFError, match="SC31[24]"):
            CRFModel.from_bytes(data[:position])
        changed = bytearray(data)
        changed[position] ^= 0x41
        with pytest.raises(SparseCRFError, match="SC31[234]"):
            CRFModel.from_bytes(bytes(changed))
    changed = bytearray(data)
    struct.pack_into("<I", changed, 8, FORMAT_VERSION + 1)
    with pytest.raises(SparseCRFError, match=r"SC313.*pip install -U spacy-sparsecrf"):
        CRFModel.from_bytes(bytes(changed))


def test_one_more_label_moves_the_start_label():
    model = CRFModel.from_bytes(model_of().to_bytes())
    model = model.with_labels((*model.labels, "C"))
    assert model.labels == ("A", "Ü", "B", "C")
    assert model.bigram.previous.tolist() == [1, 4, 2]
    assert model.with_labels((*model.labels, "D", "E")).bigram.previous.tolist() == [1, 6, 2]
    assert model.with_labels(model.labels) is model
    assert CRFModel.from_bytes(model.to_bytes()).labels == model.labels
    with pytest.raises(SparseCRFError, match="SC311"):
        model.with_labels((*model.labels, "B"))
