"""The corpus and the learnt weights do not depend on how shards are assigned to workers."""

import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_sparsecrf.crf.corpus.index import Index, joined
from spacy_sparsecrf.crf.parallel import WorkerPool
from spacy_sparsecrf.distributed.gathering import gather
from spacy_sparsecrf.distributed.partition import WorkerShard
from spacy_sparsecrf.distributed.ray_engine import Ray
from spacy_sparsecrf.distributed.worker import Brief, Worker
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.pipeline.corpus_files import read_files, reader_block, shard_files
from spacy_sparsecrf.pipeline.data_checks import DataChecks
from spacy_sparsecrf.pipeline.encoding import Job, LabelIds, encode_corpus
from spacy_sparsecrf.pipeline.engines import Threads
from spacy_sparsecrf.pipeline.features.naming import NameRecord
from spacy_sparsecrf.pipeline.spacy_loop import block_of
from spacy_sparsecrf.tools.cli.config import shipped_configs

from ..reference import random_problem
from ..support.sharing_cases import (
    FEW,
    SENTENCES,
    SHIPPED,
    Forgetful,
    Here,
    ReadOnly,
    begun,
    learnt,
    steps,
    write_parts,
)
from ..support.span_cases import TRAINING, span_examples
from ..support.toy import blank_with, examples_of, write_corpus

TEMPLATES = {"@crf_features": "spacy_sparsecrf.Templates.v1"}
SOLVERS = {
    "OWLQN": {},
    "L-BFGS": {"l1": 0.0, "learning": {}},
    "RPROP": {"solver": {"@crf_solvers": "spacy_sparsecrf.RPROP.v1", **FEW["solver"]}},
    "Hybrid": {"solver": {"@crf_solvers": "spacy_sparsecrf.Hybrid.v1", **FEW["solver"]}},
    "weights": {"learning": {"label_weights": {"NN": 0.3}, "min_freq": 2}},
    "shipped": SHIPPED,
    "observed": {"learning": {"observed_only": True, "warm_start": {"epochs": 2}}},
    "observed, l1 = 0": {"learning": {"observed_only": True}, "l1": 0.0},
    "constrained": {
        "learning": {"constrained": True, "warm_start": {"epochs": 2}},
        "decoding": {"forbidden": [["DT", "VB"]]},
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_parts(tmp_path_factory.mktemp("parts"))


@pytest.mark.parametrize(
    ("min_freq", "templates"), [(1, ["@tags"]), (3, ["@tags"]), (1, ["b:", "@word_labels"])]
)
def test_parts_are_the_corpus_that_is_read_at_once(folder, min_freq, templates):
    nlp = blank_with(templates, sequences="sents", learning={"min_freq": min_freq})
    setup = nlp.get_pipe("sparse_crf").setup
    files, block = sorted(folder.glob("*.spacy")), reader_block("x", nlp)
    examples, record = read_files(nlp, block, files), NameRecord(setup.features)
    whole = DataChecks()
    job = Job(setup, LabelIds("x", (), fixed=False), whole, record)
    expected = encode_corpus(examples, job)
    assert expected.corpus is not None
    known = setup.features.learnt
    given = type(nlp), nlp.vocab, nlp.tokenizer, setup, [], block, files
    brief = Brief(*given, LabelIds("x", (), fixed=False), extensions=({}, {}, {}))
    for n in (1, 3, 7):
        members: list[Worker] = []

        def make(members: list[Worker] = members) -> Worker:
            members.append(Worker(brief))
            return members[-1]

        sizes = np.array([file.stat().st_size for file in files])
        checks = DataChecks()
        found = gather(WorkerPool(n, make), setup, sizes, checks)
        assert found.labels == expected.labels
        assert checks == whole
        index = Index(*(getattr(found.corpus, name) for name in Index._fields))
        corpus = joined(index, [own.corpus for own in members], expected.corpus.start_label)
        corpus = replace(corpus, sets=members[0].corpus.sets)
        for name, array in expected.corpus.arrays.items():
            assert np.array_equal(array, corpus.arrays[name]), name
            assert array.dtype == corpus.arrays[name].dtype
        keys = expected.corpus.unigram_keys
        assert found.partition is not None
        assert found.partition.names(keys) == record.names(keys)
        assert found.partition.names(keys).keys() == set(keys.tolist())
        assert setup.features.learnt.keys() == known.keys()
        for name, classes in known.get("clusters", {}).items():
            assert classes.classes == setup.features.learnt["clusters"][name].classes


@pytest.mark.parametrize("name", SOLVERS)
def test_the_same_bits_for_any_number_of_workers(folder, name):
    config: dict[str, Any] = SOLVERS[name]
    _, alone = begun(folder, Threads(), **config)
    expected = steps(alone)
    for n in (1, 2, 5) if name == "OWLQN" else (3,):
        _, pipe = begun(folder, Here(num_workers=n), **config)
        assert steps(pipe) == expected
        assert learnt(pipe) == learnt(alone)
    assert pipe.label_data == alone.label_data


def test_a_worker_without_tokens_does_not_say_if_there_is_a_start_label(tmp_path):
    vocab = spacy.blank("xx")
    write_corpus(str(tmp_path / "part-0.spacy"), vocab, [])
    write_corpus(str(tmp_path / "part-1.spacy"), vocab, SENTENCES)
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": ["@tags"]}
    config: dict[str, Any] = {"features": {**features, "start_label": False}}
    _, alone = begun(tmp_path, Threads(), **config)
    _, pipe = begun(tmp_path, Here(num_workers=2), **config)
    assert pipe.training_run().size.n_potential == alone.training_run().size.n_potential
    assert steps(pipe) == steps(alone)


@pytest.mark.parametrize("name", ["observed", "observed, l1 = 0", "constrained"])
def test_shards_reach_the_minimum_of_the_corpus_in_one_piece(folder, name):
    config: dict[str, Any] = {**SOLVERS[name], "solver": {"tolerance": 1e-6}, "sequences": "sents"}
    nlp = spacy.blank("xx")
    whole = nlp.add_pipe("sparse_crf", config={"n_threads": 1, **config})
    whole.initialize(lambda: examples_of(nlp, SENTENCES), nlp=nlp)
    _, pipe = begun(folder, Here(num_workers=3), **config)
    own, other = (each.training_run() for each in (pipe, whole))
    assert own.size.n_potential == other.size.n_potential
    while not (own.converged and other.converged):
        own.step()
        other.step()
    assert own.objective == pytest.approx(other.objective, rel=1e-9)


def test_invalid_gold_labels_are_named_by_their_doc(folder):
    config = {"learning": {"constrained": True}, "decoding": {"forbidden": [["JJ", "NN"]]}}
    nlp = spacy.blank("xx")
    whole = nlp.add_pipe("sparse_crf", config=config)
    messages = []
    for begin in (
        lambda: whole.initialize(lambda: examples_of(nlp, SENTENCES), nlp=nlp),
        lambda: begun(folder, Here(num_workers=3), **config),
    ):
        with pytest.raises(SparseCRFError, match="SC358") as caught:
            begin()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_workers_annotate_with_earlier_components(folder):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer", config={"punct_chars": ["of"]})
    nlp.add_pipe("tagger").initialize(lambda: examples_of(nlp, SENTENCES[1:9]), nlp=nlp)
    nlp.config["training"]["annotating_components"] = ["sentencizer", "tagger"]
    features = {**TEMPLATES, "templates": ["b:", "u:tag[0]", "@word_labels"]}
    pipe = nlp.add_pipe("sparse_crf", config={"n_threads": 1, **FEW, "features": features})
    shards = [str(folder / "part-*.spacy")]
    losses, saved = [], []
    for engine in (Here(num_workers=1), Here(num_workers=3), Threads()):
        pipe.engine = engine
        with pytest.warns(SparseCRFWarning, match="SCW203"):
            pipe.initialize(list, nlp=nlp, shards=shards)
        losses.append(steps(pipe))
        saved.append(learnt(pipe))
    assert losses[0] == losses[1] == losses[2]
    assert saved[0] == saved[1] == saved[2]
    with pytest.warns(SparseCRFWarning, match="SCW203"):
        pipe.initialize(lambda: examples_of(nlp, SENTENCES), nlp=nlp)
    assert pipe.training_run().n_sequences > len(SENTENCES)
    assert steps(pipe) == pytest.approx(losses[0], rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*SCW205.* read tag,")
@pytest.mark.parametrize("name", ["tagger", "ner", "spans"])
def test_shipped_configs_train_on_workers(name, tmp_path):
    examples = span_examples(spacy.blank("xx"), TRAINING, "sc")
    docs = [example.reference for example in examples]
    for doc in docs:
        doc.set_ents(doc.spans["sc"])
        for token in doc:
            token.tag_ = token.shape_
    for i in range(3):
        DocBin(docs=docs[i::3], store_user_data=True).to_disk(tmp_path / f"part-{i}.spacy")
    paths = {"paths.train": str(tmp_path), "paths.dev": str(tmp_path), "nlp.lang": "xx"}
    config = Config().from_str(shipped_configs()[name], overrides=paths)
    component = config["nlp"]["pipeline"][-1]
    config["initialize"]["components"][component]["shards"] = [str(tmp_path / "part-*.spacy")]
    found = []
    for engine in (Here(num_workers=1), Here(num_workers=3), Threads()):
        nlp = load_model_from_config(config, auto_fill=True)
        nlp.get_pipe(component).engine = engine
        nlp.initialize(lambda: [])
        losses = [nlp.get_pipe(component).update([], sgd=object())[component] for _ in range(3)]
        assert losses[2] < losses[0]
        found.append((losses, learnt(nlp.get_pipe(component))))
    assert found[0] == found[1] == found[2]


def test_workers_that_are_lost_before_each_call_learn_the_same(folder):
    config: dict[str, Any] = {**SHIPPED, "learning": {"min_freq": 2}}
    _, expected = begun(folder, Here(num_workers=2), **config)
    _, pipe = begun(folder, Forgetful(num_workers=2), **config)
    assert steps(pipe, 1) == steps(expected, 1)
    assert learnt(pipe) == learnt(expected)


@pytest.mark.parametrize("num_workers", [1, 3])
def test_arrays_of_workers_are_not_written_to(folder, num_workers):
    config = {"learning": {"warm_start": {"epochs": 2}}}
    expected = begun(folder, Here(num_workers=num_workers), **config)[1]
    pipe = begun(folder, ReadOnly(num_workers=num_workers), **config)[1]
    assert steps(pipe) == steps(expected)
    assert learnt(pipe) == learnt(expected)


def test_threads_learn_the_same_bits_without_ray(folder, monkeypatch):
    _, expected = begun(folder, Here(num_workers=2))
    losses = steps(expected)
    monkeypatch.setitem(sys.modules, "ray", None)
    # Also with more threads than shards: several threads then share a shard.
    for n_threads in (2, 3, 17):
        _, pipe = begun(folder, Threads(), n_threads=n_threads)
        assert steps(pipe) == losses
        pipe.settings = expected.settings
        assert learnt(pipe) == learnt(expected)


def test_a_run_goes_on_from_its_checkpoint_with_other_workers(folder, tmp_path):
    _, whole = begun(folder, Here(num_workers=2))
    losses = steps(whole, 4)
    kept = {"checkpoint": str(tmp_path / "run")}
    _, cut_off = begun(folder, Here(num_workers=3), kept)
    assert steps(cut_off, 2) == losses[:2]
    with pytest.warns(SparseCRFWarning, match="SCW229"):
        _, again = begun(folder, Here(num_workers=1), kept)
    assert steps(again, 3) == losses[1:]
    assert learnt(again) == learnt(whole)


@pytest.mark.parametrize("engine", [Here(), Threads()])
@pytest.mark.parametrize("solver", ["", "SGD", "SGDL1", "SAG"])
def test_what_needs_the_whole_corpus_is_refused(folder, tmp_path, monkeypatch, engine, solver):
    monkeypatch.chdir(tmp_path)
    own = {"solver": {"@crf_solvers": f"spacy_sparsecrf.{solver}.v1"}} if solver else {}
    with pytest.raises(SparseCRFError, match="SC906"):
        begun(folder, engine, {}, **(own or {"model": "memm"}))


def test_numbers_out_of_range_and_a_missing_ray_are_refused(folder, monkeypatch):
    for wrong in ({"num_workers": 0}, {"cpus_per_worker": 0}, {"max_restarts": -1}):
        with pytest.raises(SparseCRFError, match="SC904"):
            Ray(**wrong)
    monkeypatch.setattr("spacy_sparsecrf.distributed.ray_engine.find_spec", lambda name: None)
    with pytest.raises(SparseCRFError, match=r"SC905.*pip install 'spacy-sparsecrf\[ray\]'"):
        begun(folder, Ray())


def test_files_without_labels_are_nothing_to_learn_from(tmp_path):
    nlp = spacy.blank("xx")
    DocBin(docs=[Doc(nlp.vocab, words=["a", "b"])]).to_disk(tmp_path / "part-0.spacy")
    with pytest.raises(SparseCRFError, match="SC203"):
        begun(tmp_path, Here())
    DocBin(docs=[]).to_disk(tmp_path / "part-0.spacy")
    with pytest.raises(SparseCRFError, match="SC217"):
        begun(tmp_path, Here())


def test_the_warm_start_begins_at_the_prior(folder, tmp_path):
    nlp, pipe = begun(folder, None)
    steps(pipe)
    nlp.to_disk(tmp_path)
    learning = {"prior": str(tmp_path), "warm_start": {"epochs": 2}}
    nlp = spacy.blank("xx")
    whole = nlp.add_pipe("sparse_crf", config={"n_threads": 1, **FEW, "learning": learning})
    whole.initialize(lambda: examples_of(nlp, SENTENCES), nlp=nlp)
    objectives = steps(begun(folder, None, learning=learning)[1])
    assert objectives == pytest.approx(steps(whole), rel=1e-9)


def test_shards_stand_for_the_examples(folder):
    nlp, pipe = begun(folder, None)
    expected = steps(pipe)
    nlp.initialize(lambda: examples_of(nlp, SENTENCES[:5]))
    assert steps(pipe) == expected


def test_files_come_in_the_order_of_patterns_and_once(folder):
    files = sorted(folder.glob("*.spacy"))
    given = [str(files[2]), str(folder / "*.spacy")]
    assert shard_files("x", given, {}) == [files[2], *files[:2], *files[3:]]
    assert shard_files("x", [], {"path": str(folder)}) == files


def test_limits_are_of_files_and_augmenters_draw_the_same_in_every_pass(folder):
    files, state = sorted(folder.glob("*.spacy")), random.getstate()
    levels = {"lower_level": 0.0, "orth_level": 0.0, "orth_variants": None}
    levels |= {"whitespace_level": 0.5, "whitespace_per_token": 1.0, "whitespace_variants": ["#"]}
    blanks = {"@augmenters": "spacy.combined_augmenter.v1", **levels}
    block = {"@readers": "spacy.Corpus.v1", "limit": 9, "gold_preproc": False, "augmenter": blanks}
    passes = [[e.text for e in read_files(blank_with(), block, files)] for _ in range(2)]
    assert passes[0] == passes[1] and random.getstate() == state
    assert len(passes[0]) == 36 and 0 < sum("#" in text for text in passes[0]) < 36


def test_what_is_no_corpus_is_refused(folder):
    nlp = blank_with()
    with pytest.raises(SparseCRFError, match="SC900"):
        shard_files("x", [str(folder / "none-*.spacy")], {})
    assert block_of(nlp, "dev_corpus")["path"] is None
    nlp.config["training"]["train_corpus"] = "nowhere.else"
    with pytest.raises(SparseCRFError, match="SC901"):
        reader_block("x", nlp)


def test_digests_do_not_depend_on_the_numbers_of_sets():
    problem, _ = random_problem(3, 3, [4, 3, 2])
    corpus = problem.corpus
    corpus.labels[[1, 5]], corpus.labels[7] = [-2, -3], -1
    sets, swapped = np.array([[True, True, False], [False, True, True]]), corpus.labels.copy()
    swapped[[1, 5]] = [-4, -2]
    others = np.array([sets[1], ~sets[1], sets[0]])
    digests = []
    for changes in ({"sets": sets}, {"sets": others, "labels": swapped}, {"sets": sets[::-1]}):
        share = WorkerShard()
        share.corpus, share.shard_ptr = replace(corpus, **changes), np.array([0, 1, 1, 3])
        digests.append(share.digests())
    one, other, third = digests
    assert one == other and one[1:] != third[1:] and one[0] != third[0]
