"""Components that were saved in this format load, predict and save the same.

`python -m tests.model.test_saved` saves them again, which another format needs.
"""

import json
from typing import Any

import numpy as np
import pytest

from ..support.saved_models import CONFIGS, MODELS
from ..support.toy import blank_with, docs_of, examples_of, make_sentences, train


def predicted(pipe: Any) -> Any:
    docs = docs_of(pipe, make_sentences(3, seed=9))
    marginals = [np.round(each, 6).tolist() for each in pipe.marginals(docs)]
    return [marginals, [[[t.tag_, t.ent_type_] for t in doc] for doc in pipe.pipe(docs)]]


@pytest.mark.parametrize("name", CONFIGS)
def test_saved_components_predict_and_save_the_same(name, tmp_path):
    [(_, pipe)] = blank_with(**CONFIGS[name]).pipeline
    pipe.from_disk(MODELS / name, exclude=["vocab"])
    assert predicted(pipe) == json.loads((MODELS / f"{name}.json").read_text())
    pipe.to_disk(tmp_path, exclude=["vocab"])
    for part in ("cfg", "model"):  # other files are compressed
        assert (tmp_path / part).read_bytes() == (MODELS / name / part).read_bytes()


if __name__ == "__main__":
    for name, config in CONFIGS.items():
        nlp, sentences = blank_with(**config), make_sentences(12, seed=8)
        if name == "entities":
            sentences = [(words, [f"B-{tag}" for tag in tags]) for words, tags in sentences]
        train(nlp, examples_of(nlp, sentences, "ents" if name == "entities" else "tags"), 3)
        [(_, pipe)] = nlp.pipeline
        pipe.to_disk(MODELS / name, exclude=["vocab"])
        (MODELS / f"{name}.json").write_text(json.dumps(predicted(pipe)))
