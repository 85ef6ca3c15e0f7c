"""Screenshots of the pages that `errors`, `explain` and `export` write, by Chromium."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from wasabi import msg

# Those of README.md.
README_STEPS = """
example tickets
convert tickets.jsonl train.spacy --lang en --dev 0.2
config ner --lang en -o ner.cfg
train ner.cfg --output tickets --paths.train train.spacy --paths.dev dev.spacy
"""
# The model of docs/thresholds.md, which has learned from ten tickets and makes some errors.
_STEPS = """
example tickets
convert tickets.jsonl train.spacy --lang en --dev 0.4 --test 0.5
config ner --lang en -o ner.cfg
train ner.cfg --output few --paths.train train.spacy --paths.dev dev.spacy
errors few/model-best dev.spacy -n 3 --html errors.html
explain few/model-best --text "My Halo Router shows E494." -n 3 --html explain.html
"""
# README's model. The page's policy forbids the script that selects a word.
_EXPORT = "export tickets/model-best . --format portable --check tickets.jsonl"
_POLICY = "<meta http-equiv[^>]*>"
_SELECTED = (
    "start();\n</script>",
    "start(), document.querySelector('[role=option]').click()</script>",
)
# Width and height of each page, and the schemes by their numbers in Chromium.
_PAGES = {"errors": "960,1120", "explain": "390,920", "index": "720,833"}
_SCHEMES = ("dark", "light")
_OPTIONS = "--headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=2"


def take_steps(folder: Path, steps: str) -> None:
    """Run commands of the package in a directory."""
    for step in steps.strip().splitlines():
        words = [sys.executable, "-m", "spacy_sparsecrf", *shlex.split(step)]
        subprocess.run(words, cwd=folder, check=True)


def take(output: Path, chromium: str) -> None:
    """Write errors-light.png, errors-dark.png and the same of other pages."""
    if shutil.which(chromium) is None:
        msg.warn(f"No screenshots: {chromium} is not installed. Set --chromium to its path")
        return
    from PIL import Image

    with TemporaryDirectory() as folder:
        take_steps(Path(folder), _STEPS + README_STEPS + _EXPORT)
        for page, size in _PAGES.items():
            file = Path(folder, f"{page}.html")
            text = re.sub("(<details[^>]*) open", r"\1", file.read_text(encoding="utf-8"))
            text = re.sub(_POLICY, "", text).replace(*_SELECTED)
            file.write_text(text, encoding="utf-8")
            for i, scheme in enumerate(_SCHEMES):
                path = output.resolve() / f"{page.replace('index', 'portable')}-{scheme}.png"
                own = f"--window-size={size} --blink-settings=preferredColorScheme={i}".split()
                words = [chromium, *_OPTIONS.split(), *own, f"--screenshot={path}", file.as_uri()]
                subprocess.run(words, check=True, timeout=120, capture_output=True)
                Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
                msg.good(str(path))
