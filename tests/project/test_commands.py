"""Each command of the projects runs on toy data, and writes its outputs."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
import srsly
from spacy.cli.debug_config import debug_config
from spacy.cli.init_config import fill_config
from weasel.util.config import load_project_config

from ..support.processes import run_python
from ..support.projects import MEASUREMENTS, PROJECT, run, write_all

TRIAL = {"bench_size": "quick", "study_size": "quick", "lavergne_size": "quick"}
TRIAL |= {"lattices_size": "quick", "train_words": 1000}
# Commands that start many processes, or need a cluster or the extra `bench`.
SLOW = {
    *(
        "measure-whole",
        "measure-gradient",
        "measure-decode",
        "measure-raw",
        "bench-workers",
        "bench-driver",
    ),
    *("lavergne-run", "solvers-race", "lattices-race", "lattices-report", "corpus", "pronounce"),
    "pictures-draw",
}
# Folders that commands write.
_WRITTEN = "corpus", "packages", "training", "metrics"
# Pipelines that commands load.
TRAINED = {"ud": "ud_tagger", "chunks": "conll2000_chunks"}


def commands() -> dict[str, dict]:
    """Return the commands of both projects in the order of workflows."""
    ordered = {}
    for folder in (PROJECT, MEASUREMENTS):
        names = srsly.read_yaml(folder / "project.yml")["vars"]
        overrides = {f"vars.{name}": TRIAL[name] for name in TRIAL.keys() & names.keys()}
        config = load_project_config(folder, overrides=overrides)
        by_name = {command["name"]: command for command in config["commands"]}
        order = dict.fromkeys(step for steps in config["workflows"].values() for step in steps)
        assert order.keys() == by_name.keys(), "in no workflow"
        ordered |= {name: {**by_name[name], "folder": folder} for name in order}
    return ordered


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Both projects in one folder on toy data, with corpora and a few small pipelines."""
    folder = tmp_path_factory.mktemp("project")
    copied = PROJECT / "configs", PROJECT / "scripts", MEASUREMENTS / "configs"
    for path in (*copied, MEASUREMENTS / "lavergne"):
        ignored = shutil.ignore_patterns("plots")
        shutil.copytree(path, folder / path.name, ignore=ignored, dirs_exist_ok=True)
    for path in MEASUREMENTS.glob("*.md"):
        shutil.copy(path, folder)
    (folder / "data").mkdir()
    for name in ("bench", "study", "lavergne", "lattices"):
        (folder / "metrics" / name).mkdir(parents=True)
    write_all(folder / "data")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setenv("SPARSECRF_DATA", str(folder / "data"))
        for name in ("ud", "conll2000", "conll2002-es", "jnlpba"):
            run(["python", "-m", "measure.convert", name, "corpus"])
        for name, config in TRAINED.items():
            steps = ["--training.max_steps", "1", "--output", f"training/{name}"]
            run(["python", "-m", "spacy", "train", f"configs/{config}.cfg", *steps])
    return folder


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in commands()]
)
@pytest.mark.filterwarnings("ignore")
def test_commands_run_on_toy_data(name, place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setenv("SPARSECRF_DATA", str(place / "data"))
    command = {"deps": [], "outputs": [], **commands()[name]}
    # The example tickets come with the package, and the terminal shows their explanation.
    assert command["help"] and ((command["deps"] and command["outputs"]) or "tickets" in name)
    code = [x for x in command["deps"] if x.endswith((".py", ".cfg"))]
    assert all((command["folder"] / x).exists() for x in code)
    inputs = [x for x in command["deps"] if x.startswith(_WRITTEN)]
    there = all((place / x).exists() for x in inputs)
    for words in map(shlex.split, command["script"]):
        # spaCy commands, and measurements of them, would take long.
        own = not words[2].startswith("spacy")
        made = there and own and words[2] != "measure.processes"
        if own:
            run(words, made)
    assert not made or all((place / x).exists() for x in command["outputs"])


@pytest.mark.parametrize("config", sorted(PROJECT.rglob("configs/*.cfg")), ids=lambda p: p.stem)
def test_config_fills_and_is_valid(config, tmp_path, capsys):
    fill_config(tmp_path / "filled.cfg", config, silent=True)
    debug_config(tmp_path / "filled.cfg", overrides={})
    assert "Config is valid" in capsys.readouterr().out


@pytest.mark.slow
def test_demo_runs_from_end_to_end(tmp_path):
    project = tmp_path / "project"
    ignored = shutil.ignore_patterns("measurements", *_WRITTEN, "project.lock")
    shutil.copytree(PROJECT, project, ignore=ignored)
    command = ["-m", "spacy", "project", "run", "all", project, "--vars.train_words", 1000]
    done = run_python(*command)
    assert srsly.read_json(project / "metrics" / "tickets.json")["ents_f"] > 0.9
    assert re.search("Hamburg: B-CITY.*word_acc.*Hamburg: B-CITY", done.stdout, flags=re.DOTALL)
    assert srsly.read_json(project / "metrics" / "pronunciations.json")["phoneme_acc"] > 0.5
    assert run_python(*command).stdout.count("nothing changed") == 8


@pytest.mark.parametrize("options", ["--cap 0.5", "--tolerance 0.1", "--products --all-pairs"])
def test_medians_of_solvers_on_toy_data(options, tmp_path, monkeypatch):
    write_all(tmp_path)
    monkeypatch.setenv("SPARSECRF_DATA", str(tmp_path))
    words = "python -m study.medians conll2000-l2 --sequences 20 --repeats 1 --only L-BFGS"
    run([*words.split(), *options.split()])
