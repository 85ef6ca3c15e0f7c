"""Files of annotation tools, tables, and models of other programs, in the form of `texts`."""

import json
import struct
import tempfile
from functools import cache
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_sparsecrf.interop.docs import STORED
from spacy_sparsecrf.interop.formats import Format, open_records
from spacy_sparsecrf.interop.from_weights import set_weights
from spacy_sparsecrf.interop.importing import import_model
from spacy_sparsecrf.interop.records import Alignment, record_docs

from .kinds import QUIET, Arrays, Kind
from .texts import COLUMNS, WORDS, Text, sound_texts, use_columns, written

_BEHIND = "\f"  # separates the .txt and .ann files of brat


@cache
def _blank() -> Language:
    nlp = spacy.blank("xx")
    # The default tokenizer takes ten seconds for thousands of punctuation marks.
    nlp.tokenizer = Tokenizer(nlp.vocab)
    return nlp


def use_records(text: Text, sound: Text) -> Arrays:
    """Convert texts with spans; each text must become a Doc with its spans in a .spacy file."""
    kind, _, key = text.note.partition(" ")
    with tempfile.TemporaryDirectory(prefix="sparsecrf-") as folder:
        plain, _, marks = text.text.rpartition(_BEHIND) if kind == "brat" else ("", "", text.text)
        written(plain, folder, "a.txt")
        source = open_records(written(marks, folder, "a.ann"), Format(kind), "xx")
        given = [*source.entries]
    source.entries = iter(given)
    docs = [*record_docs(source, _blank(), Alignment.expand, key)]
    for entry, doc in zip(given, docs, strict=True):
        if not isinstance(entry, Doc):
            spans = [*doc.ents, *doc.spans.get(key, [])]
            assert doc.text == entry.text, "another text"
            assert {span.label_ for span in spans} <= {mark.label for mark in entry.marks}
    data = DocBin(STORED, store_user_data=True, docs=docs).to_bytes()
    both = [_told(docs), _told([*DocBin().from_bytes(data).get_docs(Vocab())])]
    assert both[0] == both[1], "other spans come back"
    return [np.array([len(docs)])]


def _told(docs: list[Doc]) -> list[object]:
    return [
        [
            [(token.text, token.tag_, token.ent_type_, token.ent_iob) for token in doc],
            {key: [str(span) for span in spans] for key, spans in doc.spans.items()},
        ]
        for doc in docs
    ]


def use_model(text: Text, sound: Text) -> Arrays:
    """Import a model, and predict with it and with its saved copy."""
    with tempfile.TemporaryDirectory(prefix="sparsecrf-") as folder:
        path = written(text.text, folder, "model")
        if text.note == "crfsuite":
            path.write_bytes(text.text.encode("latin1", "replace"))
        imported = import_model(path, ["orth", "pos"], {"w": "orth[0]"}, "float64")
    config = {
        "features": imported.features,
        "model": imported.model.kind,
        "learning": {"dtype": "float64"},
    }
    pipes: list[Any] = [_blank().create_pipe("sparse_crf", config=config) for _ in range(2)]
    set_weights(pipes[0], imported.model, imported.names, "model")
    pipes[1].from_bytes(pipes[0].to_bytes())
    with np.errstate(**QUIET):  # type: ignore[call-overload]
        docs = [pipe(Doc(pipe.vocab, words=WORDS)) for pipe in pipes]
    found = [[token.tag_ for token in doc] for doc in docs]
    assert found[0] == found[1], "other labels when loaded"
    return [np.array(found[0])]


def _crfsuite() -> str:
    """Return a CRFsuite model with an attribute and a transition, as characters of its bytes."""
    features = struct.pack("<3Id3Id", 0, 0, 1, 0.5, 1, 0, 1, -0.25)
    chunk = struct.pack("<4sII", b"FEAT", 12 + len(features), 2) + features
    labels, attributes = _strings("A", "Ü"), _strings("w=the")
    at = np.cumsum([48, len(chunk), len(labels)]).tolist()
    whole = at[-1] + len(attributes)
    head = struct.pack("<4sI4s9I", b"lCRF", whole, b"FOMC", 100, 2, 2, 1, *at, 0, 0)
    return (head + chunk + labels + attributes).decode("latin1")


def _strings(*texts: str) -> bytes:
    """Return a string database of CRFsuite, without its hash table."""
    entries, places = b"", []
    for i, text in enumerate(texts):
        places.append(24 + len(entries))
        data = text.encode() + b"\0"
        entries += struct.pack("<II", i, len(data)) + data
    size = 24 + len(entries) + 4 * len(places)
    head = struct.pack("<4s5I", b"CQDB", size, 0, 0, len(places), 24 + len(entries))
    return head + entries + struct.pack(f"<{len(places)}I", *places)


_SPAN = {"start": 0, "end": 3, "label": "P", "text": "Ann"}
_STUDIO = {"data": {"text": "Ann 🙂 ran"}, "annotations": [{"result": [{"value": _SPAN}] * 2}]}
_PRODIGY = {"text": "Ann ran", "spans": [_SPAN], "tokens": [_SPAN, {"start": 4, "end": 7}]}
_PRODIGY |= {"answer": "accept", "relations": [], "doc_id": 3}
_DOCCANO = {"id": 1, "text": "Ann ran", "label": [[0, 3, "P"], [0, 7, "X"]], "Comments": []}
_PAIR = ["Ann ran", {"entities": [[4, 7, "V"]]}]
_SHORT = {"text": "Ann", "label": [{"start": 0, "end": 3, "labels": ["P", "Q"]}]}
_DOC = {"text": "Ann", "tokens": [{"id": 0, "start": 0, "end": 3, "tag": "N"}], "ents": [_SPAN]}
_JSON = [json.dumps(e) for e in (_STUDIO, _PRODIGY, _DOCCANO, _PAIR, _SHORT, _DOC)]
_BRAT = "Ann ran.\nBo\n\fT1\tP 0 3\tAnn\nT2\tP 0 3;9 11\tAnn Bo\nR1\tx Arg1:T1 Arg2:T2\n#1\tn\n"
_CSV = "Sentence #,Word,POS,Tag\nSentence: 1,Ann,NN,B-P\n,ran,VB,O\nSentence: 2,Bo,NN,B-P\n"
_LABELS = "w=the:0.5\tx\\:y"
_WAPITI = "#mdl#2#3\n#rdr#3/0/0\n10:u:%x[-1,0],\n8:*%x[0,1],\n1:b,\n"
_WAPITI += "#qrk#2\n1:A,\n2:Ü,\n#qrk#3\n5:u:the,\n2:*N,\n1:b,\n0=0x1p-1\n3=-0x1.8p+0\n9=0x1p+1\n"
_CRFPP = "version: 100\ncost-factor: 0.5\nmaxid: 6\nxsize: 2\n\nA\nB\n\nU:%x[0,0]\nB\n\n"
_CRFPP += "2 B\n0 U:the\n\n1\n-1\n0\n0.5\n0\n2e-1\n"
_DUMP = (
    "FILEHEADER = {\n  magic: lCRF\n}\n\nLABELS = {\n      0: A\n      1: B\n}\n\nATTRIBUTES = {\n"
)
_DUMP += "      0: w=the\n}\n\nTRANSITIONS = {\n  (1) A --> B: 0.500000\n}\n\nSTATE_FEATURES = {\n"
_DUMP += "  (0) w=the --> B: -1.250000\n}\n"

CONVERTED_KINDS = {
    "tables": Kind(
        sound_texts(
            (_CSV, "csv sentence,orth,tag,ner"),
            (_CSV.replace(",", ";"), "csv _,orth,tag,ner"),
            (
                "doc_id," + _CSV.replace("\n", "\na,").removesuffix("a,"),
                "csv document,sentence,orth,tag,ner",
            ),
            ("Word Tag\n" + COLUMNS.replace("\t", " ").replace(" NN", ""), "columns"),
            (f"# id = 1\n# text = Ann\n{COLUMNS}\n# id = 2\n# NN O\n", "columns"),
            (f"O\t{_LABELS}\nB-X\tw=dog\n\nO\tw=.\n", "crfsuite orth,ner w"),
        ),
        use_columns,
    ),
    "json": Kind(
        sound_texts(
            ("\n".join(_JSON), "jsonl"),
            ("\n".join(_JSON), "jsonl sc"),
            (f'{{"annotations": [null, {", ".join(_JSON)}]}}', "json"),
        ),
        use_records,
    ),
    "brat": Kind(sound_texts((_BRAT, "brat"), (_BRAT, "brat sc")), use_records),
    "imported": Kind(
        lambda: sound_texts((_WAPITI, ""), (_CRFPP, ""), (_DUMP, ""), (_crfsuite(), "crfsuite"))(),
        use_model,
    ),
}
