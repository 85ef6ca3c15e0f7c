"""What was aimed at, as ratios, and what the stored figures say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reports.tables import table

from . import crfsuite, wapiti
from .comparison import cell, ratio, show_ratio
from .decode import BATCH, CHUNKS, EACH
from .decode import WHAT as DECODING
from .floor import FLOOR
from .floor import WHAT as CHAIN
from .gradient import DENSE, OBSERVED, SINGLE
from .measurements import OURS, Measurement, Record
from .memory import ARITHMETIC
from .memory import WHAT as PEAK
from .objective import WHAT as TO_BEST
from .objective import WHAT_OBSERVED
from .sgd import WHAT as EPOCH
from .startup import BLANK_INSTALLED, COLD, FIRST_OURS, IMPORT
from .threads import OUTER
from .whole import SAME
from .whole import WHAT as RUN


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
    """How many times less than the other side ours should take, or how much faster be.

    by_processor: whether seconds are those of the processor, not of the clock.
    """

    text: str
    ours: Side
    other: Side
    at_least: float
    aim: float
    by_processor: bool = False


@dataclass(frozen=True)
class Rate:
    """How many millions of tokens a second ours should do."""

    text: str
    ours: Side
    at_least: float
    aim: float


def _against(
    text: str, benchmark: str, data: str, what: str, peer: str, at_least: float, aim: float
) -> Target:
    ours, other = Side(benchmark, data, what, OURS), Side(benchmark, data, what, peer)
    return Target(text, ours, other, at_least, aim)


def _threads(data: str, what: str) -> Target:
    one, two = (Side("threads", data, what, OURS, n) for n in (1, 2))
    return Target(f"{data}: {what}, two threads against one", two, one, 1.8, 1.9)


def _whole(data: str, at_least: float, aim: float) -> Target:
    ours, other = (Side("whole", data, RUN, tool) for tool in (OURS, SAME))
    text = f"{data}: whole training run, CPU s, CRFsuite's program"
    return Target(text, ours, other, at_least, aim, by_processor=True)


_W, _C = wapiti.NAME, crfsuite.NAME
_LETTERS, _FIVE, _CHUNKS = "nettalk-3grm", "nettalk-5grm", "conll2000"
TARGETS: tuple[Target | Rate, ...] = (
    *(
        _against(f"{name}: {CHAIN}, the same in C", "floor", name, CHAIN, FLOOR, at_least, aim)
        for name, at_least, aim in (
            ("22 labels", 1 / 1.8, 1 / 1.3),
            ("51 labels, 1,000 contexts", 1 / 1.5, 1 / 1.2),
        )
    ),
    _against("conll2000: full gradient, Wapiti", "gradient", _CHUNKS, DENSE, _W, 12, 20),
    _against("nettalk-3grm: full gradient, Wapiti", "gradient", _LETTERS, DENSE, _W, 16, 25),
    Target(
        "nettalk-3grm: full gradient in float32, Wapiti",
        Side("gradient", _LETTERS, DENSE, SINGLE),
        Side("gradient", _LETTERS, DENSE, _W),
        16,
        25,
    ),
    _against("conll2000: observed pairs, CRFsuite", "gradient", _CHUNKS, OBSERVED, _C, 4, 6),
    _against("conll2000: SGD-L1 epoch, Wapiti", "sgd", _CHUNKS, EPOCH, _W, 7, 10),
    _against("nettalk-3grm: SGD-L1 epoch, Wapiti", "sgd", _LETTERS, EPOCH, _W, 7, 10),
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
    _whole("EWT", 4, 8),
    _whole("CoNLL-2002 es", 3, 6),
    _whole("CoNLL-2002 es, 3,000 sentences", 2, 4),
    *(_threads(data, OUTER) for data in (_CHUNKS, _LETTERS)),
    Rate(
        "conll2000 test: Doc to labels in batches", Side("decode", CHUNKS, DECODING, BATCH), 1, 1.5
    ),
    # 23.5 tokens a Doc in 60 us, and in 35 us.
    Rate(
        "conll2000 test: Doc to labels Doc by Doc",
        Side("decode", CHUNKS, DECODING, EACH),
        0.39,
        0.67,
    ),
    _against("nettalk-5grm: peak memory, Wapiti", "memory", _FIVE, PEAK, ARITHMETIC, 10, 20),
)
_STARTUP = "startup"
# Seconds that start-up may take longer: what, at most, aim.
ADDED = (
    (IMPORT, 0.02, 0.005),
    (BLANK_INSTALLED, 0.02, 0.005),
    (FIRST_OURS, 1.0, 1.0),
    (COLD, 12.0, 6.0),
)


def _side(records: Mapping[str, Record], side: Side) -> Measurement | None:
    record = records.get(side.benchmark)
    return record.find(side.data, side.what, side.tool, side.threads) if record else None


def find(records: Mapping[str, Record], target: Target) -> tuple[float, bool] | None:
    """The ratio that was reached; None where a side is missing."""
    sides = [_side(records, side) for side in (target.ours, target.other)]
    if target.by_processor:
        sides = [replace(side, wall=side.cpu) if side else None for side in sides]
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
        if isinstance(target, Rate):
            row, measured = _rate_row(records, target), {target.ours.benchmark}
        else:
            row = _ratio_row(records, target)
            measured = {target.ours.benchmark, target.other.benchmark}
        rows.append(row if measured <= records.keys() else kept.get(row[0], row))
    for added in ADDED:
        row = _added_row(records, *added)
        rows.append(row if _STARTUP in records else kept.get(row[0], row))
    return table(["against", "reached", "at least", "aim", ""], rows)


def _ratio_row(records: Mapping[str, Record], target: Target) -> list[str]:
    found, wanted = find(records, target), (target.at_least, target.aim)
    said = verdict(found[0], *wanted, found[1]) if found else "not measured"
    return [target.text, show_ratio(found), *(f"{value:.2g}x" for value in wanted), said]


def _rate_row(records: Mapping[str, Record], target: Rate) -> list[str]:
    one, wanted = _side(records, target.ours), (target.at_least, target.aim)
    said = verdict(one.items / one.median / 1e6, *wanted) if one else "not measured"
    return [target.text, cell(one), *(f"{value:g} M/s" for value in wanted), said]


def _added_row(records: Mapping[str, Record], what: str, most: float, aim: float) -> list[str]:
    added = records[_STARTUP].details["added_seconds"] if _STARTUP in records else {}
    shown, said = "", "not measured"
    if what in added:
        shown = f"{added[what]:+.3f} s"
        said = verdict(-added[what], -most, -aim)
    return [f"start-up: {what}", shown, f"{most:+g} s", f"{aim:+g} s", said]
