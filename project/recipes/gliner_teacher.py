"""GLiNER as a teacher: it finds types by their names, with probabilities.

pip install gliner
python -m spacy_sparsecrf distil gliner_teacher:teacher texts.txt train.spacy --lang en
"""

from gliner import GLiNER

LABELS = {"person": "PERSON", "city": "CITY", "street address": "ADDRESS"}
model = GLiNER.from_pretrained("urchade/gliner_medium-v2.1")


def teacher(texts):
    """Yield the spans (start, end, label, probability) of each text."""
    # Spans below --sure become missing labels, so the threshold is lower.
    for spans in model.inference(list(texts), [*LABELS], threshold=0.3):
        yield [(x["start"], x["end"], LABELS[x["label"]], x["score"]) for x in spans]
