"""The command line, `python -m spacy_sparsecrf`."""

import errno
import gzip
import json
import re
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.util import load_config, load_model_from_config, logger
from thinc.api import Config

from spacy_sparsecrf import __version__
from spacy_sparsecrf.crf.memory import as_text
from spacy_sparsecrf.errors import SparseCRFError, SparseCRFWarning
from spacy_sparsecrf.tools.analysis.error_analysis import find_mistakes
from spacy_sparsecrf.tools.cli.config import shipped_configs
from spacy_sparsecrf.tools.pages.rendering import render

from ..conftest import CONFIGS, EXAMPLES, SHIPPED_CONFIG
from ..support.commands import run, run_spacy
from ..support.toy import docs_of, examples_of, mistagged, write_corpus

TSV = "The\tDT\ncat\tNN\n\nruns\tVB\n\n"


def test_every_command_has_help():
    for command in (
        "config",
        "explain",
        "errors",
        "debug",
        "dump",
        "patch",
        "convert",
        "train",
        "warmup",
    ):
        assert command in run("--help").stdout
        assert "Usage" in run(command, "--help").stdout
    assert "Usage" in run(code=2).output
    assert "NUMBA_CACHE_DIR" in run("warmup", "--help").output
    text = run("tune", "--help").output
    for option in ("--output", "--l1", "--budget", "--folds", "--within"):
        assert option in text


def test_as_a_module(tmp_path):
    command = [sys.executable, "-m", "spacy_sparsecrf", "dump", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "E050" in done.stderr and "Traceback" not in done.stderr


def test_configs_come_with_the_package(tmp_path):
    listed = " ".join(run("config").stdout.split())
    for path in CONFIGS.glob("*.cfg"):
        text = path.read_text(encoding="utf8")
        assert f"{path.stem} " in listed and text.splitlines()[0][2:] in listed
        assert run("config", path.stem).stdout == shipped_configs()[path.stem]
    target = tmp_path / "no" / "such" / "config.cfg"
    run("config", "tagger", "--output", target)
    assert target.read_text(encoding="utf8") == shipped_configs()["tagger"]
    assert "SC607" in run("config", "../configs/tagger", code=1).output
    target.write_text("mine", encoding="utf8")
    assert "SC608" in run("config", "tagger", "-o", target, code=1).output
    assert target.read_text(encoding="utf8") == "mine"
    run("config", "tagger", "-o", target, "--force")
    assert target.read_text(encoding="utf8") == shipped_configs()["tagger"]


def test_examples_come_with_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {path.stem.partition("-")[0] for path in EXAMPLES.iterdir()}
    assert names == {"addresses", "ingredients", "tickets"}
    for name in names:
        run("example", name)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert files == {path.name: path.read_bytes() for path in EXAMPLES.iterdir()}
    first = Path("ingredients-dev.tsv")
    first.unlink()
    Path("ingredients-train.tsv").write_text("mine", encoding="utf8")
    assert "SC608" in run("example", "ingredients", code=1).output
    assert not first.exists()  # both files, or none
    run("example", "ingredients", "--force")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    message = run("example", "ticket", code=1).output
    assert re.search("SC607.*Did you mean tickets.*addresses, ingredients, tickets", message)


def test_a_config_for_a_solver_and_a_language():
    text = run("config", "tagger", "--solver", "sag").stdout
    assert 'solver]\n@crf_solvers = "spacy_sparsecrf.SAG.v1"\n' in text
    listed = " ".join(run("config").stdout.split())
    assert f"tagger --solver SAG {text.splitlines()[0][2:]}" in listed
    for name, solver in ("tagger", "LBFGS"), ("ner", "SAG"), ("tagger", "GIS"):
        assert "SC607" in run("config", name, "--solver", solver, code=1).output
    text = run("config", "tagger", "--lang", "es").stdout
    english = shipped_configs()["tagger"]
    assert text == english.replace('lang = "en"', 'lang = "es"')
    assert "E048" in run("config", "tagger", "--lang", "xyz", code=1).output
    config = Config().from_str(run("config", "ner", "--lang", "zh").stdout, interpolate=False)
    assert load_model_from_config(config, auto_fill=True).make_doc("我在北京")[3].text == "京"


def test_a_config_for_spans_without_tags(tmp_path):
    records = (
        {"text": f"In {x} we met.", "spans": [[3, 3 + len(x), "CITY"]]} for x in ("Ulm", "Rom")
    )
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    run("convert", tmp_path / "a.jsonl", tmp_path / "a.spacy", "--spans", "sc", "--lang", "en")
    run("config", "spans", "--no-tags", "--types", "CITY", "-o", tmp_path / "a.cfg")
    with warnings.catch_warnings():
        warnings.simplefilter("error", SparseCRFWarning)
        paths = [f"--paths.{name}={tmp_path / 'a.spacy'}" for name in ("train", "dev")]
        output = run_spacy("train", tmp_path / "a.cfg", "--output", tmp_path / "model", *paths)
    assert "100.00" in output
    doc = spacy.load(tmp_path / "model" / "model-best")("In Ulm we met.")
    assert [(span.text, span.label_) for span in doc.spans["sc"]] == [("Ulm", "CITY")]
    assert "belongs to the config spans" in run("config", "ner", "--no-tags", code=2).output


def test_options_that_do_not_fit_and_missing_files_are_refused(tmp_path):
    config = tmp_path / "a.cfg"
    assert "name a config" in run("config", "-o", config, code=2).output
    run("config", "tagger", "-o", config)
    done = run("tune", config, "-o", tmp_path / "b.cfg", "--sead", "1", code=2)
    assert "--sead" in done.output and "--training.seed 1" in done.output
    assert "--sead" in run("debug", config, config, "--sead", "1", code=2).output
    data = ("--paths.train", "no.spacy", "--paths.dev", "no.spacy")
    done = run("tune", config, "-o", tmp_path / "out", *data, code=1)
    assert "no.spacy" in done.output and "Traceback" not in done.output


MISTAKES = [
    # Text of the config, its replacement, and parts of the message.
    (
        "inner_iter",
        "iner_iter",
        r"SC401\] \[components\.ner\.solver\].*iner_.*mean inner_iterations",
    ),
    ("threshold =", "treshold =", r"SC401\] \[components\.ner\] .*treshold.*mean threshold\?"),
    ("templates =", "tempaltes =", r"SC401\] \[components\.ner\.features\].*mean templates\?"),
    (
        "scheme =",
        "shceme =",
        r"SC401\] \[components\.ner\.target\].*mean scheme\? It has: scheme, types",
    ),
    (
        "[training.batcher]",
        "[training.batcher]\nsize = 1",
        r"SC401\] \[training\.batcher\].*It has: none\.",
    ),
    ("path =", "limt = 1\npath =", r"SC401\] \[corpora\.train\].*limt.*mean limit\?"),
    (
        "iterations = 12",
        'iterations = "x"',
        r"SC205\] \[components\.ner\.solver\] inner.*'x'.* int\.",
    ),
    ("l1 = 0.2", 'l1 = "x"', r"SC205\] \[components\.ner\] l1 = 'x'.* float\."),
    ("OWLQN", "OWLQM", r"SC663\] @crf_solvers = .*OWLQM.*mean spacy_sparsecrf\.OWLQN\.v1\?"),
    ('"@word_labels"', '"u:lowr[0]"', r"SC101\] .*\(Did you mean lower\?\); found 'lowr'"),
    (
        "train = null",
        "train = null",
        r"SC228\] \[corpora\.train\] or \[corpora\.dev\].*--paths\.dev",
    ),
    ("learning.polish", "learnin.polish", r"SC661\] .*\n.*'learnin' is not defined"),
    ("${paths.dev}", "${paths.dve}", r"SC661\] (.|\n)*paths\.dve"),
    ("patience = 1", 'patience = "x"', r"SC661\] .*\n.*patience"),
    ("[training]", "[trainning]", r"SC661\] .*no section \[trainning\]\. .*mean training\?"),
    ("[initialize]", "[initialise]", r"SC661\] .*no section \[initialise\]\. .*mean initialize\?"),
    ("[nlp]", "[npl]", r"SC661\] .*no section \[npl\]\. Did you mean nlp\?"),
    (
        "[components.ner]",
        "[componets.ner]",
        r"SC661\] .*no section \[componets\]\. .*mean components\?",
    ),
    ("patience = 1", "patiense = 1", r"SC401\] \[training\] .*'patiense'.*mean patience\?"),
    (
        "max_steps",
        "max_step = 3\nmax_steps",
        r"SC401\] \[training\] .*'max_step'.*mean max_steps\?",
    ),
    ("pipeline = [", "pipelin = [", r"SC401\] \[nlp\] .*'pipelin'.*mean pipeline\?"),
    ("before_init", "befor_init", r"SC401\] \[initialize\] .*'befor_init'.*mean before_init\?"),
    ('_ner"', '_nr"', r"SC663\] factory = 'sparse_crf_nr'.*mean sparse_crf_ner\?"),
    ("AnnotatedCorpus", "AnnotatedCorpu", r"SC663\] @readers = .*mean .*AnnotatedCorpus\.v1\?"),
    ("one_step", "one_stp", r"SC663\] @batchers = .*mean spacy_sparsecrf\.one_step_"),
    ("@crf_solvers", "@crf_solver", r"SC663\] registry = 'crf_solver'.*mean crf_solvers\?"),
    ('["ner"]', '["nre"]', r"SC663\] \[nlp\] pipeline = 'nre'.*mean ner\?"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES, ids=[x[1] for x in MISTAKES])
def test_training_explains_mistakes_in_a_config(old, new, message, corpus, tmp_path):
    text = (CONFIGS / "ner.cfg").read_text(encoding="utf8")
    (tmp_path / "a.cfg").write_text(text.replace(old, new, 1), encoding="utf8")
    paths = (
        [] if "SC228" in message else [f"--paths.{x}={corpus.dev_path}" for x in ("train", "dev")]
    )
    failed = run("train", tmp_path / "a.cfg", *paths, code=1)
    assert re.match(rf"Error: \[{message}", failed.stderr) and failed.stderr.count("\n") < 4


def test_training_explains_errors_of_files_and_of_the_component(corpus, tmp_path):
    files = {"train": str(tmp_path / "trian.spacy"), "dev": corpus.dev_path}
    (tmp_path / "train.spacy").write_bytes(b"no DocBin")
    failed = _failed_training(files)
    assert "SC229" in failed and "trian.spacy" in failed and "Did you mean train.spacy?" in failed
    assert "SC621" in _failed_training(files | {"train": str(tmp_path / "train.spacy")})
    files["train"] = corpus.dev_path
    assert "SC229" in _failed_training(files | {"dev": str(tmp_path / "none")})
    solver = {"components.sparse_crf.solver.@crf_solvers": "spacy_sparsecrf.NewtonCG.v1"}
    config = load_config(SHIPPED_CONFIG, overrides=solver)
    config.to_disk(tmp_path / "a.cfg")
    assert "SC308" in _failed_training(files, tmp_path / "a.cfg")
    level = logger.level
    with pytest.raises(SparseCRFError, match="SC229"):
        run("train", SHIPPED_CONFIG, "--paths.train", "none.spacy", "--verbose")
    logger.setLevel(level)
    assert "--sead" in run("train", SHIPPED_CONFIG, "--sead", 1, code=2).output


def _failed_training(files: dict[str, str], config: Path = SHIPPED_CONFIG) -> str:
    paths = [f"--paths.{name}={path}" for name, path in files.items()]
    return str(run("train", config, *paths, code=1).stderr)


def test_training_writes_the_same_pipeline_as_spacys_command(corpus, tmp_path):
    options = ["--paths.train", corpus.train_path, "--paths.dev", corpus.dev_path]
    options += ["--training.max_steps", "1"]
    printed = run("train", SHIPPED_CONFIG, "-o", tmp_path / "new" / "own", *options).stdout
    assert printed.count("Using CPU") == 1 and "--gpu-id" not in printed
    run_spacy("train", SHIPPED_CONFIG, "--output", tmp_path / "spacy", *options)
    for name in ("config.cfg", "sparse_crf/model", "sparse_crf/cfg", "meta.json"):
        own, other = (tmp_path / x / "model-best" / name for x in ("new/own", "spacy"))
        assert own.read_bytes() == other.read_bytes()


def test_explaining_a_model_and_a_text(trained_dir, tmp_path, monkeypatch):
    shown = run("explain", trained_dir, "-n", 2).stdout
    nlp = spacy.load(trained_dir)
    pipe = nlp.get_pipe("sparse_crf")
    assert f"{pipe.model.n_active} weights" in shown and all(x in shown for x in pipe.labels)
    assert "lower[0]=a" in shown or "suffix(1)[0]=a" in shown
    shown = run("explain", trained_dir, "--text", "the fentovtion").stdout
    for text in ("the: DT 0.9", "fentovtion: NN 0.", "lower[0]=the", "DT -> NN"):
        assert text in shown
    assert "SC614" in run("explain", trained_dir, "--text", " ", code=1).stderr
    # Earlier pipes annotate the text before it is explained.
    nlp.add_pipe("sentencizer", first=True)
    nlp.to_disk(tmp_path / "x")
    shown = run("explain", tmp_path / "x", "--text", "the a. the a.").stdout
    assert shown.count("(start) -> DT") in (0, 2)
    path, made = tmp_path / "a.html", fixed_footer(monkeypatch, trained_dir)
    run("explain", trained_dir, "-n", 2, "--html", path)
    assert path.read_text(encoding="utf8") == render(pipe.explain(2), "sparse_crf", 2, made)
    run("explain", trained_dir, "-n", 2, "--text", "the a", "--html", path, "--force")
    explained = pipe.explain_doc(Doc(pipe.vocab, words=["the", "a"], spaces=[True, False]))
    assert path.read_text(encoding="utf8") == render(explained, "sparse_crf", 2, made)


def fixed_footer(monkeypatch: pytest.MonkeyPatch, model: Path, **data: str) -> dict[str, str]:
    """Set the command and the date, and return the footer of a page."""
    monkeypatch.setattr(sys, "argv", ["x", "errors", "a b.spacy"])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    return {
        "pipeline": str(model),
        **data,
        "version": f"xx_pipeline 0.0.0, spacy-sparsecrf {__version__}",
        "date": "2001-09-09 01:46 UTC",
        "command": "python -m spacy_sparsecrf errors 'a b.spacy'",
    }


def test_errors_of_a_model(trained_dir, corpus, tmp_path, monkeypatch):
    data, sentences = tmp_path / "gold.spacy", mistagged(corpus.dev)
    nlp = spacy.load(trained_dir)
    write_corpus(data, nlp, sentences)
    shown = run("errors", trained_dir, data, "--limit", 2, "-n", 1).stdout
    pipe, examples = nlp.get_pipe("sparse_crf"), examples_of(nlp, sentences)
    found = find_mistakes(pipe, examples)
    assert f"{100 * found.scores[0].rates['strict'].f:.2f}" in shown
    assert found.conclusion in shown and shown.count("Doc ") == 2
    for mistake in found.mistakes[:2]:
        (gold,), (predicted,) = mistake.gold, mistake.predicted
        assert f"gold {gold.label} " in shown
        assert f"predicted {predicted.label} {predicted.probability:.4f}" in shown
        assert mistake.strongest(1)[0][1].name in shown
    gold = found.mistakes[0].pair[0]
    shown = run("errors", trained_dir, data, "--label", gold, "--limit", 999).stdout
    assert shown.count("Doc ") == sum(gold in mistake.labels for mistake in found.mistakes)
    path, made = tmp_path / "a.html", fixed_footer(monkeypatch, trained_dir, data=str(data))
    run("errors", trained_dir, data, "--word", "PLAN", "--html", path)
    report = find_mistakes(pipe, examples, word="plan")
    expected = render(report, "sparse_crf on gold.spacy", 3, made)
    assert path.read_text(encoding="utf8") == expected


def test_errors_without_gold_labels_or_a_path(trained_dir, corpus, tmp_path):
    failed = run("errors", trained_dir, corpus.dev_path, "--label", "NOTHERE", code=1).stderr
    assert "SC614" in failed and "NOTHERE" in failed and "DT, IN, JJ, NN, VB" in failed
    nlp = spacy.load(trained_dir)
    DocBin(docs=docs_of(nlp, corpus.dev)).to_disk(tmp_path / "bare.spacy")
    assert "SC640" in run("errors", trained_dir, tmp_path / "bare.spacy", code=1).stderr
    nlp.config["corpora"]["dev"] = {"@readers": "spacy.JsonlCorpus.v1"}
    nlp.to_disk(tmp_path / "x")
    assert "SC641" in run("errors", tmp_path / "x", corpus.dev_path, code=1).stderr


def test_what_training_would_take(corpus, trained_dir):
    shown = run("debug", SHIPPED_CONFIG, corpus.train_path, "--components.sparse_crf.l1", 1).stdout
    counts = Counter(tag for _, tags in corpus.train for tag in tags)
    rows = dict(line.split()[:2] for line in shown.splitlines() if line[:3].strip() in counts)
    assert rows == {tag: str(n) for tag, n in counts.items()}
    assert f"120 Docs, {counts.total()} tokens, {counts.total()} of them" in shown
    assert "No gold label is lost" in shown and "20 iterations take about" in shown
    assert shown.count("active weights") == 3
    nlp = spacy.load(trained_dir)
    pipe, examples = nlp.get_pipe("sparse_crf"), examples_of(nlp, corpus.train)
    shown = run("debug", trained_dir, corpus.train_path, "--steps", 0).stdout
    pipe.initialize(lambda: examples, nlp=nlp)
    size = pipe.training_run().size
    for number in (size.n_features, size.n_potential, size.n_observed):
        assert f" {number:,}" in shown
    assert f" {as_text(size.n_bytes)}" in shown  # in the format of the training log
    assert "Iteration" not in shown


@pytest.mark.filterwarnings("ignore:.*SCW220")
def test_lost_and_rare_labels_are_told(nlp, tmp_path):
    nlp.to_disk(tmp_path / "x")
    words = {"words": ["ab", "c", "d"], "spaces": [False, True, True]}
    docs = [Doc(nlp.vocab, **words, tags=["X", "Y", "Z"])]
    DocBin(docs=docs, attrs=["TAG"]).to_disk(tmp_path / "a.spacy")
    with pytest.warns(SparseCRFWarning, match="SCW208"):
        shown = run("debug", tmp_path / "x", tmp_path / "a.spacy", "--steps", 0).output
    shown = " ".join(shown.split())
    assert "1 Docs, 2 tokens, 1 of them with a gold label" in shown
    assert "1 labels of fewer than 10 tokens: Z" in shown
    assert "2 of 3 (66.67%), first that of 'ab' in the Doc that begins 'abc d" in shown


def test_pipelines_without_and_with_several_components(trained_dir, tmp_path):
    spacy.blank("xx").to_disk(tmp_path / "none")
    failed = run("dump", tmp_path / "none", code=1)
    assert "SC601" in failed.stderr and failed.stdout == ""
    assert "[]. Give a pipeline with a component sparse_crf" in failed.stderr
    nlp = spacy.load(trained_dir)
    nlp.add_pipe("sparse_crf", name="other")
    nlp.to_disk(tmp_path / "two")
    assert "SC602" in run("explain", tmp_path / "two", code=1).stderr
    failed = run("explain", tmp_path / "two", "--component", "third", code=1)
    assert "SC601" in failed.stderr and "sparse_crf, other" in failed.stderr
    assert run("dump", tmp_path / "two", "--component", "other").stdout == ""
    assert run("dump", tmp_path / "two", "-c", "sparse_crf").stdout


@pytest.mark.parametrize("command", ["dump", "example"])
def test_a_full_disk_leaves_files_unchanged(command, trained_dir, tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.chdir(tmp_path)
    paths = [tmp_path / "ingredients-dev.tsv", tmp_path / "ingredients-train.tsv"]
    for path in paths:
        path.write_text("old")
    monkeypatch.setattr("os.fsync", fail)
    arguments = {
        "dump": (trained_dir, "-o", paths[0], "--force"),
        "example": ("ingredients", "--force"),
    }
    message = run(command, *arguments[command], "--force", code=1).stderr
    assert "[SC319]" in message and "disk full" in message
    assert sorted(tmp_path.iterdir()) == paths and {path.read_text() for path in paths} == {"old"}


def test_weights_to_text_and_back(trained_dir, tmp_path):
    text = run("dump", trained_dir).stdout
    run("dump", trained_dir, "--output", tmp_path / "weights.tsv")
    assert (tmp_path / "weights.tsv").read_text(encoding="utf8") == text
    run("patch", trained_dir, tmp_path / "weights.tsv", tmp_path / "same", "--replace")
    for name in ("cfg", "model", "names"):
        path = Path("sparse_crf") / name
        assert (tmp_path / "same" / path).read_bytes() == (trained_dir / path).read_bytes()
    # Weight 0 removes.
    lines = text.splitlines()
    removed = lines[0].rsplit("\t", 1)[0]
    (tmp_path / "weights.tsv").write_text(f"{removed}\t0\n", encoding="utf8")
    shown = run("patch", trained_dir, tmp_path / "weights.tsv", tmp_path / "new").stdout
    assert "1 change:" in shown and f"{len(lines) - 1} weights" in shown
    assert run("dump", tmp_path / "new").stdout.splitlines() == lines[1:]


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz"])
def test_converting_there_and_back(tmp_path, suffix):
    source = tmp_path / f"a{suffix}"
    data = gzip.compress(TSV.encode(), mtime=0) if suffix.endswith("gz") else TSV.encode()
    source.write_bytes(data)
    columns = ("--columns", "orth,tag")
    assert "2 documents" in run("convert", source, tmp_path / "a.spacy", *columns).stdout
    run("convert", source, tmp_path / "b.spacy", "--docs", 2, "--lang", "en", *columns)
    assert len(DocBin().from_disk(tmp_path / "b.spacy")) == 1
    for name in "ab":
        back = tmp_path / f"{name}.back{suffix}"
        assert "2 sentences" in run("convert", tmp_path / f"{name}.spacy", back).stdout
        read = back.read_bytes()
        assert (gzip.decompress(read) if suffix.endswith("gz") else read) == TSV.encode()
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def test_multiword_tokens_are_told(tmp_path):
    source, target = tmp_path / "a.conllu", tmp_path / "a.spacy"
    rows = ["1-2", "del"], ["1", "de"], ["2", "el"]
    source.write_text("".join("\t".join([*row, *"_" * 8]) + "\n" for row in rows))
    found = run("convert", source, target)
    assert "1 multiword tokens are split into their words" in found.stdout + found.stderr


def test_conversions_that_fail(tmp_path):
    source, target = tmp_path / "a.tsv", tmp_path / "a.spacy"
    source.write_text("a\tO\nb\nc\tB-X\n")
    for arguments, found in (
        ([source, target], "SC611"),
        ([source, tmp_path / "b.tsv"], "SC620"),
        ([target, tmp_path / "b.spacy"], "SC620"),
        ([tmp_path / "none.tsv", target], "No such file"),
        ([source, target, "--columns", "orth,nope"], "SC614"),
        ([source, target, "--lang", "nope"], "nope"),
    ):
        failed = run("convert", *arguments, code=1)
        assert found in failed.stderr and failed.stdout == ""
        assert not target.exists()
    DocBin().to_disk(target)
    (tmp_path / "b.tsv").write_text("old")
    assert "SC612" in run("convert", target, tmp_path / "b.tsv", "--force", code=1).stderr
    assert {path.name for path in tmp_path.iterdir()} == {"a.spacy", "a.tsv", "b.tsv"}
    assert (tmp_path / "b.tsv").read_text() == "old"
    target.unlink()
    source.write_bytes(b"a\xff\n")
    source.rename(tmp_path / "a.doc")
    assert "SC610" in run("convert", tmp_path / "a.doc", target, code=1).stderr
    run("convert", source, target, "--docs", 0, code=2)
    run("convert", source, target, "--format", "nope", code=2)
    conllu = ["--columns", "orth,tag", "--format", "conllu"]
    assert "--columns" in run("convert", source, target, *conllu, code=2).stderr
    assert "orth=w" in run("convert", source, target, "--columns", "orth=w,ner", code=1).stderr
    assert "--format" in run("convert", target, source, "--format", "conllu", code=2).stderr
