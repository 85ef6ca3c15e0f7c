"""Training on batches that was cut off goes on to the same weights."""

from __future__ import annotations

import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.solvers.sgd_l1 import SGDL1
from spacy_sparsecrf.training.training import Training

from .streaming_cases import LABELS, NONE, SOLVERS, make_case, make_stream


@pytest.mark.parametrize("name", SOLVERS)
def test_a_stream_goes_on_to_the_same_weights(name, tmp_path):
    make, penalty = SOLVERS[name]
    case = make_case(missing=0.1)
    whole, cut = (make_stream(case, make(horizon=5), penalty) for _ in range(2))
    for batch in (*case.batches, *case.batches):
        whole.learn(batch)
    for batch in case.batches[:2]:
        cut.learn(batch)
        # Taking the model changes nothing.
        cut.model()
    cut.save(tmp_path / "run")
    later = make_stream(case, make(horizon=5), penalty)
    later.resume(tmp_path / "run")
    assert later.model().to_bytes() == cut.model().to_bytes()
    for batch in (case.batches[2], *case.batches):
        assert later.learn(batch) == cut.learn(batch)
    assert later.model().to_bytes() == whole.model().to_bytes()
    assert cut.model().to_bytes() == whole.model().to_bytes()
    assert whole.model().n_active > 0


def test_a_stream_that_has_not_begun_leaves_no_file(tmp_path):
    make_stream(make_case(), SGDL1(), NONE).save(tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("solver", "options", "differing"),
    [
        (SGDL1(horizon=6), {}, "horizon, solver"),
        (SGDL1(horizon=5), {"kind": "memm"}, "kind"),
        (SGDL1(horizon=5), {"l1": 0.1}, "l1"),
    ],
)
def test_the_checkpoint_of_another_stream_is_refused(tmp_path, solver, options, differing):
    case = make_case()
    stream = make_stream(case, SGDL1(horizon=5), NONE)
    stream.learn(case.batches[0])
    stream.save(tmp_path / "run")
    other = make_stream(case, solver, NONE, **options)
    with pytest.raises(SparseCRFError, match=f"SC316.*run: {differing} differ"):
        other.resume(tmp_path / "run")


def test_checkpoints_of_streams_and_of_passes_are_told_apart(tmp_path):
    case = make_case()
    stream = make_stream(case, SGDL1(), NONE)
    stream.learn(case.batches[0])
    stream.save(tmp_path / "stream")
    training = Training(case.problem.corpus, LABELS, SGDL1(), l1=0.0, l2=0.0)
    with pytest.raises(SparseCRFError, match="SC316.*corpus"):
        training.resume(tmp_path / "stream")
    training.step()
    training.save(tmp_path / "passes")
    with pytest.raises(SparseCRFError, match="SC316.*stream"):
        stream.resume(tmp_path / "passes")
