"""The setting `schedule` in a pipeline: config and log."""

import logging

from confection import Config
from spacy.language import Language
from spacy.util import load_model_from_config

from ..toy import accuracy, blank_with, examples_of, make_sentences, run_steps

TEMPLATES = ["b:", "*:lower[0]", "u:suffix(3)[0]", "u:suffix(3)[-1]|suffix(3)[0]", "b:suffix(3)[0]"]
SCHEDULE = [
    {"templates": ["b:", "*:lower[0]", "u:suffix(3)[0]"], "steps": 2},
    {"templates": "*", "require": "any", "parents": {"b:suffix(3)[0]": "u:suffix(3)[0]"}},
]


def pipeline(schedule: object = SCHEDULE, **config: object) -> Language:
    learning = {"schedule": schedule}
    return blank_with(TEMPLATES, lang="en", l1=0.2, learning=learning, **config)


def test_a_pipeline_learns_in_stages_and_tells_of_them(caplog):
    sentences = make_sentences(150, 1)
    nlp = pipeline()
    again = load_model_from_config(Config().from_str(nlp.config.to_str()))
    models = []
    for one in (nlp, again):
        examples = examples_of(one, sentences)
        with caplog.at_level(logging.INFO, logger="spacy"):
            one.initialize(lambda: examples)  # noqa: B023
            losses = run_steps(one, examples, 25)
        assert losses == sorted(losses, reverse=True)
        models.append(one.get_pipe("sparse_crf"))
        models[-1].to_bytes()
    assert models[0].model.to_bytes() == models[1].model.to_bytes()
    assert accuracy(nlp, make_sentences(50, 2)) > 0.9
    told = [r.getMessage() for r in caplog.records if "sparse_crf: stage" in r.getMessage()]
    told = told[: len(told) // 2]
    assert [message.split(":")[1] for message in told] == [
        " stage 1 of 2 begins",
        " stage 1 of 2 ends",
        " stage 2 of 2 begins",
        " stage 2 of 2 ends",
    ]
    assert all(
        f" {name} weights of " in message
        for message in told
        for name in ("potential", "admitted", "active")
    )
