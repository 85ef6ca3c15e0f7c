"""Measurements as cells of tables, and as ratios of one side to another."""

from collections.abc import Iterable, Sequence

from reports.tables import number, table

from .measurements import OURS, Measurement, tools_of


def cell(one: Measurement | None) -> str:
    """A measurement: seconds with those of the processor in parentheses, tokens a second, MB."""
    if one is None:
        return ""
    if one.peak_mb:
        return f"{number(one.median)} MB"
    if one.items:
        return f"{number(one.items / one.median / 1e6)} M/s"
    bound = "> " if one.at_least else ""
    cpu = f" ({number(sorted(one.cpu)[len(one.cpu) // 2])})" if one.cpu else ""
    return f"{bound}{number(one.median)} s{cpu}"


def ratio(ours: Measurement | None, peer: Measurement | None) -> tuple[float, bool] | None:
    """How many times more the peer took, and whether that is a lower bound only.

    None where a side is missing, or where ours did not get to the goal either.
    """
    if ours is None or peer is None or ours.at_least or ours.median == 0.0:
        return None
    return peer.median / ours.median, peer.at_least


def show_ratio(found: tuple[float, bool] | None) -> str:
    """A ratio as text."""
    if found is None:
        return ""
    value, bound = found
    digits = 1 if value < 20 else 0
    return f"{'> ' if bound else ''}{value:.{digits}f}x"


def comparison(measurements: Sequence[Measurement], absent: Sequence[str] = ()) -> str:
    """A row for each thing measured, a column for each tool, and how many times more it took.

    absent: tools that would have a column if they were on PATH.
    """
    tools = tools_of(measurements)
    peers = [tool for tool in tools if not tool.startswith(OURS)]
    missing = [tool for tool in absent if tool not in tools]
    header = ["", *tools, *missing, *(f"{peer} / ours" for peer in peers)]
    rows = []
    for key in dict.fromkeys(one.key for one in measurements):
        cells = {one.tool: one for one in measurements if one.key == key}
        data, what, threads = key
        name = f"{data}: {what}" + (f", {threads} threads" if threads > 1 else "")
        ratios = [show_ratio(ratio(cells.get(OURS), cells.get(peer))) for peer in peers]
        shown = [cell(cells.get(tool)) for tool in tools]
        rows.append([name, *shown, *("not on PATH" for _ in missing), *ratios])
    return table(header, rows)


def notes(measurements: Iterable[Measurement]) -> list[str]:
    """Remarks on single measurements."""
    return [
        f"{one.data}, {one.what}, {one.tool}, {one.threads} thread(s): {one.note}."
        for one in measurements
        if one.note
    ]
