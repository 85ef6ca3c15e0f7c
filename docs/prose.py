"""Check pages, messages, help and docstrings for standard terms, short sentences and remedies.

`python docs/prose.py`, which pre-commit runs, prints each fault.
"""

import ast
import json
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/notebooks/*.ipynb")])
# Phrases that are hard to read.
PHRASES = re.compile(
    r"\b(anew|befalls?|besides|shall|beside (?!the )|come along|is told|are told|is warned of"
    r"|at hand|(?-i:Those (?:that|of|who))|what is (told|said|learnt|there)|need not be said"
    r"|signs of life|to mend|mended)\b",
    re.IGNORECASE,
)
# A sentence that Markdown reads as a list, because a line begins with its last number.
LISTS = re.compile(r"[a-z,]\n *\d+\. [^\n]*")
LONGEST = 35
# Skipped text: code, tables, lists of names.
CODE = re.compile(
    r"^```.*?^```$|^ {4,}[^\n]*$|^ *\|[^\n]*$|^\$\$.*?\$\$$", flags=re.MULTILINE | re.DOTALL
)
# Imperatives that begin a remedy, at the start of a sentence or after "or".
REMEDIES = re.compile(
    r"\{remedy\}|(?:^|[.;,:)?}] |\n|\}| or |and )(add|annotate|begin|calibrate|call|change|check"
    r"|choose|combine|complete|convert|copy|correct|count|fill|find|free|give|import|keep|leave"
    r"|let|load|lower|move|name|number|put|raise|read|register|reinstall|remove|rename|repair"
    r"|report|restore|resume|retrain|rewrite|run|separate|set|start|train|trim|upgrade|use|write)\b",
    re.IGNORECASE,
)
PLACE = re.compile(r"\{\w|`[^`]+`|\[[a-z.]+|--\w|=|[A-Za-z]_[a-z]")
# Questions of a new user: the page with the answer, and a heading or phrase of it.
ANSWERS = {
    "which config for my data": ("choose-a-config.md", "# Choose a config"),
    "add a gazetteer": ("word-classes.md", "## Gazetteers"),
    "score lower on raw text": (
        "sentences-and-documents.md",
        "## Why is my score lower on raw text?",
    ),
    "tune": ("tune.md", "# Tune hyperparameters"),
    "choose l1 and l2": ("regularisation.md", "# Choose l1 and l2"),
    "more recall": ("thresholds.md", "# Get more recall, or more precision"),
    "nested entities": ("nested.md", "# Find nested and overlapping entities"),
    "continue training": ("add-a-label.md", "# Continue training, add a label"),
    "stop overwriting": ("decoding.md", "## Keep or overwrite annotation"),
    "explain one prediction": ("errors.md", "# Find and explain errors"),
    "l2 = 0.3 in CRFsuite": ("regularisation.md", "`l2 = 0.3` is `c2 = 0.15`"),
    "set the language": ("language-and-tokenizer.md", "# Set the language"),
    "which solver": ("solvers.md", "**Keep `OWLQN`**"),
    "how long, how much memory": ("resources.md", "how long does training take"),
    "serve": ("deploy.md", "## Write the service"),
    "use from Java": ("export.md", "| Java |"),
    "which texts to annotate": ("active-learning.md", "Which texts should I annotate next?"),
    "deploy without a compiler cache": ("deploy.md", "without a compiler cache"),
    "cite": ("../README.md", "## Citation"),
}
SEARCHED = ["jsonl", "prodigy", "chinese", "sentencizer", "hyperparameter", "grid search", "cite"]
SEARCHED += ["early stopping", "class weight", "jupyter", "displacy", "active learning", "freeze"]
SEARCHED += ["threshold", "gazetteer", "overwrite", "raw text", "overfit", "class imbalance"]
SEARCHED += ["fastapi", "docker", "javascript", "ruby", "read-only", "uvicorn", "half a minute"]
SEARCHED += ["nested", "recall", "abbreviation", "no-break", "forgotten", "learning curve"]


def text_of(page: Path) -> str:
    """Return the text of a page, or the Markdown of a notebook."""
    text = page.read_text(encoding="utf8")
    if page.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return text


def prose(text: str) -> str:
    """Return text without code, tables, link targets and formulas."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", CODE.sub("\n\n", text))
    return re.sub(r"`[^`]*`|\$[^$\n]+\$", "code", text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of paragraphs and list items, without headings."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=#)", text):
        if not block.lstrip().startswith(("#", "<")):
            yield from filter(None, re.split(r"(?<=[.!?:;])\s+", " ".join(block.split())))


def faults_of_pages() -> Iterator[str]:
    """Yield unusual terms, long sentences, and questions without an answer."""
    pages = {page.name: text_of(page) for page in PAGES}
    for name, whole in pages.items():
        text = prose(whole)
        found = [match[0] for rule in (PHRASES, LISTS) for match in rule.finditer(text)]
        lengths = {sentence: len(sentence.split()) for sentence in sentences(text)}
        found += [sentence for sentence, n in lengths.items() if n > LONGEST]
        yield from (f"{name}: {each}" for each in found)
    for question, (page, answer) in ANSWERS.items():
        is_linked = page.startswith("..") or f"(docs/{page}" in pages["README.md"]
        if answer not in (ROOT / "docs" / page).read_text(encoding="utf8") or not is_linked:
            yield f"{question!r} has no answer in {page}, or README does not link it"
    texts = [CODE.sub("", pages[page.name]).lower() for page in (ROOT / "docs").glob("*.md")]
    yield from (f"no page has {each!r}" for each in SEARCHED if not any(each in t for t in texts))


def faults_of_messages() -> Iterator[str]:
    """Yield messages with unusual terms, or without a value, a place or a remedy."""
    path = str(ROOT / "spacy_sparsecrf" / "errors.py")
    errors = runpy.run_path(path)
    for group in (errors["Errors"], errors["Warnings"]):
        for name, text in vars(group).items():
            if name.startswith("SC"):
                if match := PHRASES.search(text):
                    yield f"{name}: {match[0]}"
                # SC312 is about the bytes of a model, which have no name. The text of SCW251,
                # from `TypeCounts.messages`, has the remedy.
                has_remedy = REMEDIES.search(text) or name == "SCW251"
                if not has_remedy or not (PLACE.search(text) or name == "SC312"):
                    yield f"{name} names no remedy, or neither value nor place"


def faults_of_source() -> Iterator[str]:
    """Yield the faults of docstrings, and of help, which is given as `help=`."""
    for path in (ROOT / "spacy_sparsecrf").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            text = ""
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node) or ""
                # The summary of a property may begin with "Whether".
                if re.match(r"(What|How|Where|Tell|Who)\b", text):
                    yield f"{path.name}: {text.splitlines()[0]}"
            elif isinstance(node, ast.keyword) and node.arg == "help":
                text = ast.unparse(node.value)
            if match := PHRASES.search(text):
                yield f"{path.name}: {match[0]}"


if __name__ == "__main__":
    faults = [*faults_of_pages(), *faults_of_messages(), *faults_of_source()]
    sys.exit("\n".join(faults) or 0)
