"""Predictions of a first-stage model, inserted for the templates that read them."""

from spacy.attrs import LOWER  # type: ignore[import-not-found]

from ...crf.corpus.readings import Readings
from ..features.attributes.stage import FirstLabels
from ..features.plan import TemplatePlan


def fill(readings: Readings, plan: TemplatePlan, first: FirstLabels) -> Readings:
    """Insert the predictions of a first-stage model. RETURNS: readings for the second stage."""
    annotations = readings.annotations.copy()
    words = annotations[:, plan.annotations.index(LOWER) if LOWER in plan.annotations else 0]
    for attribute, column in plan.stacked.items():
        annotations[:, column] = attribute.predicted(words, first)
    return readings._replace(templates=plan.templates, annotations=annotations)
