"""What `convert` takes columns for where nobody says it, and documents in columns."""

from pathlib import Path

import pytest
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.attributes import guess_columns
from spacy_sparsecrf.interop.columns import read_columns
from spacy_sparsecrf.interop.docs import read_docs

from ..cli.commands import run

CONLL = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

Bonn NNP B-NP B-LOC

-DOCSTART- -X- -X- O

Rome NNP B-NP B-LOC
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "orth"),
        ("a DT|b NN", "orth,tag"),
        ("a x DT|b y NN", "orth,_,tag"),
        ("a O|b B-LOC", "orth,ner"),
        ("a O|b S-LOC|c _|d -", "orth,ner"),
        ("a DT B-NP|b NN I-NP|c . O", "orth,_,spans:sc"),
        ("a DT B-NP O|b NN I-NP B-PER", "orth,_,_,ner"),
        ("a B-NP x|b O y", "orth,spans:sc,_"),
        ("a O|b O", "orth,tag"),  # nothing tells that these are spans
        ("a B-X|b NN", "orth,tag"),
        ("-DOCSTART- -X-|a B-X", "orth,ner"),
        ("-DOCSTART- O", "orth,tag"),
    ],
)
def test_columns_by_their_values(text: str, expected: str):
    assert ",".join(guess_columns(row.split() for row in text.split("|"))) == expected


def test_documents_begin_at_docstart(tmp_path: Path):
    path = tmp_path / "a.iob"
    path.write_text(CONLL)
    docs = list(read_docs(read_columns(path), Vocab(), n_sentences=10))
    assert [[token.text for token in doc] for doc in docs] == [["EU", "rejects", "Bonn"], ["Rome"]]
    assert [[e.label_ for e in doc.ents] for doc in docs] == [["ORG", "LOC"], ["LOC"]]
    assert [len(list(doc.sents)) for doc in docs] == [2, 1]
    assert len(list(read_docs(read_columns(path), Vocab()))) == 3
    path.write_text("-DOCSTART- O\na B-X\n")
    [doc] = read_docs(read_columns(path), Vocab())
    assert [token.text for token in doc] == ["a"]


@pytest.mark.parametrize("columns", [(), ("orth", "ner")])
def test_docstart_need_not_have_all_columns(tmp_path: Path, columns: tuple[str, ...]):
    path = tmp_path / "a.iob"
    path.write_text(
        "-DOCSTART-\n\na\tB-X\n-DOCSTART-\tO\tO\nb\tO\n\n-DOCSTART-\n-DOCSTART-\nc\tO\n"
    )
    docs = list(read_docs(read_columns(path, columns), Vocab(), n_sentences=10))
    assert [[token.text for token in doc] for doc in docs] == [["a"], ["b"], ["c"]]
    assert [e.label_ for e in docs[0].ents] == ["X"]
    path.write_text("-DOCSTART-\n\n-DOCSTART- O\n")
    with pytest.raises(SparseCRFError, match="SC612"):
        list(read_docs(read_columns(path, columns), Vocab()))
    path.write_text("-DOCSTART-\n\na O\nb\n")
    with pytest.raises(SparseCRFError, match="SC611.*line 4, has 1 columns, but 2"):
        list(read_docs(read_columns(path, columns), Vocab()))


def test_the_command_says_what_it_took_for_what(tmp_path: Path):
    (tmp_path / "a.iob").write_text(CONLL)
    arguments = "convert", tmp_path / "a.iob", tmp_path / "a.spacy"
    assert "taken for orth,_,_,ner" in run(*arguments).stdout
    assert "taken for" not in run(*arguments, "--columns", "orth,tag,_,ner").stdout
