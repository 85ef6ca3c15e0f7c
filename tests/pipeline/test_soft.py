"""Soft labels: weighted labellings from columns and from models, and training on them."""

from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from ..cli.commands import run
from ..toy import blank_with

SOFT = """\
Ada\tB-PER:0.7|O:0.3
King\tI-PER:0.7|O:0.3
met\tO

Oslo\tB-LOC:0.5|B-PER:0.2|O:.3
"""


def convert(folder: Path, text: str, columns: str = "orth,ner", **options: str) -> list[Doc]:
    (folder / "a.tsv").write_text(text, encoding="utf8")
    args = [str(folder / "a.tsv"), str(folder / "a.spacy"), "--columns", columns, *options]
    run("convert", *args, "--soft")
    nlp = spacy.blank("xx")
    blank_with(factory="sparse_crf_ner", learning={"doc_weight": "soft_weight"})
    return list(DocBin().from_disk(folder / "a.spacy").get_docs(nlp.vocab))


def test_cells_are_labellings_with_weights(tmp_path: Path):
    docs = convert(tmp_path, SOFT)
    found = [
        (doc.text, [e.label_ for e in doc.ents], pytest.approx(doc._.soft_weight)) for doc in docs
    ]
    assert found == [
        ("Ada King met ", ["PER"], 0.7),
        ("Ada King met ", [], 0.3),
        ("Oslo ", ["LOC"], 0.5),
        ("Oslo ", ["PER"], 0.2),
        ("Oslo ", [], 0.3),
    ]
    rng, counts = np.random.default_rng(0), {}
    cells = rng.dirichlet([1, 1, 1], size=4).round(3)
    cells[1] = 0.0, 1.0, 0.0
    lines = ["|".join(f"T{y}:{p:.3f}" for y, p in enumerate(cell)) for cell in cells]
    counts = defaultdict(float)
    text = "".join(f"w{i}\t{line}\n" for i, line in enumerate(lines))
    for doc in convert(tmp_path, text, "orth,tag"):
        for token in doc:
            counts[token.i, int(token.tag_[1])] += doc._.soft_weight
    for (i, y), count in counts.items():
        assert count == pytest.approx(cells[i, y] / cells[i].sum(), abs=1e-6)
    with pytest.raises(AssertionError, match=r"SC616|line 1.*sum to 0\.9"):
        convert(tmp_path, "a\tX:0.6|Y:0.3\n")


def test_the_model_expects_what_the_labellings_do(tmp_path: Path):
    nlp = blank_with(["b:", "u:lower[0]"], l1=0.0, l2=1e-6, learning={"doc_weight": "soft_weight"})
    text = "a\tX:0.7|Y:0.3\nb\tX:0.2|Y:0.5|X:0.3\n"
    docs = convert(tmp_path, text, "orth,tag")
    examples = [Example(Doc(doc.vocab, words=[t.text for t in doc]), doc) for doc in docs]
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("sparse_crf")
    while not pipe.training_run().converged:
        nlp.update(examples[:1])
    # X X: 0.2, X Y: 0.5, Y X: 0.3; three paths determine the weights.
    found = {tuple(path): p for path, p in pipe.nbest(Doc(nlp.vocab, words=["a", "b"]), 4)}
    assert found["X", "X"] == pytest.approx(0.2, abs=0.01)
    assert found["X", "Y"] == pytest.approx(0.5, abs=0.01)
    assert found["Y", "X"] == pytest.approx(0.3, abs=0.01)


def test_soft_labels_train_through_spacy(tmp_path: Path):
    sure = "Ada\tB-PER{0}\nmet\tO\n\nin\tO{0}\nOslo\tB-LOC{0}\n\n"
    for name, text in ("plain", sure.format("")), ("one", sure.format(":1.0")):
        convert(tmp_path, text)
        (tmp_path / "a.spacy").rename(tmp_path / f"{name}.spacy")
    convert(tmp_path, sure.format("") + SOFT)
    config, models = tmp_path / "ner.cfg", {}
    run("config", "ner", "--lang", "xx", "--no-sentencizer", "-o", str(config))
    text = config.read_text(encoding="utf8")
    config.write_text(text + '\n[components.ner.learning]\ndoc_weight = "soft_weight"\n')
    for name in ("plain", "one", "a"):
        path = str(tmp_path / f"{name}.spacy")
        paths = {"paths.train": path, "paths.dev": path, "components.ner.n_threads": 1}
        with pytest.warns(match="SCW224") if name != "a" else nullcontext():
            train(config, tmp_path / name, overrides=paths)
        models[name] = spacy.load(tmp_path / name / "model-last").get_pipe("ner").model.to_bytes()
    assert models["plain"] == models["one"] != models["a"]
