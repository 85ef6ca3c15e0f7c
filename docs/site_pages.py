"""Hooks of mkdocs: addresses, documents outside of docs/, notebooks, formulas, reference pages."""

import json
import re
import runpy
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from spacy_sparsecrf.errors import DOCUMENTATION, REPOSITORY, Errors

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "docs" / "notebooks"
# Outputs of notebooks are made for white paper, also on dark pages.
PAPER = "background: #fff; color: #000; padding: 0.3em 0.8em; overflow-x: auto"
# The theme colours admonitions by variables.
PAPER += "; --md-admonition-bg-color: #fff; --md-admonition-fg-color: #000"
# Documents of the repository, by what they are in the site.
DOCUMENTS = {
    name: name
    for name in ("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "LICENSE")
}
REPORTS = ["EXPERIMENTS", "RELIABILITY", "BENCHMARKS", "SOLVERS", "LAVERGNE", "LATTICES"]
_REPORTED = "project/measurements/"
# The search ranks reports and pages for developers below guides, by the beginning of their names.
BOOSTS = {"project/": 0.2, "notebooks/": 0.5, "extending": 0.5, "reference/parts": 0.5}
BOOSTS |= dict.fromkeys(("architecture", "CHANGELOG", "CONTRIBUTING", "SECURITY"), 0.5)
LINK = re.compile(r"(\]\()((?:\.\./)*[\w./-]+)((?:#[\w-]*)?\))")
PRIMED = r'<mrow>\1<mo lspace="0" rspace="0">\2</mo></mrow>'
FORMULA = re.compile(r"^\$\$(.+?)\$\$$|(?<![\\$\w])\$([^$\n]+)\$(?!\w)", flags=re.M | re.S)
# Pages of the Python interface: title, and modules with their objects, below `spacy_sparsecrf`.
INTERFACES = {
    "component": (
        "The component in Python",
        {
            "pipeline.component": "SparseCRFPipe",
            "pipeline.probabilities": "Probabilities",
            "pipeline.uncertainty": "Uncertainty",
            "training_log": "TrainingLog Iteration",
            "tools.analysis.explanation": "Confidences DocExplanation TokenExplanation Contribution"
            " ModelExplanation LabelExplanation FeatureWeight LabelledSpan",
            "tools.analysis.error_analysis": "find_mistakes Report Mistake Confusion",
            "pipeline.targets.matching": "Score Rates",
            "tools.analysis.calibration": "calibrate Calibration Threshold Reliability Bin",
            "tools.pages.rendering": "render",
        },
    ),
    "estimators": (
        "The estimator for scikit-learn",
        {
            "interop.sklearn.estimator": "CRF",
            "interop.sequences.trainer": "Trainer",
            "interop.sequences.tagger": "Tagger ItemSequence",
            "interop.weight_summary": "WeightSummary",
        },
    ),
    "parts": (
        "Base classes of solvers and targets",
        {
            "crf.solvers.solver": "BatchSolver StepReport",
            "pipeline.targets.target": "Target",
            "crf.corpus.encoded": "Observations",
        },
    ),
}
# The pages of modules have the same objects, and are what links to objects lead to.
OPTIONS = """    options:
      {show_root_heading: true, show_root_full_path: false, skip_local_inventory: true,
      show_bases: false, filters: ["!^_", "!^(PLUMBING)$"]}
"""
# Modules are for contributors: the search leads to the guide and the reference.
MESSAGES = """---
hide: [toc]
---
# Error messages

An error begins with its code, such as `[SC608]`, says what failed, and what to do. Names in braces
stand for the values of your data. [Warnings](../warnings.md) have a page with more advice.
"""
MODULE = """---
search: {{exclude: true}}
---
# `spacy_sparsecrf.{name}`

::: spacy_sparsecrf.{name}
"""
INTRODUCTION = (
    "In the examples, `nlp` and `examples` are those of the "
    "[first page](../index.md#train-an-entity-recognizer). `pipe` is the component `ner`.\n"
)
TRY = """## Try it in your browser

A model of support tickets, trained while these pages were built. Type, or select a word to see why
it has its label. No text leaves your browser, and [a command](portable.md) makes this page from
your own model.

<iframe src="try/index.html" title="Label a text"
 style="width: 100%; height: 44rem; border: 1px solid gray"></iframe>

"""
# Members that spaCy or the package call, not users.
PLUMBING = (
    "finish_update|use_params|training_run|end_training|set_output|set_annotations|is_resizable"
    "|setup|named|key|pipe|page|predictor|parts|of|groups|has_thresholds"
)
ARGUMENT = re.compile(r"(?<=<p>)((?:\w+, )*[a-z]\w*): |\n((?:\w+, )*[a-z]\w*): ")
CODE = re.compile(r"(^```.*?^```$|^    [^\n]*$|`[^`]*`)", flags=re.M | re.S)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the addresses, and put the pages of interfaces and modules into the navigation."""
    if stale := runpy.run_path(str(ROOT / "docs" / "figures.py"))["stale"]():
        raise PluginError(f"Stale figures in {', '.join(stale)}: run python docs/figures.py")
    # `mkdocs serve` has set its address.
    config.site_url = config.site_url or f"{DOCUMENTATION}/"
    config.repo_url, config.repo_name = REPOSITORY, "Repository"
    parts = {name: pages for part in config.nav or () for name, pages in part.items()}
    parts["Reference"] += [{"Error messages": "reference/messages.md"}]
    parts["Reference"] += [{t: f"reference/{name}.md"} for name, (t, _) in INTERFACES.items()]
    parts["Develop"].append({"Modules": [{name: f"modules/{name}.md"} for name in packages()]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add documents of the repository, reports with plots, notebooks and reference pages."""
    pages = {page: ROOT / name for name, page in DOCUMENTS.items()}
    pages |= {f"{_REPORTED}{name}.md": ROOT / _REPORTED / f"{name}.md" for name in REPORTS}
    for linked in ("measurements/*/plots/*.png", "recipes/*.py"):
        for path in (ROOT / "project").glob(linked):
            pages[path.relative_to(ROOT).as_posix()] = path
    # Browsers need a font with a table of mathematics, which few systems have.
    pages["fonts/formulas.ttf"] = Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSerif.ttf")
    for page, path in pages.items():
        files.append(File.generated(config, page, abs_src_path=str(path)))
    files.append(File.generated(config, "try/index.html", content=_tickets_page()))
    texts = {f"notebooks/{each.stem}.md": _notebook(each) for each in NOTEBOOKS.glob("*.ipynb")}
    for name in packages():
        texts[f"modules/{name}.md"] = MODULE.format(name=name)
    for name, (title, modules) in INTERFACES.items():
        options = OPTIONS.replace("PLUMBING", PLUMBING)
        objects = [
            f"{module}.{each}" for module, names in modules.items() for each in names.split()
        ]
        shown = [f"::: spacy_sparsecrf.{each}\n{options}" for each in objects]
        texts[f"reference/{name}.md"] = "\n".join([f"# {title}\n", INTRODUCTION, *shown])
    texts["reference/messages.md"] = MESSAGES + _messages()
    for page, text in texts.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links to where documents are in the site, and write formulas as MathML.

    The first page has README's example and results in front of "Get started".
    """
    source = page.file.src_uri
    for name, boost in BOOSTS.items():
        if source.startswith(name):
            page.meta["search"] = {"boost": boost}
    if source == "index.md":
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        [middle] = re.findall(r"^## Install\n.*?(?=^## Documentation\n)", readme, re.M | re.S)
        middle = re.sub(r'(\]\(|=")docs/', r"\1", middle)
        markdown = markdown.replace("## Get started\n", f"{TRY}{middle}## Get started\n")
    parts = CODE.split(markdown)
    for i in range(0, len(parts), 2):
        parts[i] = LINK.sub(lambda found: _link(found, source), parts[i])
        if source == "mathematics.md":
            parts[i] = FORMULA.sub(_formula, parts[i])
    # In tables, only GitHub needs a backslash before the bars of code.
    for i in range(1, len(parts), 2):
        if not parts[i].startswith("```"):
            parts[i] = parts[i].replace(r"\|", "|")
    return "".join(parts)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Begin a line for each argument of a docstring in the compact form of modules."""
    if not page.file.src_uri.startswith("modules/"):
        return html
    return ARGUMENT.sub(lambda x: f"<b>{x[1]}</b>: " if x[1] else f"<br><b>{x[2]}</b>: ", html)


def packages() -> list[str]:
    """The modules and packages that have a page."""
    package = ROOT / "spacy_sparsecrf"
    found = [path.parent.name for path in package.glob("*/__init__.py")]
    return sorted([*found, *(path.stem for path in package.glob("[!_]*.py"))])


def _tickets_page() -> bytes:
    """The page of a model of support tickets, which is trained here."""
    commands = """example tickets
convert tickets.jsonl train.spacy --lang en --dev 0.2
config ner --lang en -o ner.cfg
train ner.cfg --output tickets --paths.train train.spacy --paths.dev dev.spacy
export tickets/model-best portable --format portable --check tickets.jsonl"""
    with tempfile.TemporaryDirectory() as folder:
        for command in commands.splitlines():
            arguments = [sys.executable, "-m", "spacy_sparsecrf", *command.split()]
            subprocess.run(arguments, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return Path(folder, "portable", "index.html").read_bytes()


def _messages() -> str:
    """Every error, with its code as a heading, under the comments that group them."""
    source = (ROOT / "spacy_sparsecrf" / "errors.py").read_text(encoding="utf-8")
    groups = dict(re.findall(r"^    # (SC\d)xx: (.*)$", source, flags=re.M))
    parts = []
    for code in filter(re.compile(r"SC\d").match, vars(Errors)):
        if group := groups.pop(code[:3], ""):
            parts.append(f"## {group[0].upper()}{group[1:]}")
        text = getattr(Errors, code).partition("] ")[2]
        parts.append(f"### {code}\n\n<p>{escape(' '.join(text.split()))}</p>")
    return "\n\n".join(["", *parts])


def _notebook(path: Path) -> str:
    """The page of a notebook: its cells and their outputs."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source.replace(".ipynb)", ".md)"))
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = {"text/plain": output.get("text", ""), **output.get("data", {})}
            html, text = ("".join(data.get(f"text/{kind}", "")) for kind in ("html", "plain"))
            # Markdown ends a block of HTML at an empty line.
            if html.startswith("<iframe"):
                parts.append(f"<div>{html}</div>".replace("\n", "&#10;"))
            elif html:
                parts.append(f'<div style="{PAPER}">{html}</div>'.replace("\n", " "))
            else:
                parts.append(f"```text\n{text}\n```")
    parts.insert(1, f"[Download this notebook]({path.name})")
    return "\n\n".join(parts)


def _link(found: re.Match[str], source: str) -> str:
    """A link as it is in the site."""
    before, target, after = found.groups()
    target = re.sub(r"(?<=/)(\w+)\.ipynb$", r"\1.md", target)
    if source.startswith("project/"):
        target = re.sub(r"^((?:\.\./)+)docs/", r"\1", target)
        target = re.sub(r"^((?:\.\./)+)README\.md$", r"\1index.md", target)
    elif source in DOCUMENTS.values():
        target = re.sub(r"^docs/", "", target)
        target = re.sub(r"^README\.md$", "index.md", target)
    else:
        target = re.sub(r"^\.\./README\.md$", "index.md", target)
        target = re.sub(r"^\.\./(?=project/|[A-Z]+)", "", target)
    return before + target + after


def _formula(found: re.Match[str]) -> str:
    """A formula as MathML, which browsers show without a script."""
    block, inline = found.groups()
    # The sign of a prime is raised already.
    prime = re.compile(r"<msup>(<mi>\w</mi>)<mi>(&#x02032;)</mi></msup>")
    if block:
        shown = prime.sub(PRIMED, convert(block, display="block"))
        return f'<div style="margin: 1.5em 0; overflow-x: auto">{shown}</div>'
    # Markdown ends a paragraph before a line that begins with <math>.
    return f"<span>{prime.sub(PRIMED, convert(inline))}</span>"
