"""Named entities by a chain, by chains in which equal words are joined, and in two stages.

Sentences are joined to Docs, windows of so many consecutive ones. All models have the same config
but for what tells them apart, and stop at their best development F1.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import spacy
import srsly
import typer
from measure import main as measure
from spacy.tokens import Doc, DocBin
from spacy.util import load_config, minibatch
from wasabi import msg

from spacy_sparsecrf.features.defaults import ENTITY_TEMPLATES

# Languages of corpora, by their names in `convert_entities.py`.
LANGUAGES = {"conll2002-es": "es", "jnlpba": "en"}
_STACKED = ("first[-1]", "first[0]", "first[1]", "first[-1]|first[0]", "doc_majority[0]")
_STACKED = (*_STACKED, "doc_majority[0]|first[0]", "doc_entity[0]", "doc_entity[0]|first[0]")


def _skip(edge: str) -> dict[str, Any]:
    return {"model": "graph", "sequences": "docs", "edges": ["chain", edge]}


# What a model has of its own, by its name.
MODELS: dict[str, dict[str, Any]] = {
    "chain": {},
    "skip chain, capitals": _skip("same(orth, if=is_title)"),
    "skip chain, words": _skip("same(lower, if=is_alpha)"),
    "two stages": {
        "features": {
            "@crf_features": "spacy_sparsecrf.Templates.v1",
            "templates": [*ENTITY_TEMPLATES, *(f"u:{read}" for read in _STACKED)],
        },
        "learning": {"stack": {"folds": 5}},
    },
}


def join(docs: Sequence[Doc]) -> Doc:
    """One Doc of sentences that are a Doc each, with their entities."""
    tokens = [token for doc in docs for token in doc]
    return Doc(
        docs[0].vocab,
        words=[token.text for token in tokens],
        sent_starts=[token.i == 0 for token in tokens],
        ents=[f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in tokens],
    )


def windows(path: Path, size: int, first: int, lang: str) -> Iterator[Doc]:
    """Windows of a corpus; first: how many of its sentences, 0 = all."""
    docs = list(DocBin().from_disk(path).get_docs(spacy.blank(lang).vocab))
    yield from map(join, minibatch(docs[: first or None], size))


def train(data: str, name: str, output: Path) -> dict[str, float]:
    """Train a model; RETURNS: development F1 in percent, and CPU seconds."""
    place = output / f"{data}-{name.replace(', ', '-').replace(' ', '-')}"
    config = load_config(Path("configs/windows.cfg"))
    config["nlp"]["lang"] = LANGUAGES[data]
    config["paths"] |= {part: str(output / f"{data}-{part}.spacy") for part in ("train", "dev")}
    config["components"]["sparse_crf_ner"] |= MODELS[name]
    place.mkdir(parents=True, exist_ok=True)
    config.to_disk(place / "config.cfg")
    words = ["python", "-m", "spacy", "train", str(place / "config.cfg"), "--output", str(place)]
    measure(place / "cost.json", words)
    cost, meta = (srsly.read_json(place / file) for file in ("cost.json", "model-best/meta.json"))
    scores = {key: 100.0 * meta["performance"][f"ents_{key}"] for key in "fpr"}
    return {**scores, "cpu": cost["cpu_seconds"]}


def main(
    metrics: Annotated[Path, typer.Argument(help="JSON file for the figures")],
    corpus: Annotated[Path, typer.Argument(help="Directory of the .spacy files")],
    output: Annotated[Path, typer.Argument(help="Directory for windows and pipelines")],
    size: Annotated[int, typer.Option(help="Sentences of a window")] = 10,
    first: Annotated[int, typer.Option(help="Sentences to train on, 0 = all")] = 0,
) -> None:
    """Train all models on all corpora; what was trained is kept."""
    settings = {"size": size, "first": first}
    found: dict[str, Any] = srsly.read_json(metrics) if metrics.exists() else {}
    if not settings.items() <= found.items():
        found = settings
    output.mkdir(parents=True, exist_ok=True)
    for data, lang in LANGUAGES.items():
        for part, n in (("train", first), ("dev", 0)):
            docs = windows(corpus / f"{data}-{part}.spacy", size, n, lang)
            bin_ = DocBin(attrs=["ENT_IOB", "ENT_TYPE", "SENT_START"], docs=docs)
            bin_.to_disk(output / f"{data}-{part}.spacy")
        scores = found.setdefault(data, {})
        for name in MODELS:
            scores[name] = scores.get(name) or train(data, name, output)
            msg.good(f"{data}, {name}: {scores[name]}")
            srsly.write_json(metrics, found)


if __name__ == "__main__":
    typer.run(main)
