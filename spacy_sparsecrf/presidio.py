"""A recognizer of Presidio, with exact probabilities as scores."""

from typing import Any, cast

import spacy
from spacy.language import Language

from .errors import Errors, MissingExtraError

try:
    from presidio_analyzer import AnalysisExplanation, EntityRecognizer, RecognizerResult
except ImportError as error:
    needed = {"package": "presidio-analyzer", "extra": "presidio"}
    raise MissingExtraError(Errors.SC817.format(what=__name__, **needed)) from error


class SparseCRFRecognizer(EntityRecognizer):  # type: ignore[misc]
    """Recognizer of Presidio for the entities that a sparse CRF of a pipeline predicts.

    Scores are the exact probabilities of entities.

    Parameters
    ----------
    nlp : Language or str
        The pipeline, or its name or path.
    component : str, default "ner"
        Name of its component.
    names : dict of str to str, optional
        Presidio's names of labels, if they differ, as in ``{"GIVEN_NAME": "PERSON"}``.
    explain : bool, default False
        Whether the decision process names the three features that count most for the label of
        the entity's first token, and against it. It takes many times the time of a prediction.
    options
        Further arguments of ``EntityRecognizer``, such as `context` and `score_thresholds`.
    """

    def __init__(
        self,
        nlp: Language | str,
        component: str = "ner",
        names: dict[str, str] | None = None,
        explain: bool = False,
        **options: Any,
    ) -> None:
        self.nlp = spacy.load(nlp) if isinstance(nlp, str) else nlp
        self.pipe = cast("Any", self.nlp.get_pipe(component))
        self.explain = explain
        self.names = {label: (names or {}).get(label, label) for label in self.pipe.labels}
        entities = sorted({*self.names.values()})
        options = {"supported_language": self.nlp.lang, **options}
        super().__init__(supported_entities=entities, **options)

    def load(self) -> None:
        """Do nothing: the pipeline is loaded."""

    def analyze(
        self, text: str, entities: list[str], nlp_artifacts: Any = None
    ) -> list[RecognizerResult]:
        """Return the entities of a text whose names are among `entities`."""
        doc = self.nlp(text)
        tokens = self.pipe.explain_doc(doc).tokens if self.explain else ()
        recognized = []
        for entity, chance in zip(
            doc.ents, self.pipe.entity_probabilities(doc, doc.ents).clip(0, 1), strict=True
        ):
            name, score = self.names[entity.label_], float(chance)
            strongest = tokens[entity.start].strongest(3) if tokens else ()
            reasons = [f"{x.feature} {x.difference:+.2f}" for x in strongest]
            reason = ", ".join([f"{entity.label_} {score:.3f}", *reasons])
            decision = AnalysisExplanation(self.name, score, textual_explanation=reason)
            if name in entities:
                start, end = entity.start_char, entity.end_char
                recognized.append(RecognizerResult(name, start, end, score, decision))
        return recognized
