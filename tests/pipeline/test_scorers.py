"""The default scorer matches the target; training warns of weights of other scores."""

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_config

from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.pipeline.spacy_loop import check_loop
from spacy_sparsecrf.pipeline.targets.target import Target

from ..conftest import SHIPPED_CONFIG
from ..support.runs import run_training
from ..support.toy import blank_with, train

pytestmark = pytest.mark.usefixtures("own_extensions")

WORDS = ["a", "b", "c"]
GOLD = {
    "tag": {"tags": ["X", "Y", "X"]},
    "pos": {"pos": ["NOUN", "VERB", "NOUN"]},
    "both": {"tags": ["X", "Y", "X"], "pos": ["NOUN", "VERB", "NOUN"]},
    "morph": {"morphs": ["Case=Nom|Number=Sing", "_", "Tense=Past"]},
    "_.role": {},
}
SCORES = {"tag": "tag_acc", "pos": "pos_acc", "morph": "morph_acc", "_.role": "role_acc"}


def target_of(attr: str) -> dict[str, Any]:
    return {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", "attr": attr}


def gold_doc(nlp: Language, attr: str) -> Doc:
    doc = Doc(nlp.vocab, words=WORDS, **GOLD[attr])
    if attr == "_.role":
        for token, role in zip(doc, ["X", None, "Y"], strict=True):
            token._.role = role
    return doc


@pytest.mark.parametrize("attr", SCORES)
def test_the_default_scorer_scores_what_is_learnt(attr):
    nlp = blank_with(target=target_of(attr))
    examples = [Example(Doc(nlp.vocab, words=WORDS), gold_doc(nlp, attr)) for _ in range(10)]
    train(nlp, examples, 4)
    scores = nlp.evaluate(examples)
    assert scores[SCORES[attr]] == 1.0
    assert not {*SCORES.values(), "token_attr"} - {SCORES[attr]} & scores.keys()
    if attr == "morph":
        assert scores["morph_per_feat"]["Case"]["f"] == 1.0


def test_a_target_that_does_not_name_what_it_learns_has_no_score():
    class Own(Target):
        def gold(self, example: Example) -> list[Any]:
            return [token.lemma_ for token in example.reference]

    nlp = blank_with()
    nlp.config["training"]["eval_frequency"] = 1
    pipe: Any = nlp.get_pipe("sparse_crf")
    examples = [Example(Doc(nlp.vocab, words=WORDS), gold_doc(nlp, "tag"))]
    assert pipe.score(examples)["tag_acc"] == 0.0
    pipe.target = Own()
    assert pipe.score(examples) == {}
    with pytest.warns(SparseCRFWarning, match="SCW228.*'sparse_crf'.*token_attr"):
        check_loop(pipe.setup, nlp)


def config_for(tmp_path: Path, attr: str, weights: dict[str, float | None], gold: str = "") -> Any:
    """Return the shipped config with another target and other score weights."""
    nlp = spacy.blank("xx")
    docs = [gold_doc(nlp, gold or attr) for _ in range(10)]
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "corpus.spacy")
    paths = dict.fromkeys(("paths.train", "paths.dev"), str(tmp_path / "corpus.spacy"))
    config = load_config(SHIPPED_CONFIG, overrides={**paths, "training.max_steps": 3})
    config["components"]["sparse_crf"]["target"] = target_of(attr)
    config["training"]["score_weights"] = weights
    return config


@pytest.mark.parametrize("attr", ["pos", "morph"])
def test_training_warns_of_the_weight_of_tags(attr, tmp_path):
    lines = rf"SCW230.*\n\[training.score_weights\]\n{attr}_acc = 1.0\ntag_acc = null"
    for scorer in ("spacy_sparsecrf.token_scorer.v1", "spacy.tagger_scorer.v1"):
        config = config_for(tmp_path, attr, {"tag_acc": 1.0})
        config["components"]["sparse_crf"]["scorer"] = {"@scorers": scorer}
        with pytest.warns(SparseCRFWarning, match=lines):
            run_training(config)


def test_training_with_the_lines_of_the_message_chooses_by_the_score(tmp_path):
    _, rows = run_training(config_for(tmp_path, "pos", {"pos_acc": 1.0, "tag_acc": None}))
    assert float(rows[-1][-1]) == 1.0
    # A tagger beside it may have the weight.
    config = config_for(tmp_path, "pos", {"tag_acc": 1.0}, gold="both")
    config["components"]["tags"] = {"factory": "sparse_crf"}
    config["nlp"]["pipeline"] = ["tags", "sparse_crf"]
    run_training(config)
