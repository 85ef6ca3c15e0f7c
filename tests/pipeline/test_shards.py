"""Training on a corpus in several files equals training on it in one piece."""

from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.corpus_files import read_files, reader_block, shard_files
from spacy_sparsecrf.pipeline.spacy_loop import block_of

from ..toy import blank_with, examples_of, make_sentences, write_corpus

SENTENCES = make_sentences(60, seed=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("shards")
    for i in range(3):
        name = str(path / f"part-{i}.spacy")
        write_corpus(name, spacy.blank("en"), SENTENCES[20 * i : 20 * i + 20])
    return path


def trained(nlp: Language, examples: list[Example], **settings: object) -> float:
    nlp.config["initialize"]["components"] = {"sparse_crf": settings}
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("sparse_crf")
    for _ in range(3):
        pipe.update(examples, sgd=object())
    return pipe.training_run().objective


def test_shards_stand_for_the_examples(folder):
    nlp = blank_with()
    whole = trained(nlp, examples_of(nlp, SENTENCES))
    nlp = blank_with()
    block = reader_block("sparse_crf", nlp)
    examples = list(read_files(nlp, block, sorted(folder.glob("*.spacy"))))
    assert trained(nlp, examples[:5], shards=[str(folder / "part-*.spacy")]) == pytest.approx(whole)


def test_files_come_in_the_order_of_patterns_and_once(folder):
    paths = [folder / f"part-{i}.spacy" for i in (2, 0, 1)]
    given = [str(paths[0]), str(folder / "*.spacy")]
    assert shard_files("x", given, {}) == paths
    assert shard_files("x", [], {"path": str(folder)}) == sorted(paths)


def test_what_is_no_corpus_is_refused(folder):
    nlp = blank_with()
    with pytest.raises(SparseCRFError, match="SC900"):
        shard_files("x", [str(folder / "none-*.spacy")], {})
    assert block_of(nlp, "dev_corpus")["path"] is None
    nlp.config["corpora"]["train"]["limit"] = 3
    with pytest.raises(SparseCRFError, match="SC902"):
        reader_block("x", nlp)
    nlp.config["training"]["train_corpus"] = "nowhere.else"
    with pytest.raises(SparseCRFError, match="SC901"):
        reader_block("x", nlp)
