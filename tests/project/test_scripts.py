"""The demo and the conversion of data sets."""

import itertools
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from spacy.cli.debug_config import debug_config
from spacy.cli.init_config import fill_config
from spacy.tokens import Doc, DocBin, Token
from spacy.training import Corpus, Example

from .toy_data import PROJECT, write_gzip

make = pytest.importorskip("scripts.make_pronunciations", reason="needs the extra `demo`")
from scripts import add_seen, align, convert, evaluate, pronounce  # noqa: E402

SAID = "tax T AE1 K S,fax F AE1 K S,fix F IH1 K S,tic T IH1 K,tact T AE1 K T,fact F AE1 K T"
SAID += ",fate F EY1 T,cat K AE1 T,kit K IH1 T,fit F IH1 T,site S AY1 T,sit S IH1 T,sat S AE1 T"
ENTRIES = [make.Entry(word, tuple(rest)) for word, *rest in map(str.split, SAID.split(","))]


@pytest.mark.parametrize("config", sorted(PROJECT.glob("configs/*.cfg")), ids=lambda p: p.stem)
def test_config_fills_and_is_valid(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_config(tmp_path / "filled.cfg", config, silent=True)
    debug_config(tmp_path / "filled.cfg", overrides={})
    assert "Config is valid" in capsys.readouterr().out


# The demo


@pytest.mark.parametrize("n_steps", [0, 2])
def test_likelihood_and_best_alignment_against_enumeration(n_steps: int) -> None:
    sounds = sorted({sound for entry in ENTRIES for sound in entry.sounds})
    n = len(sounds)
    words = [[ord(letter) - ord("a") for letter in entry.word] for entry in ENTRIES]
    batches = align.make_batches(words, [[sounds.index(s) for s in e.sounds] for e in ENTRIES])
    aligner = align.Aligner(26, n)
    aligner.table *= np.random.default_rng(0).uniform(0.5, 1.5, aligner.table.shape)
    values = [aligner.step(batches) for _ in range(n_steps)]
    expected = 0.0
    for batch in batches:
        rows = zip(batch.letters, batch.phonemes, batch.lengths, aligner.best(batch), strict=True)
        for word, phonemes, length, found in rows:
            scores = {}
            for sizes in itertools.product(range(3), repeat=len(word)):
                ends = itertools.accumulate(sizes)
                chunks = [phonemes[b - size : b] for b, size in zip(ends, sizes, strict=True)]
                if sum(sizes) == length:
                    labels = tuple(
                        [0, 1 + sum(c[:1]), 1 + n + sum(c[:1]) * n + sum(c[1:])][len(c)]
                        for c in chunks
                    )
                    pairs = zip(word, labels, strict=True)
                    scores[labels] = math.prod(aligner.table[pair] for pair in pairs)
            expected += math.log(sum(scores.values()))
            assert tuple(found) == max(scores, key=scores.__getitem__)
    values += [aligner.step(batches) for _ in range(3)]
    assert values[n_steps] == pytest.approx(expected, rel=1e-12)
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(values[1:]))


def test_letters_get_the_right_labels_and_survive_the_corpus_reader(tmp_path: Path) -> None:
    labelled = make.label_letters(ENTRIES, n_iterations=20)
    labels = dict(labelled)
    assert labels["tax"] == ("T", "AE1", "K+S") and labels["fate"] == ("F", "EY1", "T", "_")
    make.write_docs(labelled, tmp_path / "words.spacy")
    examples = Corpus(tmp_path / "words.spacy")(spacy.blank("en"))
    read = [
        ("".join(t.text for t in e.predicted), tuple(e.get_aligned("TAG", as_string=True)))
        for e in examples
    ]
    assert read == labelled
    found = pronounce.read_words(tmp_path / "words.spacy")
    assert found == {entry.word: list(entry.sounds) for entry in ENTRIES}
    rare = [make.Entry("aa", ("X", "X")), make.Entry("ab", ("X", "X"))]
    assert make.drop_rare(rare, min_count=1) == rare and make.drop_rare(rare, 2) == rare[:1]


def test_scores_of_pronunciations() -> None:
    gold, guesses = [["K", "AE1", "T"], ["T", "IY1"]], [["K", "AE0", "T", "T"], ["T", "IY1"]]
    assert pronounce.score(gold, gold) == {"phoneme_acc": 1.0, "word_acc": 1.0}
    scores = pronounce.score(gold, guesses)
    assert scores == {"phoneme_acc": pytest.approx(3 / 5), "word_acc": 0.5}


@pytest.mark.slow
def test_demo_runs_from_end_to_end(tmp_path: Path) -> None:
    project = tmp_path / "project"
    ignored = shutil.ignore_patterns("metrics", "corpus", "training", "packages", "project.lock")
    shutil.copytree(PROJECT, project, ignore=ignored)
    run = [sys.executable, "-m", "spacy", "project", "run", "all", str(project)]
    run += ["--vars.train_words", "1000"]
    subprocess.run(run, check=True)
    assert srsly.read_json(project / "metrics" / "pronunciations.json")["phoneme_acc"] > 0.5
    again = subprocess.run(run, check=True, capture_output=True, text=True)
    assert again.stdout.count("nothing changed") == 4


# Data sets


def test_documents_begin_with_a_dateline_and_have_entities(tmp_path: Path) -> None:
    line, text = "Ulm ( EFE ) .", "( text"
    texts = [*(text, line, text, text, line), *["a"] * 60]
    rows = [[[w, "X", "I-Y" if w == "Ulm" else "O"] for w in each.split()] for each in texts]
    write_gzip(tmp_path / "a.tsv.gz", rows)
    docs = list(convert.docs_of("conll2002-es", tmp_path / "a.tsv.gz", 50, marks=True))
    assert [len(list(doc.sents)) for doc in docs] == [1, 3, 50, 11]
    assert [(entity.text, entity.label_) for entity in docs[1].ents] == [("Ulm", "Y")]
    assert docs[0].has_annotation("ENT_IOB") and not docs[0].ents
    windows = convert.docs_of("conll2002-es", tmp_path / "a.tsv.gz", 2, 5)
    assert [len(list(doc.sents)) for doc in windows] == [2, 2, 1]


def test_chunks_are_labels_and_spans_and_scored_whole(tmp_path: Path) -> None:
    rows = [[["can't", "MD", "B-VP"], ["get", "VB", "I-VP"], ["it", "PRP", "B-NP"]]]
    write_gzip(tmp_path / "a.tsv.gz", rows)
    (doc,) = convert.docs_of("conll2000", tmp_path / "a.tsv.gz")
    assert [(s.text, s.label_) for s in doc.spans["sc"]] == [("can't get", "VP"), ("it", "NP")]
    assert [token.tag_ for token in doc] == ["MD", "VB", "PRP"]
    found = Doc(doc.vocab, words=[token.text for token in doc])
    for token, label in zip(found, ("B-VP", "O", "B-NP"), strict=True):
        token._.chunk = label
    scores = evaluate.score_labels([Example(found, doc)], "chunk")
    assert scores == pytest.approx(
        dict.fromkeys(("chunk_p", "chunk_r", "chunk_f"), 0.5) | {"chunk_acc": 2 / 3}
    )


def test_labels_of_words_are_those_of_other_folds(tmp_path: Path) -> None:
    vocab = spacy.blank("en").vocab
    said = {"train": ["NN", "VB", "NN", "", "", "JJ"], "dev": ["NN"], "test": []}
    for part, tags in said.items():
        docs = [Doc(vocab, words=[f"Run{i}"], tags=[tag]) for i, tag in enumerate(tags)]
        DocBin(attrs=["TAG"], docs=docs).to_disk(tmp_path / f"a-{part}.spacy")
    Token.set_extension("seen", default=None, force=True)  # other tests take extensions away
    add_seen.main(tmp_path, "a", "tag", loose=True)
    found = {
        part: [doc[0]._.seen for doc in DocBin().from_disk(path).get_docs(vocab)]
        for part in said
        for path in [tmp_path / f"a-seen-{part}.spacy"]
    }
    # The first and the sixth Doc are of one fold.
    assert found["train"] == ["NN|VB", "JJ|NN", *["JJ|NN|VB"] * 3, "NN|VB"]
    assert found["dev"] == ["JJ|NN|VB"] and found["test"] == []
