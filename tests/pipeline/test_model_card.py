"""Entries of a component in `meta.json`."""

from pathlib import Path
from typing import Any

import pytest
import spacy

from ..toy import examples_of, make_sentences


@pytest.mark.filterwarnings("ignore:.SCW226")
@pytest.mark.parametrize("author", ["Treebank", {"name": "Treebank", "url": "u"}, None])
def test_sources_and_training_are_in_the_meta(author: Any, tmp_path: Path):
    brown = tmp_path / "brown.txt"
    brown.write_text("01\tthe\t5\n10\tdog\t3\n", encoding="utf8")
    templates = ["b:", "u:cluster(brown)[0]", "u:phrase(places)[0]"]
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": templates}
    # Lists that no template reads are not in the model.
    phrases = {"places": ["New York", "Bonn"], "unused": ["a"]}
    features |= {"clusters": {"brown": {"path": str(brown), "license": "MIT"}}, "phrases": phrases}
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", config={"features": features, "l1": 0.25, "l2": 0.5})
    nlp.meta["notes"], nlp.meta["sources"] = "Mine.", [author] if author else None
    examples = examples_of(nlp, make_sentences(3, seed=0))
    for _ in range(2):  # The second call replaces the note of the first.
        nlp.initialize(lambda: examples)
    nlp.to_disk(tmp_path / "saved")
    meta = spacy.load(tmp_path / "saved").meta
    n_tokens = sum(len(example.reference) for example in examples)
    trained = f"- `sparse_crf`: trained on {n_tokens} tokens by OWLQN, l1 = 0.25, l2 = 0.5"
    assert meta["notes"] == f"Mine.\n{trained}; word classes brown (brown.txt), MIT"
    names = ["word classes brown (brown.txt)", "phrases places (2 listed)"]
    if isinstance(author, str):
        names[0] += ", MIT"
    else:
        names = [{"name": names[0], "license": "MIT"}, {"name": names[1]}]
    assert meta["sources"] == [*([author] if author else []), *names]
