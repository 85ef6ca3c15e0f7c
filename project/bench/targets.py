"""What was aimed at, as ratios, and what the stored figures say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.tables import table

from . import crfsuite, wapiti
from .comparison import ratio, show_ratio
from .decode import BATCH, CHUNKS, EACH, TAGS, TOKENIZER, USUAL
from .decode import WHAT as DECODING
from .gradient import DENSE, SINGLE, WORKING
from .measurements import OURS, Record
from .memory import ARITHMETIC
from .memory import WHAT as PEAK
from .objective import WHAT as TO_BEST
from .objective import WHAT_OBSERVED
from .sgd import WHAT as EPOCH
from .startup import BLANK_INSTALLED, COLD, FIRST_OURS, IMPORT
from .threads import OUTER


@dataclass(frozen=True)
class Side:
    """Where a measurement stands."""

    benchmark: str
    data: str
    what: str
    tool: str
    threads: int = 1


@dataclass(frozen=True)
class Target:
    """How many times less than the other side ours should take, or how much faster be."""

    text: str
    ours: Side
    other: Side
    at_least: float
    aim: float


def _against(
    text: str, benchmark: str, data: str, what: str, peer: str, at_least: float, aim: float
) -> Target:
    ours, other = Side(benchmark, data, what, OURS), Side(benchmark, data, what, peer)
    return Target(text, ours, other, at_least, aim)


def _threads(data: str, what: str) -> Target:
    one, two = (Side("threads", data, what, OURS, n) for n in (1, 2))
    return Target(f"{data}: {what}, two threads against one", two, one, 1.7, 1.9)


def _decoding(data: str, text: str, ours: str, other: str, at_least: float, aim: float) -> Target:
    fast, slow = (Side("decode", data, DECODING, tool) for tool in (ours, other))
    return Target(f"{data}: Doc to labels {text}", fast, slow, at_least, aim)


_W, _C = wapiti.NAME, crfsuite.NAME
_LETTERS, _FIVE, _CHUNKS = "nettalk-3grm", "nettalk-5grm", "conll2000"
TARGETS = (
    _against("conll2000: time to 1e-3, Wapiti", "objective", _CHUNKS, TO_BEST, _W, 15, 30),
    _against("nettalk-3grm: time to 1e-3, Wapiti", "objective", _LETTERS, TO_BEST, _W, 15, 30),
    _against(
        "conll2000, observed pairs: time to 1e-3, CRFsuite",
        "objective",
        _CHUNKS,
        WHAT_OBSERVED,
        _C,
        5,
        10,
    ),
    _against("conll2000: full gradient, Wapiti", "gradient", _CHUNKS, DENSE, _W, 5, 8),
    _against("nettalk-3grm: full gradient, Wapiti", "gradient", _LETTERS, DENSE, _W, 10, 25),
    Target(
        "nettalk-3grm: full gradient in float32, Wapiti",
        Side("gradient", _LETTERS, DENSE, SINGLE),
        Side("gradient", _LETTERS, DENSE, _W),
        10,
        25,
    ),
    _against("conll2000: SGD-L1 epoch, Wapiti", "sgd", _CHUNKS, EPOCH, _W, 4, 7),
    _against("nettalk-3grm: SGD-L1 epoch, Wapiti", "sgd", _LETTERS, EPOCH, _W, 4, 7),
    *(
        _threads(data, what)
        for data in (_CHUNKS, _LETTERS)
        for what in (f"gradient, {DENSE}", f"gradient, {WORKING}", OUTER)
    ),
    _decoding(CHUNKS, "in batches, CRFsuite with the same dict features", BATCH, USUAL, 20, 30),
    _decoding(CHUNKS, "Doc by Doc, CRFsuite with the same dict features", EACH, USUAL, 20, 30),
    *(
        _decoding(data, "in batches, spaCy's tokenizer", BATCH, TOKENIZER, 1, 1)
        for data in (CHUNKS, TAGS)
    ),
    _against("nettalk-5grm: peak memory, Wapiti", "memory", _FIVE, PEAK, ARITHMETIC, 10, 20),
)
_STARTUP = "startup"
# Seconds that start-up may take longer: what, at most, aim.
ADDED = (
    (IMPORT, 0.02, 0.005),
    (BLANK_INSTALLED, 0.02, 0.005),
    (FIRST_OURS, 1.0, 1.0),
    (COLD, 15.0, 15.0),
)


def find(records: Mapping[str, Record], target: Target) -> tuple[float, bool] | None:
    """The ratio that was reached; None where a side is missing."""
    sides = []
    for side in (target.ours, target.other):
        record = records.get(side.benchmark)
        place = side.data, side.what, side.tool, side.threads
        sides.append(record.find(*place) if record else None)
    return ratio(*sides)


def verdict(value: float, at_least: float, aim: float, bound: bool = False) -> str:
    """Whether a ratio is what was wanted; a lower bound cannot miss."""
    if value >= aim:
        return "aim reached"
    if value >= at_least:
        return "reached"
    return "not known" if bound else "missed"


def render(records: Mapping[str, Record], kept: Mapping[str, Sequence[str]]) -> str:
    """The table of targets; kept: rows that stand where there are no records, by first cell."""
    rows: list[Sequence[str]] = []
    for target in TARGETS:
        row = _ratio_row(records, target)
        measured = {target.ours.benchmark, target.other.benchmark} <= records.keys()
        rows.append(row if measured else kept.get(row[0], row))
    for added in ADDED:
        row = _added_row(records, *added)
        rows.append(row if _STARTUP in records else kept.get(row[0], row))
    return table(["against", "reached", "at least", "aim", ""], rows)


def _ratio_row(records: Mapping[str, Record], target: Target) -> list[str]:
    found = find(records, target)
    said = verdict(found[0], target.at_least, target.aim, found[1]) if found else "not measured"
    return [target.text, show_ratio(found), f"{target.at_least:g}x", f"{target.aim:g}x", said]


def _added_row(records: Mapping[str, Record], what: str, most: float, aim: float) -> list[str]:
    added = records[_STARTUP].details["added_seconds"] if _STARTUP in records else {}
    shown, said = "", "not measured"
    if what in added:
        shown = f"{added[what]:+.3f} s"
        said = verdict(-added[what], -most, -aim)
    return [f"start-up: {what}", shown, f"{most:+g} s", f"{aim:+g} s", said]
