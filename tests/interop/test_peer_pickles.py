"""Pickles of sklearn-crfsuite 0.3.6 and 0.5.0, as protocols 0, 2 and 4, are read without it."""

import bz2
import copy
import gzip
import lzma
import os
import pickle
import sys
import zlib

import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.external_models import read_model
from spacy_sparsecrf.sklearn import CRF

from ..support.peers import PEERS

FILES = sorted(PEERS.glob("*.pkl.gz"))
PACK = {"plain": bytes, "zlib": zlib.compress, "bz2": bz2.compress, "xz": lzma.compress}
PACK |= {"gzip": gzip.compress, "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE)}


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_models_are_opened(path, pack, tmp_path):
    file = tmp_path / "old.pkl"
    file.write_bytes(PACK[pack](gzip.decompress(path.read_bytes())))
    crf = CRF.from_pickle(file)
    assert "sklearn_crfsuite" not in sys.modules
    assert (crf.c1, crf.c2, crf.max_iterations) == (0.1, pytest.approx(0.1), 50)
    assert crf.predict_single([{"w": "Ann", "b": 1.0}, {"w": "sees"}, {"w": "cats"}]) == [*"NVO"]
    assert read_model(file).labels == crf.classes_


class Call:
    """Calls a function when it is unpickled."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_other_names_are_refused_by_name(protocol, tmp_path):
    file, trace = tmp_path / "old.pkl", tmp_path / "trace"
    file.write_bytes(pickle.dumps(Call(os.mkdir, str(trace)), protocol))
    with pytest.raises(SparseCRFError, match="SC631.*old.pkl.*the name '(posix|nt).mkdir'"):
        CRF.from_pickle(file)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "Ran out of input"),
        (pickle.dumps({}), "it has a dict, not a CRF"),
        (gzip.compress(bytes(1 << 28)), "invalid load key"),
        (gzip.decompress(FILES[0].read_bytes())[:-9], "truncated|out of input"),
    ],
)
def test_damaged_pickles_are_refused(data, reason, tmp_path):
    (tmp_path / "old.pkl").write_bytes(data)
    with pytest.raises(SparseCRFError, match=f"SC631.*({reason})"):
        CRF.from_pickle(tmp_path / "old.pkl")


def test_programs_use_the_file_of_a_model(tmp_path):
    crf = CRF()
    assert crf.modelfile.name is None
    crf.fit([[["a"], ["b"]]], [["X", "Y"]])
    path = crf.modelfile.name
    assert path == crf.modelfile.name and read_model(type(tmp_path)(path)).labels == ["X", "Y"]
    copied = copy.deepcopy(crf)
    crf.modelfile.cleanup()
    assert not os.path.exists(path) and os.path.exists(other := copied.modelfile.name)
    del copied
    assert not os.path.exists(other)
    named = CRF(model_filename=str(tmp_path / "m")).fit([[["a"]]], [["X"]])
    named.modelfile.cleanup()
    assert named.modelfile.name == str(tmp_path / "m") and (tmp_path / "m").exists()
