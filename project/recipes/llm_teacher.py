"""A language model as a teacher, through spacy-llm: it has no probabilities.

pip install spacy-llm
python -m spacy_sparsecrf distil llm_teacher:teacher texts.txt train.spacy --lang en
"""

import typing

import spacy
from spacy_llm.registry import registry

LABELS = ["PERSON", "CITY"]


def complete(prompt):
    """Return the answer of a language model to a prompt. Call yours here."""
    raise NotImplementedError("call a language model in llm_teacher.complete")


@registry.llm_models("my_model.v1")
def my_model():
    """Return a function of the prompts of each Doc. spacy-llm reads its types."""

    def answers(
        prompts: typing.Iterable[typing.Iterable[str]],
    ) -> typing.Iterable[typing.Iterable[str]]:
        return [[complete(prompt) for prompt in of_doc] for of_doc in prompts]

    return answers


nlp = spacy.blank("en")
task = {"@llm_tasks": "spacy.NER.v2", "labels": LABELS}
nlp.add_pipe("llm", config={"task": task, "model": {"@llm_models": "my_model.v1"}})


def teacher(texts):
    """Yield the spans (start, end, label) of each text."""
    for doc in nlp.pipe(texts):
        yield [(x.start_char, x.end_char, x.label_) for x in doc.ents]
