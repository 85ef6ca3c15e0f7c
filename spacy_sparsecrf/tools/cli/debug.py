"""`debug`: check training data, and estimate memory and time of training."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.language import Language
from spacy.training import Example
from spacy.training.initialize import init_vocab
from spacy.util import load_config, load_model_from_config, registry

from ...crf.memory import as_text, available_memory
from ...crf.model.names import escape
from ...pipeline.annotating import annotated
from ...pipeline.component import SparseCRFPipe
from ...pipeline.data_checks import DataChecks, unseen_names
from ...pipeline.spacy_loop import Loop, block_of
from ...pipeline.targets.spans import SpanTarget
from ...pipeline.tokenization import TokenCuts
from .common import Code, Component, Data, find, overrides_of, read, reported
from .printing import msg, print_table, say_cuts

FEW = 10  # labels with fewer tokens can hardly be learnt and are reported as rare
N_FEW = 20  # number of rare labels printed
N_ENDS = 10  # largest and smallest labels printed, if there are more
N_STEPS = 20  # iterations in the estimate of time; OWL-QN mostly takes fewer


def debug(
    ctx: typer.Context,
    model: Annotated[
        str, typer.Argument(help="Config, saved pipeline or name of an installed one")
    ],
    data: Data,
    component: Component = "",
    steps: Annotated[
        int, typer.Option(min=0, help="Number of iterations, the last of which is timed")
    ] = 3,
    code: Code = None,
) -> None:
    """Check training data: its labels, and the memory and time that training takes.

    Prints the frequency of each label, gold labels that are lost because tokens differ, the number
    of features and weights, and estimates of memory and time. No pipeline is changed. Override
    settings of the config as in `spacy train`.
    """
    # Imported here because spaCy's command line takes a second to import.
    from spacy.cli._util import import_code

    with reported():
        import_code(code)
        nlp = _open(model, overrides_of(ctx))
        pipe = find(nlp, model, component)
        examples = read(nlp, data, "train_corpus")
        msg.divider(f"{pipe.name} on {data}")
        _print_labels(pipe, [*annotated(examples, [*Loop.of(nlp, pipe).upstream.values()])])
        cuts = TokenCuts(nlp.tokenizer)
        for example in examples:
            cuts.add(example.reference)
        say_cuts(cuts, nlp.lang)
        start = time.perf_counter()
        pipe.initialize(lambda: examples, nlp=nlp)
        seconds = time.perf_counter() - start
        _print_unseen(nlp, pipe)
        _print_size(pipe)
        msg.text(f"Reading features, and preparing training: {seconds:.1f} s")
        _print_time(pipe, steps)


def _open(model: str, overrides: dict[str, object]) -> Language:
    """Load a saved pipeline, or create the untrained pipeline of a config."""
    if not Path(model).is_file():
        return spacy.load(model, config=overrides)
    nlp = load_model_from_config(load_config(model, overrides=overrides), auto_fill=True)
    settings = nlp.config.interpolate()["initialize"]
    keys = {"vocab_data": "data", "lookups": "lookups", "vectors": "vectors"}
    vocab_data = registry.resolve({argument: settings[key] for key, argument in keys.items()})
    if any(vocab_data.values()):
        init_vocab(nlp, **vocab_data)
    return nlp


def _print_labels(pipe: SparseCRFPipe, examples: Sequence[Example]) -> None:
    """Print the frequency of each label, and how many are missing or lost."""
    checks, counts, setup = DataChecks(), Counter[str](), pipe.setup
    for example in examples:
        gold = pipe.target.gold(example)
        checks.add(setup, example, gold)
        counts.update("|".join(x) if isinstance(x, tuple) else str(x) for x in filter(None, gold))
    n_gold = counts.total()
    n_tokens = sum(len(example.predicted) for example in examples)
    msg.text(f"{len(examples)} Docs, {n_tokens} tokens, {n_gold} of them with a gold label")
    if isinstance(pipe.target, SpanTarget):
        spans: Counter[str] = Counter()
        for label, n in counts.items():
            spans[label[2:]] += n * (label[:1] in ("B", "U"))
        rows = [[escape(name), str(n)] for name, n in spans.most_common() if name]
        print_table(_ends(rows), ("type", "spans"), "lr")
    shares = [[escape(x), str(n), f"{100 * n / n_gold:.2f}"] for x, n in counts.most_common()]
    print_table(_ends(shares), ("label", "tokens", "percent"), "lrr")
    few = [escape(label) for label, n in counts.items() if n < FEW]
    if few:
        more = ", ..." if len(few) > N_FEW else ""
        msg.warn(f"{len(few)} labels of fewer than {FEW} tokens: {', '.join(few[:N_FEW])}{more}")
    n_lost, n_cut, n_reference = checks.n["lost"], checks.n["cut"], checks.n["gold"]
    if n_lost:
        lost = f"{n_lost} of {n_reference} ({n_lost / n_reference:.2%})"
        where = "first that of {word!r} in the Doc that begins {text!r}".format(
            **checks.cases["lost"]
        )
        msg.warn(f"Gold labels lost, because predicted and gold tokens differ: {lost}, {where}")
    if n_cut:
        where = "first in the Doc that begins {text!r}".format(**checks.cases["cut"])
        what = "Gold spans that cross the start of a sentence or a blank line"
        msg.warn(f"{what}: {n_cut}, {where}")
    if n_gold and not n_lost and not n_cut:
        msg.good("No gold label is lost in training")


def _ends(rows: list[list[str]]) -> list[list[str]]:
    """Return the first and the last rows of a long table, and how many are between them."""
    n = len(rows) - 2 * N_ENDS
    left_out = [f"({n} others)", *[""] * (len(rows[0]) - 1)] if n > 1 else []
    return [*rows[:N_ENDS], left_out, *rows[-N_ENDS:]] if left_out else rows


def _print_unseen(nlp: Language, pipe: SparseCRFPipe) -> None:
    """Name labels of the development data of the config that training lacks."""
    path = block_of(nlp, "dev_corpus").get("path")
    if path is not None and Path(path).exists():
        examples = read(nlp, Path(path), "dev_corpus")
        gold = [label for example in examples for label in pipe.target.gold(example)]
        if unseen := unseen_names(pipe.target, gold, pipe.label_data):
            msg.warn(f"Labels of {path} that training lacks: {unseen}")


def _print_size(pipe: SparseCRFPipe) -> None:
    """Print the numbers of labels, features and weights, and an estimate of memory."""
    size, free = pipe.training_run().size, available_memory()
    counts = (len(pipe.label_data), size.n_features, size.n_potential, size.n_observed)
    names = "labels of tokens", "features", "potential weights", "weights of observed features"
    rows = [(name, f"{n:,}") for name, n in zip(names, counts, strict=True) if n is not None]
    if size.n_bytes is not None:
        rows.append(("memory, about", as_text(size.n_bytes)))
    if free is not None:
        rows.append(("free memory", as_text(free)))
    print_table(rows, ("to learn", ""), "lr")


def _print_time(pipe: SparseCRFPipe, steps: int) -> None:
    """Print the time of each iteration, and the number of active weights after it."""
    training, seconds = pipe.training_run(), 0.0
    for number in range(1, steps + 1):
        start = time.perf_counter()
        report = training.step()
        seconds = time.perf_counter() - start
        note = ", with the warm start, and compilation where it is needed" if number == 1 else ""
        msg.text(f"Iteration {number}{note}: {seconds:.1f} s, {report.n_active} active weights")
    if steps > 1:
        msg.good(f"{N_STEPS} iterations take about {N_STEPS * seconds:.0f} s, without scoring")
