"""The sections of the report: what each benchmark measures, and its tables."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reports.tables import named, number, shown, table

from . import crfpp, crfsuite, wapiti
from .comparison import cell, comparison, notes
from .decode import SAME, UNLABELLED
from .floor import COMPILER, FLAGS, FLOOR
from .floor import WHAT as FORWARD_BACKWARD
from .measurements import OURS, Record, tools_of
from .templates import COLD, STEADY

Body = Callable[[Record, Sequence[str]], str]


@dataclass(frozen=True)
class Benchmark:
    """A section: name of the benchmark, heading, text, peers that may be absent, and its body.

    row_names: how many cells name a row of its table, of which those that were not measured again
    stay; 0 where all are measured at once.
    """

    name: str
    title: str
    text: str
    peers: tuple[str, ...] = ()
    body: Body | None = None
    row_names: int = 0


def body_of(section: Benchmark, record: Record, absent: Sequence[str]) -> str:
    """The tables of a section."""
    return (section.body or measurements)(record, absent)


def measurements(record: Record, absent: Sequence[str]) -> str:
    """The table of all measurements, and the remarks on them."""
    remarks = notes(record.measurements)
    return "\n\n".join([comparison(record.measurements, absent), *remarks])


def agreement(record: Record, absent: Sequence[str]) -> str:
    """Numbers of weights and objectives, here and there; the corpora."""
    found = {name: row for name, row in record.details.items() if name != "corpora"}
    rows = [
        [
            name,
            f"{row['potential_weights']:,}",
            f"{row['its_weights']:,}",
            f"{row['objective']:.6f}",
            str(row["its_objective"]),
        ]
        for name, row in found.items()
    ]
    header = ["", "weights, ours", "weights, its", "objective, ours", "objective, its"]
    corpora: dict[str, dict[str, int]] = record.details.get("corpora", {})
    columns = list(next(iter(corpora.values()), {}))
    sizes = [[name, *(f"{row[key]:,}" for key in columns)] for name, row in corpora.items()]
    missing = [f"{name} was not there." for name in absent]
    return "\n\n".join([table(header, rows), table(["", *columns], sizes), *missing])


def threads(record: Record, absent: Sequence[str]) -> str:
    """A column for each number of threads, and what the last gains over the first."""
    counts = sorted({one.threads for one in record.measurements})
    rows = []
    for place in dict.fromkeys((one.data, one.what, one.tool) for one in record.measurements):
        cells = [record.find(*place, threads=n) for n in counts]
        first, last = cells[0], cells[-1]
        gain = f"{first.median / last.median:.2f}x" if first and last else ""
        rows.append([": ".join((place[0], f"{place[1]}, {place[2]}")), *map(cell, cells), gain])
    missing = [f"{name} was not there." for name in absent]
    return "\n\n".join([table(["", *(f"{n} thread(s)" for n in counts), "gain"], rows), *missing])


def decode(record: Record, absent: Sequence[str]) -> str:
    """Speed of each tool, and its accuracy."""
    rows = []
    for one in record.measurements:
        right = record.details[one.data]["accuracy"].get(one.tool)
        accuracy = "" if right is None else f"{100 * right:.2f} %"
        rows.append([one.data, one.tool, cell(one), f"{number(one.median)} s", accuracy])
    return table(["", "", "tokens", "the test part", "labels right"], rows)


def templates(record: Record, absent: Sequence[str]) -> str:
    """Thousands of tokens a second of the processor."""
    rows = []
    for what in dict.fromkeys(one.what for one in record.measurements):
        cells = [one for one in record.measurements if one.what == what]
        speeds = [one.items / statistics.median(one.cpu) / 1e3 for one in cells]
        rows.append([what, *(f"{number(speed)} k/s" for speed in speeds)])
    facts = named(record.details["corpus"])
    return "\n\n".join([table(["", COLD, STEADY], rows), f"{facts}."])


def startup(record: Record, absent: Sequence[str]) -> str:
    """Seconds of each process, and the differences."""
    rows = [[one.data, cell(one)] for one in record.measurements]
    added = [[what, f"{value:+.3f} s"] for what, value in record.details["added_seconds"].items()]
    return "\n\n".join([table(["process", "from start to end"], rows), table(["adds", ""], added)])


def kernels(record: Record, absent: Sequence[str]) -> str:
    """Peaks, then a table for each thing that was profiled."""
    peaks = record.details["peaks"]
    units = {name: "GB/s" if name == "triad" else "GFLOP/s" for name in peaks}
    shown = [[name, f"{number(value)} {units[name]}"] for name, value in peaks.items()]
    if "exp" in record.details:
        exp = record.details["exp"]
        shown.append(["exp", f"{number(exp['gflops'])} GFLOP/s, {number(exp['ns an element'])} ns"])
    parts = [table(["one thread", ""], shown)]
    for name, rows in record.details.items():
        if isinstance(rows, list):
            header = [name, "ms", "share", "GFLOP/s (of peak)", "GB/s (of triad)"]
            parts.append(table(header, map(_kernel, rows[:8])))
    return "\n\n".join(parts)


def _kernel(row: dict[str, Any]) -> list[str]:
    flops = traffic = ""
    if "gflops" in row:
        flops = f"{number(row['gflops'])} ({100 * row['of_peak']:.0f} %)"
        traffic = f"{number(row['gbs'])} ({100 * row['of_triad']:.0f} %)"
    return [
        row["kernel"],
        number(1e3 * row["seconds"]),
        f"{100 * row['share']:.0f} %",
        flops,
        traffic,
    ]


def floor(record: Record, absent: Sequence[str]) -> str:
    """Microseconds a token, and how many times those of C ours takes."""
    rows = []
    for data, what in dict.fromkeys((one.data, one.what) for one in record.measurements):
        sides = [record.find(data, what, tool) for tool in (OURS, FLOOR)]
        ours, plain = (one and one.median / one.items * 1e6 for one in sides)
        times = f"{ours / plain:.1f}x" if ours and plain else ""
        name = data if what == FORWARD_BACKWARD else f"{data}, {what}"
        rows.append([name, *(shown(cost) for cost in (ours, plain)), times])
    return table(["us a token", OURS, FLOOR, "ours / C"], rows)


def brown(record: Record, absent: Sequence[str]) -> str:
    """Time, memory and accuracy."""
    corpus, accuracy = record.details["corpus"], record.details["accuracy"]
    scores = ", ".join(f"{part} {100 * value:.2f} %" for part, value in accuracy.items())
    return "\n\n".join([f"{named(corpus)}. Tags right: {scores}.", measurements(record, absent)])


def whole(record: Record, absent: Sequence[str]) -> str:
    """A row for each data set and tool, and how many times our processor time it took."""
    rows = []
    for data in dict.fromkeys(one.data for one in record.measurements):
        of_data = {one.tool: one for one in record.measurements if one.data == data}
        cpu = {tool: statistics.median(one.cpu) for tool, one in of_data.items()}
        for tool in tools_of(of_data.values()):
            one, told = of_data[tool], record.details[data][tool]
            costs = [cpu[tool], one.median, told["first"], told["peak_mb"], told["model_mb"]]
            times = cpu[tool] / cpu[OURS] if OURS in cpu and tool != OURS else None
            scores = [f"{told[part]:.2f}" for part in ("test", "dev")]
            rows.append([data, tool, *scores, *map(number, costs), show_times(times)])
    header = [
        "",
        "",
        "test",
        "development",
        "CPU s",
        "wall s",
        "first row, s",
        "peak MB",
        "model MB",
    ]
    return table([*header, "CPU s / ours"], rows)


def show_times(value: float | None) -> str:
    """How many times more; nothing where that is not known."""
    return "" if value is None else f"{value:.1f}x"


_W, _C, _P = wapiti.NAME, crfsuite.NAME, crfpp.NAME
SECTIONS = (
    Benchmark(
        "agreement",
        "The same problem",
        "The peers' input is written from our encoded corpus. Peers are trained for some "
        "iterations on samples; our objective is then computed at their weights. CRFsuite's "
        "problem has the weights of observed pairs of a test, or label, with a label only.",
        (_W, _C, _P),
        agreement,
    ),
    Benchmark(
        "gradient",
        "One gradient",
        "Ours: loss and gradient at small random weights. Peers: an iteration, which is one "
        f"gradient and one update. {_W} labels a development file of one sentence in each "
        f"iteration. {_P} trains with its l2 penalty: in its l1 training value and gradient "
        "agree for C = 1 only; an iteration takes as long.",
        (_W, _C, _P),
    ),
    Benchmark(
        "objective",
        "Time to the best objective",
        "Seconds until the objective is within 0.1 % of the lowest that anyone reached, from the "
        "encoded corpus in memory on: warm start, working set and screening are part of ours. "
        "Ours run far beyond the usual end (tolerance 0.001, window 1e-7). With observed pairs "
        "only there is no working set.",
        (_W, _C),
    ),
    Benchmark(
        "whole",
        "Whole runs",
        "What a user waits for: `spacy train` from its start to its stop on the development part, "
        "with the configs that the package ships (`tagger`, `ner`, `spans`), beside a program for "
        "python-crfsuite with the tests of our default templates as strings, which reads a text "
        "file and has no development part: 100 iterations with our penalties (c1 = l1, c2 = l2 / "
        "2), and with those of sklearn-crfsuite's tutorial; and beside spaCy's own pipe by its "
        "config for efficiency. One thread, "
        "gold tokens. Scores are accuracy of tags, or F1, in per cent; labelling is not timed. The "
        "first row is that of spaCy's table, or the end of CRFsuite's first iteration.",
        (_C,),
        whole,
        row_names=2,
    ),
    Benchmark(
        "sgd",
        "An epoch of SGD-L1",
        f"{_W} has a weight for every test with every label, and leaves l2 out; ours has those "
        "of observed pairs, as in the warm start, and applies l2.",
        (_W,),
    ),
    Benchmark(
        "threads",
        "Threads",
        "An outer iteration is ten quasi-Newton iterations on the working set and a screening "
        "of all potential weights. Our results do not depend on the number of threads.",
        (_W,),
        threads,
    ),
    Benchmark(
        "memory",
        "Peak memory of training",
        "Resident memory of a process that trains from the encoded corpus; `corpus only` loads "
        f"it and stops. {_W}'s arithmetic is {wapiti.BYTES_PER_WEIGHT} bytes for each potential "
        "weight: sixteen vectors.",
        (_W,),
    ),
    Benchmark(
        "decode",
        "From Doc to labels",
        "One thread, gold tokens of test parts. Each repetition has a newly loaded pipeline that "
        f"has seen the training part. `{SAME}` is look-up and Viterbi alone: its strings of "
        f"features are made before. `{UNLABELLED}`: words, sentences and tags into an array, and "
        "tags back from it.",
        (_C,),
        decode,
    ),
    Benchmark(
        "templates",
        "From Doc to tests",
        "Tokens of the test part of UD English EWT a second of the processor. Cold: with a new "
        "featurizer, which looks at every word for the first time; steady: at words that it knows.",
        (),
        templates,
    ),
    Benchmark(
        "startup",
        "Start-up",
        "Fresh processes from start to end. Hidden and installed: without the site module, on a "
        "directory of links to all that is installed, without and with this package. Byte code "
        "and kernels are cached by a run that does not count, but for the training run with "
        "nothing compiled. What is added is the median of differences within a repetition.",
        (),
        startup,
    ),
    Benchmark(
        "kernels",
        "Kernels and the machine's peaks",
        "Operations and bytes are those that the formulas need, whatever the kernel does, and "
        "are given where a formula tells them. `peak` is the higher of the float64 ones.",
        (),
        kernels,
    ),
    Benchmark(
        "floor",
        "The chain and its floor",
        "Forward and backward vectors, marginals and log Z of sequences of 24 tokens, one thread, "
        "one matrix of pair potentials, or one for each of 1,000 contexts, float64. Ours looks up "
        "a row of weights for each token, and makes the potentials. C "
        f"is `bench/floor.c`, plain recursions on scores that are there, by {COMPILER} "
        f"{' '.join(FLAGS)}. The gradient of all weights is that of the corpus above, with one "
        "matrix: in C it is sums of weights, recursions, sums of pairs and sums of residuals, by "
        "loops that ask for memory ahead and can do nothing else.",
        (),
        floor,
    ),
    Benchmark(
        "brown",
        "Brown: 443 labels",
        "`spacy train` on all cores to its stop on the development part, reading and evaluation "
        "included. "
        f"{_W}'s ten iterations, on one core, are extrapolated from a sample with the full set of "
        "labels, in proportion to tokens.",
        (_W,),
        brown,
    ),
    Benchmark(
        "out_of_core",
        "A corpus in files",
        "Brown once and ten times over, with five templates, and 15 first letters of tags as "
        "labels: an outer iteration by the component, with and without `cache_dir`. "
        "`anonymous` is resident memory less pages of files, which the system may take back.",
        (),
    ),
)
