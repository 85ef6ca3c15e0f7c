"""The setting `schedule` in a pipeline: the config, the log, what is refused."""

import logging

import numpy as np
import pytest
import spacy
from confection import Config
from spacy.language import Language
from spacy.tokens import Token
from spacy.util import load_model_from_config

from spacy_sparsecrf.corpus.schedule import Stage
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.settings import LearningSettings

from ..toy import accuracy, examples_of, make_sentences, run_steps

TEMPLATES = ["b:", "*:lower[0]", "u:suffix(3)[0]", "u:suffix(3)[-1]|suffix(3)[0]", "b:suffix(3)[0]"]
SCHEDULE = [
    {"templates": ["b:", "*:lower[0]", "u:suffix(3)[0]"], "steps": 2},
    {"templates": "*", "require": "any", "parents": {"b:suffix(3)[0]": "u:suffix(3)[0]"}},
]


def pipeline(schedule: object = SCHEDULE, **config: object) -> Language:
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": TEMPLATES}
    config = {
        "n_threads": 1,
        "l1": 0.2,
        "features": features,
        "learning": {"schedule": schedule},
        **config,
    }
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", config=config)
    return nlp


def stages(schedule: object) -> list[Stage]:
    return LearningSettings.read("sparse_crf", {"schedule": schedule}).stages


def test_settings_are_read():
    whole = {
        "templates": ["u:*", "b:"],
        "steps": 3,
        "require": "none",
        "admit": "labels",
        "parents": {"u:lower[0]": ["b:"], "b:": []},
    }
    assert stages([whole, {"templates": "*"}]) == [
        Stage(("u:*", "b:"), 3, "none", "labels", {"u:lower[0]": ("b:",), "b:": ()}),
        Stage(("*",), 0, "all", "tests", {}),
    ]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("u:*", r"SC352.*learning\] schedule = 'u:\*'.*a list of stages"),
        (["*"], r"SC352.*schedule, stage 1, = '\*'.*a section"),
        ([{"steps": 2}], "SC352.*stage 1, .*with `templates`"),
        ([{"templates": "*", "step": 2}], "SC352.*stage 1, .*if need be, steps, require, admit"),
        ([{"templates": "*"}, {"templates": 3}], "SC352.*stage 2, templates = 3 "),
        ([{"templates": [3]}], r"SC352.*stage 1, templates = \[3\] "),
        ([{"templates": "*", "steps": -1}], "SC352.*stage 1, steps = -1 "),
        ([{"templates": "*", "steps": True}], "SC352.*stage 1, steps = True "),
        ([{"templates": "*", "require": "most"}], "SC352.*require = 'most' .*all, any, none"),
        ([{"templates": "*", "admit": []}], r"SC352.*admit = \[\] .*tests, labels"),
        ([{"templates": "*", "parents": ["b:"]}], r"SC352.*parents = \['b:'\] "),
        ([{"templates": "*", "parents": {"b:": 1}}], "SC352.*stage 1, parents = {'b:': 1} "),
    ],
)
def test_malformed_settings_are_refused(schedule, message):
    with pytest.raises(SparseCRFError, match=message):
        stages(schedule)


def test_a_component_reads_its_schedule():
    with pytest.raises(SparseCRFError, match=r"SC352.*sparse_crf.*schedule, stage 1, = '\*'"):
        pipeline(["*"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l1": 0.0}, "SC334.*sparse_crf.*l1 = 0.0 must be a number > 0"),
        ({"model": "maxent", "clusters": 2}, "SC334.*sparse_crf.*clusters = 2 must be 0"),
        (
            {"schedule": [{"templates": "u:*"}]},
            r"SC331.*templates b:, \*:lower.*, b:suffix\(3\)\[0\]",
        ),
        ({"schedule": [{"templates": "u:tag[0]"}]}, "SC330.*u:tag"),
    ],
)
def test_schedules_that_do_not_fit_the_component_are_refused(options, message):
    nlp = pipeline(**options)
    with pytest.raises(SparseCRFError, match=message):
        nlp.initialize(lambda: examples_of(nlp, make_sentences(5, 1)))


def test_other_features_than_templates_are_refused():
    features = {
        "@crf_features": "spacy_sparsecrf.CRFPPTemplates.v1",
        "text": "U00:%x[0,0]",
        "columns": ["orth"],
    }
    nlp = pipeline([{"templates": "*"}], features=features)
    with pytest.raises(SparseCRFError, match="SC333.*sparse_crf"):
        nlp.initialize(lambda: examples_of(nlp, make_sentences(5, 1)))


def test_streams_are_refused():
    solver = {"@crf_solvers": "spacy_sparsecrf.SGDL1.v1", "online": True}
    nlp = pipeline(solver=solver)
    nlp.config["training"]["batcher"] = {"@batchers": "spacy.batch_by_words.v1", "size": 9}
    with pytest.raises(SparseCRFError, match="SC384.*schedule = "):
        nlp.initialize(lambda: examples_of(nlp, make_sentences(5, 1)))


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


@pytest.fixture
def number():
    Token.set_extension("num", getter=lambda token: len(token.text) / 4.0)
    yield
    Token.remove_extension("num")


@pytest.mark.parametrize("first", [False, True], ids=["value last", "value first"])
@pytest.mark.parametrize("admit", ["tests", "labels"])
@pytest.mark.parametrize(
    ("early", "parents", "enters"),
    [
        (["b:", "u:lower[0]"], {}, 1),
        (["b:", "u:lower[0]"], {"u:value(_.num)[0]": "b:"}, 1),
        (["b:", "u:value(_.num)[0]"], {}, 0),
    ],
)
@pytest.mark.usefixtures("number")
def test_real_values_enter_with_the_stage_of_their_template(first, admit, early, parents, enters):
    templates = ["b:", "u:lower[0]", "u:lower[-1]|lower[0]", "u:value(_.num)[0]"]
    if first:
        templates = templates[::-1]
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": templates}
    stages = [
        {"templates": early, "steps": 2},
        {"templates": "*", "admit": admit, "parents": parents},
    ]
    nlp = pipeline(stages, features=features)
    sentences = make_sentences(60, 1)
    examples = examples_of(nlp, sentences)
    nlp.initialize(lambda: examples)
    training = nlp.get_pipe("sparse_crf")._session.training
    corpus, kin = training._corpus, training._kin
    assert len(corpus.value_tests) == 1
    assert kin.stage[corpus.value_tests].tolist() == [enters]
    of_tests = np.delete(kin.stage[: len(corpus.unigram_keys)], corpus.value_tests)
    n_words = len({token.lower for example in examples for token in example.predicted})
    assert np.count_nonzero(of_tests == 0) == (n_words if "u:lower[0]" in early else 0)
    run_steps(nlp, examples, 30)
    assert training.converged
    assert accuracy(nlp, sentences) > 0.8
    values = corpus.unigram_keys[corpus.value_tests]
    assert np.isin(values, nlp.get_pipe("sparse_crf").model.unigram.keys).all()
