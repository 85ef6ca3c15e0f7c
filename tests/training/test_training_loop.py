"""A batch solver in spaCy's training loop, its settings and batches, and in a custom loop."""

import gc
import warnings
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy import Config
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches, train_while_improving
from spacy.util import registry
from spacy.vocab import Vocab

from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.pipeline.example_reader import make_annotated_corpus
from spacy_sparsecrf.pipeline.loop import ONE_STEP, full_collections_suspended, one_step_per_epoch
from spacy_sparsecrf.pipeline.spacy_loop import Loop

from ..support.runs import config_for, run_training
from ..support.toy import ENGLISH, accuracy, blank_with, examples_of, run_steps
from ..support.toy import train as train_steps

NETWORK = {"@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None}
NETWORK |= {"width": 16, "depth": 1, "embed_size": 100, "window_size": 1}
NETWORK |= {"maxout_pieces": 2, "subword_features": True}
SMALL_TAGGER = {"@architectures": "spacy.Tagger.v2", "tok2vec": NETWORK}


def with_sourced(config: Any, name: str, path: Path, *, frozen: bool, first: bool = True) -> Any:
    """Return the config with a component of a saved pipeline added to `sparse_crf`."""
    config["components"][name] = {"source": str(path), "component": "sparse_crf"}
    names = config["nlp"]["pipeline"]
    config["nlp"]["pipeline"] = [name, *names] if first else [*names, name]
    config["training"]["frozen_components"] = [name] if frozen else []
    return config


def test_a_row_of_the_log_is_an_iteration_and_its_loss_the_objective(corpus):
    nlp, rows = run_training(config_for(corpus, patience=0, max_steps=4))
    assert [(int(row[0]), int(row[1])) for row in rows] == [(i, i) for i in range(5)]
    losses = [float(row[2]) for row in rows]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > losses[-1] > 0
    assert accuracy(nlp, corpus.dev) > 0.95


def test_patience_stops_on_the_development_score_and_keeps_the_best(corpus, tmp_path):
    _, rows = run_training(config_for(corpus, patience=3), tmp_path)
    scores = [float(row[3]) for row in rows]
    assert len(rows) == scores.index(max(scores)) + 1 + 3
    best = spacy.load(tmp_path / "model-best")
    assert best.meta["performance"]["tag_acc"] == pytest.approx(accuracy(best, corpus.dev))
    assert 100 * best.meta["performance"]["tag_acc"] == pytest.approx(max(scores), abs=0.01)


LOWER = {"augmenter": {"@augmenters": "spacy.lower_case.v1", "level": 0.5}}
OF_SPACY = {"@readers": "spacy.Corpus.v1", "gold_preproc": False}
READINGS = [{}, {"keep": False}, {"limit": 30}, LOWER]


@pytest.fixture
def reads(monkeypatch) -> Counter[str]:
    """Count how often each file of Docs is read."""
    found, read = Counter[str](), DocBin.from_disk

    def from_disk(self: DocBin, path: Path) -> DocBin:
        found[path.name] += 1
        return read(self, path)

    monkeypatch.setattr(DocBin, "from_disk", from_disk)
    return found


@pytest.mark.parametrize("settings", READINGS, ids=str)
def test_a_run_reads_few_files_and_learns_as_with_spacys_reader(settings, corpus, reads):
    config, theirs = (config_for(corpus, patience=0, max_steps=3) for _ in range(2))
    config["corpora"]["train"].update(settings)
    own = {key: value for key, value in settings.items() if key != "keep"}
    theirs["corpora"] = {
        "train": {**OF_SPACY, "path": corpus.train_path, **own},
        "dev": {**OF_SPACY, "path": corpus.dev_path},
    }
    nlp, rows = run_training(config)
    assert reads == {"train.spacy": 2, "dev.spacy": 1}  # by initialize, and by the loop
    other, expected = run_training(theirs)
    assert reads == {"train.spacy": 4, "dev.spacy": 1 + 4}
    assert rows == expected and len(rows) == 4
    assert get_crf(nlp).model.to_bytes() == get_crf(other).model.to_bytes()


def reader_of(config: Any) -> Any:
    return registry.resolve({"train": config.interpolate()["corpora"]["train"]})["train"]


@pytest.mark.parametrize("batcher", [{}, {"batcher": {"@batchers": ONE_STEP}}])
def test_initialize_keeps_no_docs(corpus, batcher):
    """Neither the component, nor a reader, nor the module keeps what the next reader reads."""

    def n_alive() -> Counter[str]:
        gc.collect()
        kinds = {Example, Doc, Vocab}
        return Counter(type(thing).__name__ for thing in gc.get_objects() if type(thing) in kinds)

    config, before = config_for(corpus, **batcher), n_alive()
    nlp = init_nlp(config)
    assert n_alive() - before == Counter(Vocab=1)
    pipe = weakref.ref(get_crf(nlp))
    del nlp
    assert not n_alive() - before and pipe() is None


def test_readers_in_a_loop_of_ones_own_share_no_docs(corpus, reads):
    nlp = blank_with()
    own, other = (make_annotated_corpus(corpus.train_path) for _ in range(2))
    nlp.initialize(lambda: own(nlp))
    for example in own(nlp):
        example.reference[0].tag_ = "SPOILT"
    assert not any(example.reference[0].tag_ == "SPOILT" for example in other(nlp))
    assert reads["train.spacy"] == 2


def test_full_garbage_collections_wait_until_all_examples_are_read(corpus):
    nlp, before, seen = blank_with(), gc.get_threshold(), set[tuple[int, ...]]()
    examples = list(make_annotated_corpus(corpus.train_path)(nlp))

    def fail() -> Any:
        seen.add(gc.get_threshold())
        raise OSError

    for get in (lambda: (seen.add(gc.get_threshold()) or each for each in examples), fail):
        with nullcontext() if get is not fail else pytest.raises(OSError):
            nlp.initialize(get)
        assert gc.get_threshold() == before
    assert {own[2] for own in seen} - {before[2]} == {2**31 - 1}


def test_steps_and_evaluations_suspend_full_collections_and_restore_them(corpus, monkeypatch):
    nlp, before, seen = blank_with(), gc.get_threshold(), list[int]()
    examples, pipe = examples_of(nlp, corpus.train), get_crf(nlp)
    nlp.initialize(lambda: examples)
    step = pipe.training_run().step

    def watched(*args: Any) -> Any:
        seen.append(gc.get_threshold()[2])
        return step()

    monkeypatch.setattr(pipe.training_run(), "step", watched)
    pipe.update(examples)
    assert gc.get_threshold() == before
    monkeypatch.setattr(
        pipe, "predict", lambda docs, predict=pipe.predict: watched() and predict(docs)
    )
    for _ in pipe.pipe([example.predicted for example in examples]):
        assert gc.get_threshold() == before
    monkeypatch.setattr(pipe, "scorer", lambda *args, **kwargs: watched() and {})
    pipe.score(examples)
    assert len(seen) >= 3 and {*seen} == {2**31 - 1} and gc.get_threshold() == before


def test_batches_and_readers_leave_the_collector_alone_while_they_are_held(corpus):
    nlp, before = blank_with(), gc.get_threshold()
    read = make_annotated_corpus(corpus.train_path)(nlp)
    examples = [next(read), next(read)]
    assert gc.get_threshold() == before
    # The loops of two pipelines in turns, one of which is dropped.
    batches, others = one_step_per_epoch(examples), one_step_per_epoch(examples)
    assert next(batches) == next(others) and gc.get_threshold() == before
    del batches, read
    # Another thread goes on with a loop, and with a reader.
    read = make_annotated_corpus(corpus.train_path)(nlp)
    next(read)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(list, others).result() == []
        assert len(pool.submit(list, read).result()) == len(corpus.train) - 1
    assert gc.get_threshold() == before


def test_contexts_that_end_in_any_order_restore_the_threshold():
    before = gc.get_threshold()
    for order in ((0, 1), (1, 0)):
        contexts = [full_collections_suspended() for _ in order]
        for context in contexts:
            context.__enter__()
        assert gc.get_threshold()[2] == 2**31 - 1
        for i in order:
            contexts[i].__exit__(None, None, None)
        assert gc.get_threshold() == before


def test_accumulating_gradients_makes_one_step_an_update(corpus):
    batcher = {"@batchers": "spacy.batch_by_sequence.v1", "size": 12}
    settings = {"batcher": batcher, "patience": 0, "max_steps": 2}
    _, once = run_training(config_for(corpus, **settings))
    _, thrice = run_training(config_for(corpus, accumulate_gradient=3, **settings))
    assert [row[2] for row in once] == [row[2] for row in thrice]


def test_other_pipes_may_use_averages(corpus, tmp_path):
    config = config_for(corpus, patience=0, max_steps=2)
    config["training"]["optimizer"]["use_averages"] = True
    config["training"]["batcher"] = {"@batchers": "spacy.batch_by_sequence.v1", "size": 40}
    config["components"]["tagger"] = {"factory": "tagger", "model": SMALL_TAGGER}
    config["components"]["sparse_crf"]["overwrite"] = True
    config["nlp"]["pipeline"] = ["tagger", "sparse_crf"]
    nlp, _ = run_training(config, tmp_path)
    saved = spacy.load(tmp_path / "model-last")
    weights = [pipe.model.to_bytes() for pipe in map(get_crf, (nlp, saved))]
    assert weights[0] == weights[1]
    tagger = [each.get_pipe("tagger").model.to_bytes() for each in (nlp, saved)]
    assert tagger[0] != tagger[1]  # the averages were in use
    assert accuracy(saved, corpus.dev) > 0.9


def get_crf(nlp: Language) -> Any:
    return nlp.get_pipe("sparse_crf")


def test_use_params_and_rehearse_leave_the_weights_alone(trained, corpus):
    pipe = get_crf(trained)
    before, optimizer = pipe.model.to_bytes(), trained.resume_training()
    with trained.use_params({(1, "W"): None}):
        assert pipe.model.to_bytes() == before
    assert len(list(pipe.use_params({}))) == 1
    losses = trained.rehearse(examples_of(trained, corpus.dev), sgd=optimizer)
    assert losses == {"sparse_crf": 0.0}
    assert pipe.model.to_bytes() == before


def test_a_frozen_component_stays_as_it_is(corpus, trained_dir, tmp_path):
    config = config_for(corpus, patience=0, max_steps=2)
    with_sourced(config, "frozen", trained_dir, frozen=True)
    config["components"]["sparse_crf"]["overwrite"] = True
    nlp, _ = run_training(config, tmp_path)
    original = (trained_dir / "sparse_crf" / "model").read_bytes()
    assert nlp.get_pipe("frozen").model.to_bytes() == CRFModel.from_bytes(original).to_bytes()
    assert (tmp_path / "model-last" / "frozen" / "model").read_bytes() == original
    assert accuracy(spacy.load(tmp_path / "model-last"), corpus.dev) > 0.9


def test_a_sourced_component_that_sees_one_example_an_epoch_is_told(corpus, trained_dir):
    config = with_sourced(config_for(corpus), "sourced", trained_dir, frozen=False)
    with pytest.warns(SparseCRFWarning, match=r"SCW212.*components\.sourced\.learning\] prior"):
        run_training(config)


def test_features_may_read_a_frozen_annotating_component(corpus, trained_dir):
    config = config_for(corpus, patience=0, max_steps=3, annotating_components=["first"])
    with_sourced(config, "first", trained_dir, frozen=True)
    block = config["components"]["sparse_crf"]
    block["features"]["templates"] = ["u:tag[0]"]
    block["overwrite"] = True
    nlp, _ = run_training(config)
    assert accuracy(nlp, corpus.dev) > 0.95
    nlp.disable_pipe("first")
    with pytest.warns(SparseCRFWarning, match=r"SCW206.* read tag"):
        assert accuracy(nlp, corpus.dev) < 0.6


def test_an_annotating_component_trained_in_the_same_run_is_warned_of(corpus):
    config = config_for(corpus, annotating_components=["tagger"])
    config["components"]["tagger"] = {"factory": "tagger", "model": SMALL_TAGGER}
    config["nlp"]["pipeline"] = ["tagger", "sparse_crf"]
    one = pytest.warns(SparseCRFWarning, match="SCW231.* to tagger too")
    with one, pytest.warns(SparseCRFWarning, match="SCW203"):
        init_nlp(config)


@pytest.mark.parametrize(("dtype", "precision"), [("float64", 1e-12), ("float32", 1e-6)])
def test_init_weights_continues_at_the_saved_objective(corpus, tmp_path, dtype, precision):
    nlp = blank_with(learning={"dtype": dtype})
    examples = examples_of(nlp, corpus.train)
    saved = train_steps(nlp, examples, 2)[-1]
    nlp.to_disk(tmp_path / "saved")
    final = run_steps(nlp, examples, 30)[-1]
    for path in ("saved", "saved/sparse_crf", "saved/sparse_crf/model"):
        other = blank_with(learning={"dtype": dtype})
        pipe = get_crf(other)
        pipe.initialize(lambda: examples, nlp=other, init_weights=tmp_path / path)
        assert pipe.model.to_bytes() == get_crf(spacy.load(tmp_path / "saved")).model.to_bytes()
        assert pipe.training_run().objective == pytest.approx(saved, rel=precision)
    assert run_steps(other, examples, 30)[-1] == pytest.approx(final, rel=1e-4)


def test_labels_of_init_weights_are_united_with_those_of_the_corpus(corpus, trained_dir):
    nlp = blank_with()
    nlp.config["initialize"]["components"] = {"sparse_crf": {"init_weights": str(trained_dir)}}
    nlp.initialize()  # without a corpus
    assert accuracy(nlp, corpus.dev) > 0.95
    pipe = get_crf(blank_with())
    few = [(words, ["AA" if tag == "NN" else tag for tag in tags]) for words, tags in corpus.dev]
    pipe.initialize(lambda: examples_of(nlp, few), nlp=nlp, init_weights=trained_dir)
    assert pipe.labels == ("AA", "DT", "IN", "JJ", "NN", "VB")
    labels, path = ["AA", "DT", "IN", "JJ", "VB"], trained_dir / "sparse_crf"
    with pytest.raises(SparseCRFError, match="SC208.*NN"):
        get_crf(blank_with()).initialize(
            lambda: examples_of(nlp, few), labels=labels, init_weights=path
        )


def test_examples_are_read_once_and_a_step_is_taken_until_finish_update_whatever_the_batch(
    nlp, corpus
):
    examples, reads, losses = examples_of(nlp, corpus.train), [], {}

    def get_examples() -> list[Example]:
        reads.append(1)
        return examples

    pipe, found = get_crf(nlp), []
    for size in (1, 50):
        pipe.initialize(get_examples, nlp=nlp)
        found.append([nlp.update(examples[:size], drop=0.5)["sparse_crf"] for _ in range(3)])
    assert reads == [1, 1] and found[0] == found[1]
    first = pipe.update(examples[:5], losses=losses)["sparse_crf"]
    assert pipe.update(examples[5:10], losses=losses)["sparse_crf"] == first
    assert losses == {"sparse_crf": first}
    pipe.finish_update(None)
    assert pipe.update(examples[:5])["sparse_crf"] < first


def test_a_non_finite_objective_never_reaches_the_losses(nlp, corpus, monkeypatch):
    examples = examples_of(nlp, corpus.train)
    nlp.initialize(lambda: examples)
    training = get_crf(nlp).training_run()
    monkeypatch.setattr(type(training), "objective", property(lambda self: float("nan")))
    losses: dict[str, float] = {}
    with pytest.raises(SparseCRFError, match="SC209"):
        nlp.update(examples[:1], losses=losses)
    assert losses == {}


@pytest.fixture
def config(tmp_path) -> Config:
    """The config of `spacy init config --pipeline sparse_crf`, with a corpus."""
    docs = [Doc(ENGLISH, words=["a", "b"], tags=["X", "Y"]) for _ in range(3)]
    DocBin(docs=docs).to_disk(tmp_path / "corpus.spacy")
    config = init_config(lang="xx", pipeline=["sparse_crf"], silent=True)
    for key in ("train", "dev"):
        config["paths"][key] = str(tmp_path / "corpus.spacy")
    return config


def test_the_config_that_spacy_makes_is_told_which_two_lines_to_change(config):
    with pytest.warns(SparseCRFWarning, match="SCW209.*'sparse_crf'.*200 steps") as told:
        init_nlp(config)
    (message,) = [str(each.message) for each in told if "SCW209" in str(each.message)]
    header, *lines = message.split("\n")[1:]
    assert header == "[training]"
    changes: dict[str, Any] = dict(line.split(" = ") for line in lines)
    assert list(changes) == ["eval_frequency", "patience"]
    config["training"].update({key: int(value) for key, value in changes.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("error", SparseCRFWarning)
        init_nlp(config)


@pytest.mark.filterwarnings("error")
def test_a_loop_with_others_or_of_ones_own_is_not_told(config):
    both = init_config(lang="xx", pipeline=["sparse_crf", "tagger"], silent=True)
    both["paths"] = config["paths"]
    assert init_nlp(both).pipe_names[-2:] == ["sparse_crf", "tagger"]
    nlp = blank_with()
    nlp.initialize(lambda: examples_of(nlp, [(["a", "b"], ["X", "Y"])]))
    # Rows that are not wanted silence all.
    assert not Loop.of(None, None).quiet and not Loop.of(nlp, None).quiet
    nlp.config["training"]["logger"]["@loggers"] = "spacy.ConsoleLogger.v3"
    for wanted in (True, False):
        nlp.config["training"]["logger"]["console_output"] = wanted
        assert Loop.of(nlp, None).quiet is not wanted


def test_an_epoch_is_one_batch(config):
    config["training"].update(batcher={"@batchers": ONE_STEP}, eval_frequency=1, patience=5)
    nlp = init_nlp(config)
    pipe, losses, sizes = nlp.get_pipe("sparse_crf"), [], []
    for _, batch in create_train_batches(nlp, reader_of(config), one_step_per_epoch, 3):
        sizes.append(len(batch))
        losses.append(pipe.update(batch)["sparse_crf"])
        pipe.finish_update(None)
    assert sizes == [1, 1, 1] and losses == sorted(losses, reverse=True)
    with pytest.raises(SparseCRFError, match="SC218"):
        list(one_step_per_epoch([]))


def test_two_pipelines_of_one_vocab_train_to_their_own_convergence(corpus):
    """The loops of spaCy run in turns; the one with few sentences converges earlier."""
    nlp = blank_with(solver={"tolerance": 1e-3})
    other = Language(nlp.vocab)
    other.add_pipe("sparse_crf", config={"n_threads": 1, "solver": {"tolerance": 1e-3}})
    loops, converged = [], {}
    for each, sentences in ((nlp, corpus.train[:5]), (other, corpus.train)):
        examples = examples_of(each, sentences)
        batches = create_train_batches(each, lambda _, own=examples: own, one_step_per_epoch, 0)
        options = {"dropout": 0.0, "eval_frequency": 1, "accumulate_gradient": 1, "patience": 0}
        options |= {"exclude": [], "annotating_components": [], "before_update": None}
        optimizer = each.initialize(lambda own=examples: own)
        loops.append(
            train_while_improving(
                each, optimizer, batches, lambda: (1.0, {}), max_steps=60, **options
            )
        )
    for step, rows in enumerate(zip(*loops, strict=True)):
        for each, (_, info, _) in zip((nlp, other), rows, strict=True):
            run = get_crf(each).training_run()
            assert info["losses"]["sparse_crf"] == run.objective
            if run.converged:
                converged.setdefault(each, step)
    assert converged[nlp] < converged[other] < step
    alone = blank_with(solver={"tolerance": 1e-3})
    train_steps(alone, examples_of(alone, corpus.train), 60)
    assert get_crf(alone).model.to_bytes() == get_crf(other).model.to_bytes()
