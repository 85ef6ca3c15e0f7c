"""The targets: goals from the published table, compared with the stored measurements."""

import re
from collections.abc import Mapping, Sequence

from measure.results import Row
from measure.tables import read_rows, table

from . import floor, memory, objective, speed, startup, whole
from .decode import BATCH, CHUNKS, EACH
from .decode import WHAT as DECODING
from .peers import CRFSUITE, WAPITI
from .record import OURS, cell, find, middle, ratio, show_ratio

Records = Mapping[str, Sequence[Row]]

_L, _C, _FIVE, _MANY = "nettalk-3grm", "conll2000", "nettalk-5grm", "51 labels, 1,000 contexts"
_CHAIN, _WHOLE = "forward-backward, the same in C", "whole training run, CPU s, CRFsuite's program"
_THREADS = "outer iteration, two threads against one"
# By first cell of a row: benchmark, data set, measurement, the other side, and ours.
RATIOS: dict[str, tuple[str, ...]] = {
    f"22 labels: {_CHAIN}": ("floor", "22 labels", floor.WHAT, floor.FLOOR),
    f"{_MANY}: {_CHAIN}": ("floor", _MANY, floor.WHAT, floor.FLOOR),
    f"{_C}: full gradient, Wapiti": ("gradient", _C, speed.DENSE, WAPITI),
    f"{_L}: full gradient, Wapiti": ("gradient", _L, speed.DENSE, WAPITI),
    f"{_L}: full gradient in float32, Wapiti": (
        *("gradient", _L, speed.DENSE, WAPITI),
        speed.SINGLE,
    ),
    f"{_C}: observed pairs, CRFsuite": ("gradient", _C, speed.OBSERVED, CRFSUITE),
    f"{_C}: SGD-L1 epoch, Wapiti": ("sgd", _C, speed.EPOCH, WAPITI),
    f"{_L}: SGD-L1 epoch, Wapiti": ("sgd", _L, speed.EPOCH, WAPITI),
    f"{_C}: time to 1e-3, Wapiti": ("objective", _C, objective.WHAT, WAPITI),
    f"{_L}: time to 1e-3, Wapiti": ("objective", _L, objective.WHAT, WAPITI),
    f"{_C}, observed pairs: time to 1e-3, CRFsuite": (
        *("objective", _C, objective.OBSERVED, CRFSUITE),
    ),
    **{f"{data}: {_WHOLE}": ("whole", data, whole.WHAT, whole.SAME) for data in whole.JOBS},
    **{f"{data}: {_THREADS}": ("threads", data, speed.OUTER, OURS) for data in (_C, _L)},
    f"{_FIVE}: peak memory, Wapiti": ("memory", _FIVE, memory.WHAT, memory.ARITHMETIC),
}
SPEEDS = {f"{CHUNKS}: {DECODING} in batches": BATCH, f"{CHUNKS}: {DECODING} Doc by Doc": EACH}
_ADDED = "start-up: "
# A reached figure: cell, value (higher is better), and whether it is a lower bound.
Reached = tuple[str, float, bool]


def reached(records: Records, text: str) -> tuple[str, Reached | None]:
    """Return the benchmark of a row, given its first cell, and the figure that was reached."""
    if text.startswith(_ADDED):
        added = startup.added_seconds(records.get("startup", ()), text.removeprefix(_ADDED))
        return "startup", None if added is None else (f"{added:+.3f} s", -added, False)
    if text in SPEEDS:
        row = find(records.get("decode", ()), CHUNKS, DECODING, SPEEDS[text])
        return "decode", row and (cell(row), row["items"] / middle(row) / 1e6, False)
    benchmark, data, what, peer, *own = RATIOS[text]
    rows, threads = records.get(benchmark, ()), 2 if benchmark == "threads" else 1
    sides = find(rows, data, what, *(own or [OURS]), threads), find(rows, data, what, peer)
    if benchmark == "whole":
        sides = tuple(side and {**side, "wall": side["cpu"]} for side in sides)
    found = ratio(*sides)
    return benchmark, found and (show_ratio(found), *found)


def verdict(value: float, at_least: float, aim: float, bound: bool = False) -> str:
    """Compare a value with its targets; a lower bound is never reported as missed."""
    if value >= aim:
        return "aim reached"
    if value >= at_least:
        return "reached"
    return "not known" if bound else "missed"


def render(records: Records, published: str, trial: bool) -> str:
    """Return the table; rows without new figures are kept as published, except in a trial."""
    lines = []
    for text, shown, *wanted, said in read_rows(published):
        benchmark, found = reached(records, text)
        if found or benchmark in records or trial:
            shown, value, bound = found or ("", 0.0, False)
            sign = -1.0 if text.startswith(_ADDED) else 1.0
            limits = [sign * float(re.sub(r"[^\d.+-]", "", limit)) for limit in wanted]
            said = verdict(value, *limits, bound) if found else "not measured"
        lines.append([text, shown, *wanted, said])
    return table(["against", "reached", "at least", "aim", ""], lines)
