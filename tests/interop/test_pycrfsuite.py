"""The interface of python-crfsuite: a trainer, a tagger, and two roads with the same labels."""

import itertools
import pickle
import struct
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import srsly

from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.interop.crfsuite_file import ExternalWeights, write_crfsuite
from spacy_sparsecrf.interop.sequences import kernel_loading, plain_road, predictor, scoring
from spacy_sparsecrf.pycrfsuite import ItemSequence, Tagger, Trainer
from spacy_sparsecrf.sklearn import CRF

from ..reference import n_repetitions
from ..support.sequences import make_xy

X, Y = make_xy()
N_MODELS = 4  # for each number of labels


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    found: Path = tmp_path_factory.mktemp("models") / "model.crfsuite"
    trainer = Trainer(params={"c1": 0.1, "c2": 0.1}, verbose=False)
    for pair in zip(X, Y, strict=True):
        trainer.append(*pair)
    trainer.train(found)
    return found


def opened(model: bytes, plain: bool, cost: float = 1e9, once: Any = ()) -> Tagger:
    """Open a model, plainly: as in a process without loaded kernels. cost: of loading them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_loading, "COST", cost)
        if plain:
            patch.delitem(sys.modules, scoring.__name__)
        found = Tagger(once)
        found.open_inmemory(model)
    return found


def test_a_fresh_process_imports_the_standard_library_alone(path):
    script = f"""
import sys
before = {{*sys.modules}}
from spacy_sparsecrf.pycrfsuite import Tagger
tagger = Tagger()
tagger.open({str(path)!r})
x = {X[0]!r}
tagger.set(x)
labels = tagger.tag()
assert labels == {CRF(model_filename=str(path)).predict_single(X[0])!r}
assert 0 < tagger.probability(labels) <= tagger.marginal(labels[0], 0) <= 1
heavy = {{"numpy", "numba", "spacy", "sklearn", "srsly", "scipy"}}
assert not heavy & {{name.partition(".")[0] for name in sys.modules.keys() - before}}
tagger.warm()
assert tagger.tag(x) == labels and "numba" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def model_of(
    draw: np.random.Generator, n_labels: int, n_names: int, labels: list[str] | None = None
) -> bytes:
    """Return a random model whose weights are few numbers, so that many paths have equal scores."""
    weights, names = [-1.0, -0.25, 0.5, 1.0], [f"a{k}" for k in range(n_names)]
    states = [(k, -1, y) for k in range(n_names) for y in range(n_labels) if draw.random() < 0.6]
    pairs = [(n_names, i, y) for i in range(n_labels) for y in range(n_labels)]
    ids = np.array(states + pairs).T
    values = draw.choice(weights, ids.shape[1]) * draw.choice([1.0, 0.1], ids.shape[1])
    labels = labels or [f"L{y}" for y in range(n_labels)]
    return write_crfsuite(labels, names, ExternalWeights(*ids, values))


def sequences_of(draw: np.random.Generator, n: int) -> list[list[dict[str, Any]]]:
    """Draw sequences, some without tokens, of features that are often unknown."""
    values: list[Any] = [True, True, True, 1, 0, 0.1, -0.7, 2.5]
    return [
        [
            {f"a{k}": values[draw.integers(len(values))] for k in draw.integers(0, 8, 3)}
            for _ in range(draw.integers(0, 7))
        ]
        for _ in range(n)
    ]


@pytest.mark.parametrize("n_labels", [1, 2, 3, 5, 9, 17])
def test_both_roads_label_the_same_also_if_paths_tie(n_labels):
    draw = np.random.default_rng(n_labels)
    for _ in range(N_MODELS):
        model = model_of(draw, n_labels, 6)
        plain, compiled, new = opened(model, True), opened(model, False), sequences_of(draw, 200)
        assert [*map(plain.tag, new)] == [*map(compiled.tag, new)]
        assert [*plain.predictor.labels(new)] == [*compiled.predictor.labels(new)]
        for x in new[:20]:
            labels = plain.tag(x)
            compiled.set(x)
            assert plain.probability(labels) == pytest.approx(compiled.probability(labels))
            for t, label in enumerate(labels):
                expected = pytest.approx(compiled.marginal(label, t))
                assert plain.marginal(label, t) == expected
            pair = [*plain.predictor.marginals([x])], [*compiled.predictor.marginals([x])]
            for ours, theirs in zip(*pair, strict=True):
                assert [*ours] == [pytest.approx(row) for row in theirs]


@pytest.mark.parametrize(
    ("labels", "once"),
    [
        ([f"L{y}" for y in range(5)], ["L1", "L4"]),
        (["O", "B-X", "I-X", "B-Y", "I-Y"], ["X", "Y"]),
        (["B-X"], ["X"]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*SCW403")
def test_both_roads_label_the_same_if_names_occur_once(labels, once):
    draw, n_changed = np.random.default_rng(5), 0
    for _ in range(N_MODELS):
        model, new = model_of(draw, len(labels), 6, labels), sequences_of(draw, 100)
        plain, compiled = (opened(model, is_plain, once=once) for is_plain in (True, False))
        free = [*opened(model, False).predictor.labels(new)]
        found = [*map(plain.tag, new)]
        assert found == [*map(compiled.tag, new)] == [*plain.predictor.labels(new)]
        assert found == [*compiled.predictor.labels(new)]
        for x, own, other in zip(new, found, free, strict=True):
            if not n_repetitions([*map(labels.index, other)], labels, once):
                assert own == other
            elif len(labels) > 1:
                n_changed += 1
                assert not n_repetitions([*map(labels.index, own)], labels, once)
                compiled.set(x)
                plain.set(x)
                p = compiled.probability(own)
                assert p == pytest.approx(plain.probability(own))
                assert p <= compiled.probability(other)
    assert n_changed or len(labels) == 1


def test_an_estimator_and_a_tagger_give_a_label_once(path):
    free, label = CRF(model_filename=str(path)), "NN"
    crf, tagger = CRF(model_filename=str(path), once=[label]), Tagger([label]).open(path)

    def runs(labels: list[str]) -> int:
        return sum(b == label != a for a, b in itertools.pairwise(["", *labels]))

    assert max(map(runs, free.predict(X))) > 1
    for copied in crf, pickle.loads(pickle.dumps(crf)), free.set_params(once=(label,)):  # noqa: S301
        found = [*copied.predict(X)]
        assert max(map(runs, found)) == 1
        assert found == [*map(tagger.tag, X)] == [*map(copied.predict_single, X)]
    assert [*map(pickle.loads(pickle.dumps(tagger)).tag, X)] == found  # noqa: S301
    with tagger:
        tagger.close()
    assert tagger.open(path).tag(X[0]) == found[0]
    assert max(map(runs, free.set_params(once=None).predict(X))) > 1
    fitted = CRF(c1=0.1, max_iterations=9, once={label}).fit(X, Y)
    assert max(map(runs, fitted.predict(X))) == 1
    message = r"SC419\] once: 'NB' is .*Choose from: DT, IN, JJ, NN, VB\."
    for wrong in (Tagger(["NB"]).open, CRF(once=["NB"]).fit):
        with pytest.raises(SparseCRFError, match=message):
            wrong(*((path,) if wrong.__name__ == "open" else (X, Y)))


def test_the_kernels_are_loaded_when_the_plain_road_has_cost_enough(path):
    model = path.read_bytes()
    expected, tagger = opened(model, False), opened(model, True, cost=0.0)
    assert expected.predictor.loading is None
    labels = expected.tag(X[0])
    while tagger.predictor.loading is not None:
        assert tagger.tag(X[0]) == labels
    assert tagger.tag(X[0]) == labels
    # The switch belongs to a model. A batch waits for the kernels.
    other = opened(model, True)
    assert other.tag(X[0]) == labels and other.predictor.loading is not None
    lazy = opened(model, True, cost=0.0)
    found = [*lazy.predictor.labels((token for token in x) for x in X)]
    assert found == [*expected.predictor.labels(X)] and lazy.predictor.loading is None


def test_without_kernels_the_plain_road_stays(path, monkeypatch):
    tagger, compiled = (opened(path.read_bytes(), road, once=["NN"]) for road in (True, False))
    expected = [*compiled.predictor.labels(X)]
    monkeypatch.setattr(predictor, "Numbered", None)
    with pytest.warns(SparseCRFWarning, match="SCW806.*TypeError"):
        tagger.warm()
    monkeypatch.setattr(plain_road, "MOST_STEPS", 0)
    assert [*map(tagger.tag, X)] == expected


def test_a_long_search_for_labels_that_occur_once_loads_the_kernels():
    model = model_of(np.random.default_rng(3), 5, 6)
    tagger, text = opened(model, True, once=["L1", "L2"]), [[f"a{k % 6}"] for k in range(3000)]
    found = tagger.tag(text)
    assert found == opened(model, False, once=["L1", "L2"]).tag(text)
    assert tagger.predictor.loading is None


def test_a_fork_while_the_kernels_load_never_waits(path):
    script = f"""
import os, signal, time
from spacy_sparsecrf.pycrfsuite import Tagger
path, x = {str(path)!r}, {X[0]!r}
tagger = Tagger().open(path)
labels = tagger.tag(x)
def warm_another():
    with open(path, "rb") as file:
        other = Tagger().open_inmemory(file.read())
    other.warm()
    other.tag(x)
asked = tagger.info, lambda: tagger.dump(os.devnull), tagger.warm, warm_another, tagger.close
thread = tagger.predictor.loading.start()
for k in range(50):
    child = os.fork()
    if not child:
        signal.alarm(20)
        equal = tagger.tag(x) == labels
        asked[k % 5]()
        os._exit(not equal)
    assert os.waitpid(child, 0)[1] == 0
    time.sleep(0.005)
thread.join()
assert tagger.tag(x) == labels and tagger.predictor.loading is None
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("seconds", [0, 0.05, 0.2, 0.5])
def test_a_process_ends_silently_while_the_kernels_load(path, seconds):
    script = f"""
import time
from spacy_sparsecrf.pycrfsuite import Tagger
tagger = Tagger().open({str(path)!r})
tagger.predictor.loading.start()
time.sleep({seconds})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_last_opened_files_are_kept(path, tmp_path, monkeypatch):
    copied = tmp_path / "model"
    copied.write_bytes(path.read_bytes())
    kept = Tagger().open(copied).predictor
    assert Tagger().open(copied).predictor is kept is not Tagger(["NN"]).open(copied).predictor
    copied.write_bytes(model_of(np.random.default_rng(0), 3, 6))
    assert Tagger().open(copied).labels() == ["L0", "L1", "L2"]
    monkeypatch.setenv("SPARSECRF_WARM", "1")
    assert opened(path.read_bytes(), True).predictor.loading is None


def test_python_crfsuite_opens_the_model(path, tmp_path):
    peer = pytest.importorskip("pycrfsuite").Tagger()
    peer.open(str(path))
    tagger = Tagger()
    with tagger.open(path):
        info, theirs = tagger.info(), peer.info()
        assert info.labels == theirs.labels and info.attributes == theirs.attributes
        assert info.transitions == pytest.approx(theirs.transitions, abs=1e-6)
        assert info.state_features == pytest.approx(theirs.state_features, abs=1e-6)
        for x in X:
            assert tagger.tag(x) == peer.tag(x)
            for t in range(len(x)):
                for label in tagger.labels():
                    expected = pytest.approx(peer.marginal(label, t), abs=1e-5)
                    assert tagger.marginal(label, t) == expected
        ours, own = tmp_path / "ours", tmp_path / "own"
        tagger.dump(ours)
        peer.dump(str(own))
        lines, expected = (each.read_text(encoding="utf8").split("\n") for each in (ours, own))
        assert {line for line in lines if "-->" in line} == {x for x in expected if "-->" in x}


@pytest.mark.parametrize("options", [{}, {"start_label": True}], ids=str)
def test_an_estimator_is_saved_for_python_crfsuite(tmp_path, options):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    crf = CRF(c1=0.05, c2=0.01, max_iterations=40, **options).fit(X, Y)
    crf.save(tmp_path / "model")
    peer = pycrfsuite.Tagger()
    peer.open(str(tmp_path / "model"))
    first = {"__BOS__": True} if options else {}
    new = [[{**x[0], **first}, *x[1:]] for x in X]
    assert [peer.tag(x) for x in new] == [*crf.predict(X)]
    for x, own in zip(new, crf.predict_marginals(X), strict=True):
        peer.set(x)
        for t, row in enumerate(own):
            found = {label: peer.marginal(label, t) for label in row}
            assert found == pytest.approx(row, abs=1e-5)


def test_pairs_of_features_and_labels_are_refused_by_name(tmp_path):
    crf = CRF(c1=0.05, max_iterations=9, bigrams=["end"]).fit(X, Y)
    with pytest.raises(SparseCRFError, match=r"SC822\] .* end:"):
        crf.save(tmp_path / "model")
    assert not [*tmp_path.iterdir()]


def test_a_trainer_reports_and_holds_out(tmp_path, capsys):
    trainer = Trainer("lbfgs", {"c1": 0.1, "max_iterations": "30"})
    trainer.set("feature.possible_transitions", "1")
    for i, pair in enumerate(zip(X, Y, strict=True)):
        trainer.append(*pair, group=i % 4)
    trainer.train(str(tmp_path / "model"), holdout=1)
    log = trainer.logparser
    assert log.last_iteration is log.iterations[-1]
    nums = [row["num"] for row in log.iterations]
    assert nums == sorted(nums) and nums[-1] <= 30 and len(nums) > 1
    assert log.last_iteration["loss"] == min(row["loss"] for row in log.iterations)
    assert 0.5 < log.last_iteration["item_accuracy_float"] <= 1.0
    written = capsys.readouterr().out
    assert "type: CRF1d\n" in written and written.count("***** Iteration #") == len(nums)
    kept = [i for i in range(len(X)) if i % 4 != 1]
    options = {"c1": 0.1, "max_iterations": 30, "all_possible_transitions": True}
    same = CRF(**options).fit([X[i] for i in kept], [Y[i] for i in kept])
    tagger = Tagger()
    tagger.open(tmp_path / "model")
    assert tagger.info().state_features == same.state_features_
    assert [*map(tagger.tag, X)] == [*same.predict(X)]
    assert tagger.info().header["size"] == str((tmp_path / "model").stat().st_size)
    trainer.clear()
    with pytest.raises(SparseCRFError, match="SC305"):
        trainer.train("")


@pytest.mark.parametrize("verbose", [True, False])
def test_a_subclass_receives_what_a_trainer_reports(verbose, capsys):
    rows, logs, lines = [], [], []

    class Reporter(Trainer):
        def on_iteration(self, log, info):
            rows.append(info)
            logs.append(log)

        def message(self, message):
            lines.append(message)

    trainer = Reporter(params={"c1": 0.1, "max_iterations": 30}, verbose=verbose)
    for pair in zip(X, Y, strict=True):
        trainer.append(*pair)
    trainer.train("")
    iterations = trainer.logparser.iterations
    assert rows == (iterations if verbose else [])
    told = "".join(logs if verbose else lines)
    assert all(f"***** Iteration #{row['num']} *****\nloss: " in told for row in iterations)
    assert "type: CRF1d\n" in lines and not capsys.readouterr().out


def test_parameters_are_those_of_python_crfsuite():
    pycrfsuite = pytest.importorskip("pycrfsuite")
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        ours, peer = Trainer(algorithm), pycrfsuite.Trainer(algorithm)
        for name in peer.params():
            ours.set(name, peer.get(name))
        assert {"max_iterations", "feature.minfreq"} <= {*ours.params()}
        assert ours.get("max_iterations") == peer.get("max_iterations")
        assert all(ours.help(name) for name in ours.params())
    for name, value in (("c3", 1), ("c1", "much"), ("max_iterations", "nan")):
        with pytest.raises(SparseCRFError, match=rf"SC809\] .*{name}"):
            Trainer().set(name, value)
    with pytest.raises(SparseCRFError, match=r"SC809\] algorithm = 'sgd'"):
        Trainer("sgd")
    with pytest.raises(SparseCRFError, match="SC802"):
        Trainer().append([{"a": 1}], [])
    trainer = Trainer("l2sgd", {"calibration.eta": 0.2}, verbose=False)
    trainer.append(X[0], Y[0])
    with pytest.warns(SparseCRFWarning, match="SCW802.*calibration_eta"):
        trainer.train("")


def test_items_are_read_once(path):
    tagger, items = Tagger(), ItemSequence(X[0])
    tagger.open(path)
    assert tagger.tag(items) == tagger.tag(X[0])
    assert ItemSequence(items.items()).items() == items.items()
    assert ItemSequence([["a", "a"], {"b": {"c": 2}}]).items() == [{"a": 2.0}, {"b:c": 2.0}]
    with pytest.raises(SparseCRFError, match=r"SC801\] xseq\[1\]"):
        ItemSequence([{}, 3])


def test_a_tagger_without_a_model_says_so(path, tmp_path):
    tagger = Tagger()
    closed: list[Any] = [tagger.labels, tagger.info, tagger.tag, lambda: tagger.set([{}])]
    closed += [lambda: tagger.probability([]), lambda: tagger.dump(tmp_path / "no")]
    assert Tagger().open(path).tag(X[0]) == CRF(model_filename=str(path)).predict_single(X[0])
    with tagger.open(path) as opened_tagger:
        assert opened_tagger is tagger
        assert tagger.labels() == sorted({label for own in Y for label in own})
        assert pickle.loads(pickle.dumps(tagger)).tag(X[0]) == tagger.tag(X[0])  # noqa: S301
    for each in closed:
        for kind in (RuntimeError, ValueError):
            with pytest.raises(kind, match="SC823"):
                each()
    with pytest.raises(OSError, match="absent"):
        tagger.open(tmp_path / "absent")
    for data in (b"", b"lCRFabc", b"text", path.read_bytes()[:-1]):
        with pytest.raises(SparseCRFError, match="SC631"):
            tagger.open_inmemory(data)


ROADS = pytest.mark.parametrize("plain", [True, False], ids=["plain", "compiled"])
LABELS = ["x", "y", "z"]


def small_model() -> bytes:
    """Return a model of three attributes, each of which has one label."""
    return write_crfsuite(
        LABELS, ["a", "b", "c"], ExternalWeights.of([(k, -1, k, 1.0) for k in range(3)])
    )


@ROADS
@pytest.mark.parametrize("number", [3, 4, 0x7FFFFF00, 0xFFFFFFFF])
def test_a_number_beyond_the_attributes_of_the_file_is_refused(plain, number):
    """Kernels used it as an index."""
    data = bytearray(small_model())
    struct.pack_into("<I", data, data.index(b"a\0") - 8, number)
    tagger = opened(bytes(data), plain)
    with pytest.raises(SparseCRFError, match=f"SC631.*the model is damaged.*{number}"):
        tagger.tag([["a"]])
    assert tagger.tag([["b"], ["c"]]) == ["y", "z"]


@ROADS
def test_damage_found_while_tagging_names_the_file_of_the_model(plain):
    data = small_model()
    at = data.index(b"AFRF") + 12
    tagger = opened(data[:at] + b"\xff" * 12 + data[at + 12 :], plain)
    for use in (lambda: tagger.tag([["a"]]), lambda: [*tagger.predictor.labels([[["a"]]])]):
        with pytest.raises(SparseCRFError, match="SC631.*the model is damaged"):
            use()


def many_labels(n: int) -> bytes:
    return write_crfsuite([f"L{y}" for y in range(n)], ["a"], ExternalWeights.of([(0, -1, 1, 1.0)]))


@pytest.mark.parametrize(
    ("n", "needs"),
    [
        (30_000, "28.8 GB of 500 MB memory. "),
        (3000, "288 MB of 129 MB memory, 1000 times its size"),
    ],
)
@ROADS
def test_labels_whose_pairs_take_too_much_memory_are_refused(n, needs, plain, monkeypatch):
    """30,000 labels without weights of pairs are a file of 1.3 MB, and matrices of 29 GB."""
    monkeypatch.setattr("spacy_sparsecrf.crf.memory.available_memory", lambda: 500_000_000)
    data = many_labels(n)
    tracemalloc.start()
    with pytest.raises(SparseCRFError, match=f"SC222] the model has {n} labels.*{needs}"):
        opened(data, plain, once=("L1",))
    assert tracemalloc.get_traced_memory()[1] < 16 * len(data)
    tracemalloc.stop()


@ROADS
def test_transitions_stay_sparse(plain):
    tagger = opened(many_labels(999), plain)
    tracemalloc.start()
    assert not tagger.info().transitions
    assert tracemalloc.get_traced_memory()[1] < 4 * 999**2  # less than four bytes for each pair
    tracemalloc.stop()


def test_marginals_of_very_large_scores_are_probabilities():
    weights = ExternalWeights.of([(0, -1, y, 3e38 - y * 1e38) for y in range(3)])
    tagger = opened(write_crfsuite(LABELS, ["a"], weights), plain=True)
    assert tagger.tag([["a"]] * 3) == ["x"] * 3
    assert [tagger.marginal(label, 1) for label in LABELS] == [1.0, 0.0, 0.0]


def test_a_file_of_ours_with_other_contents_is_refused():
    """Numbers of attributes, and names, as no training writes them."""
    crf = CRF(c1=0.05, max_iterations=5, bigrams=["word"]).fit(X, Y)
    trained = crf.tagger_.predictor.trained
    sound = srsly.msgpack_loads(trained.to_bytes())
    model, names = sound["model"], sound["attributes"]
    zero = replace(
        trained.model.unigram, keys=np.arange(len(trained.model.unigram.keys), dtype=np.uint64)
    )
    for changed in (
        {"model": model, "attributes": names[:-1]},
        {"model": model, "attributes": [*range(len(names))]},
        {"model": CRFModel(trained.labels, "float32", zero).to_bytes(), "attributes": names},
        {"model": CRFModel().to_bytes(), "attributes": names},
        {"model": CRFModel(["A", ""]).to_bytes(), "attributes": names},
        {"model": 1, "attributes": names},
        [sound],
    ):
        with pytest.raises(SparseCRFError, match="SC631.*the model is damaged"):
            Tagger().open_inmemory(srsly.msgpack_dumps(changed))
