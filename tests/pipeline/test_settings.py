"""Settings of a component: refusals, and non-JSON numbers."""

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.training import Example

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.factories import COMMON, make_sparse_crf
from spacy_sparsecrf.pipeline.settings import DecodingSettings, LearningSettings

from ..decoding.span_cases import span_examples, training_sentences
from ..golden import read_golden
from ..toy import examples_of, make_sentences

REFUSED = read_golden(__file__, "refused.jsonl")
KEYS = {"sparse_crf_ner": "ents", "sparse_crf_spans": "sc"}


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row['match'][:24]}-{row['config']}")
def test_what_is_refused_names_its_key(row: dict[str, Any], tmp_path: Path, monkeypatch):
    """On creation, or before or after examples are read; paths are in the current directory."""
    monkeypatch.chdir(tmp_path)
    nlp = spacy.blank("xx")
    nlp.config["training"]["batcher"] = {"@batchers": "spacy.batch_by_words.v1", "size": 9}
    with pytest.raises(SparseCRFError, match=row["match"]):
        pipe = nlp.add_pipe(row["factory"], name="mine", config=row["config"])
        assert "initialize" in row
        pipe.initialize(lambda: toy_examples(nlp, row["factory"]), nlp=nlp, **row["initialize"])
    assert not any(tmp_path.rglob("*.*"))


def toy_examples(nlp: Language, factory: str) -> list[Example]:
    if factory in KEYS:
        return span_examples(nlp, training_sentences()[:5], KEYS[factory])
    return examples_of(nlp, make_sentences(5, 1))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
def test_numbers_that_are_not_finite_are_refused(nlp: Language, value: float):
    for key in ("l1", "l2"):
        pipe = nlp.get_pipe("sparse_crf")
        own = {name: one for name, one in COMMON.items() if not isinstance(one, dict)}
        own |= {"features": pipe.features, "target": pipe.target, "solver": pipe.solver}
        own |= {"learning": {}, "decoding": COMMON["decoding"]}
        own |= {"engine": pipe.setup.engine, "scorer": None, key: value}
        with pytest.raises(SparseCRFError, match=rf"SC205\] \[components\.mine\] {key} = "):
            make_sparse_crf(nlp, "mine", **own)
    with pytest.raises(SparseCRFError, match="SC205.*label_weights"):
        LearningSettings.validated("tags", {"label_weights": {"NN": value}})
    with pytest.raises(SparseCRFError, match="SC205.*temperature = "):
        DecodingSettings.validated("names", {"temperature": value})
