"""Diagrams of a sentence: templates, lattice, working set."""

from itertools import pairwise, product
from pathlib import Path

import spacy

from .charts import figures
from .style import (
    CRFSUITE,
    FAINT,
    INK,
    OTHER,
    OURS,
    PAPER,
    SIZE,
    WIDTH,
    element,
    save_diagram,
    text,
)

# The sentence of docs/templates.md and its labels; the token whose features are shown.
_TEXT, _LABELS, _CURRENT = "2 cups of rice", ("QTY", "UNIT", "OTHER", "NAME"), 1
# Width of the first column of a table, and of the others; height of a row.
_FIRST, _COLUMN, _ROW = 84, 79, 34
_MIDDLE = {"text_anchor": "middle"}


def templates(path: Path) -> None:
    """Draw the window that three templates read, at the second token of a sentence."""
    doc = spacy.blank("en")(_TEXT)
    affixes = [t.text[-3:] if len(t) >= 3 else "–" for t in doc]
    rows: dict[str, list[str]] = {
        "offset": [str(t.i - _CURRENT) for t in doc],
        "token": [t.text for t in doc],
        "lower": [t.lower_ for t in doc],
        "shape": [t.shape_ for t in doc],
        "suffix(3)": affixes,
        "label": list(_LABELS),
    }
    left, top = _FIRST + _CURRENT * _COLUMN, 4
    parts = [_box(left - 3, top, _COLUMN, len(rows) * _ROW, FAINT, fill=FAINT, fill_opacity=0.35)]
    for i, (name, values) in enumerate(rows.items()):
        y = top + i * _ROW + 22
        parts.append(text(0, y, name))
        for j, value in enumerate(values):
            parts.append(text(_FIRST + (j + 0.5) * _COLUMN - 3, y, value, **_MIDDLE))
    parts.append(_box(left - _COLUMN + 3, top + 2 * _ROW + 3, _COLUMN - 12, _ROW - 6, OURS))
    parts.append(_box(left + 3, top + 3 * _ROW + 3, _COLUMN - 12, 2 * _ROW - 6, CRFSUITE))
    parts.append(_box(left - _COLUMN + 3, top + 5 * _ROW + 3, 2 * _COLUMN - 12, _ROW - 6, OTHER))
    y, word, before = top + len(rows) * _ROW - 20, doc[_CURRENT], doc[_CURRENT - 1]
    both = f"shape[0]={word.shape_}|suffix(3)[0]={affixes[_CURRENT]}"
    for template, colour, feature in (
        ("u:lower[-1]", OURS, f"lower[-1]=\\{before.lower_}"),
        ("u:suffix(3)[0]|shape[0]", CRFSUITE, both),
        ("b:", OTHER, f"{_LABELS[_CURRENT - 1]} before {_LABELS[_CURRENT]}"),
    ):
        y += 44
        parts += [_box(2, y - 11, 12, 12, colour), text(22, y, template, colour)]
        parts.append(text(22, y + 20, feature))
    save_diagram(parts, y + 30, path, "The attributes that three templates read at one token")


def explanation(path: Path) -> None:
    """Draw the labels of a ticket, and the features for and against the label of a word."""
    found = figures("explanation")
    (word, label, p), (other, q) = found["word"], found["other"]
    step = (WIDTH - 2) / len(found["tokens"])
    parts = []
    for i, (token, its, probability) in enumerate(found["tokens"]):
        x, shade = 1 + i * step, OURS if token == word else FAINT
        parts.append(_box(x + 2, 4, step - 4, 66, shade))
        for y, line in (26, token), (45, its), (62, f"{probability:.2f}"):
            size = SIZE if y == 26 else 12 if len(line) < 8 else 10
            parts.append(text(x + step / 2, y, line, size=size, **_MIDDLE))
    parts.append(text(2, 100, f"Why {word} is {label} ({p:.2f}) and not {other} ({q:.2f}):"))
    middle, unit = 290, 80 / max(abs(value) for _, value in found["rows"])
    for i, (feature, value) in enumerate(found["rows"]):
        y, length = 128 + i * 26, abs(value) * unit
        colour, x = (OURS, middle) if value > 0 else (CRFSUITE, middle - length)
        parts.append(text(2, y, feature, size=13))
        parts.append(_box(x, y - 12, length, 15, colour, rx=2, fill=colour))
        at = {"text_anchor": "start" if value > 0 else "end"}
        parts.append(
            text(middle + (length + 5 if value > 0 else -length - 5), y, f"{value:+.2f}", **at)
        )
    save_diagram(parts, 128 + 26 * len(found["rows"]), path, f"Why {word} is {label}")


def lattice(path: Path) -> None:
    """Draw the labels of each token with their probabilities, and the best path."""
    found = figures("lattice")
    words, labels, best = found["words"], found["labels"], found["best"]
    left, top, radius = 112, 58, 19
    # The last word is wider than its circle.
    step = (WIDTH - left - radius - 14) / (len(words) - 1)

    def at(t: int, label: str) -> tuple[float, float]:
        return round(left + t * step, 1), top + labels.index(label) * 56

    parts = []
    for t, (a, b) in product(range(len(words) - 1), product(labels, labels)):
        if not b.startswith("I-") or a[2:] == b[2:]:
            parts.append(_line(at(t, a), at(t + 1, b), FAINT, 1))
    for t, (a, b) in enumerate(pairwise(best)):
        parts.append(_line(at(t, a), at(t + 1, b), OURS, 4))
    for t, word in enumerate(words):
        parts.append(text(at(t, labels[0])[0], 22, word, **_MIDDLE))
        for label, p in zip(labels, found["marginals"][t], strict=True):
            (x, y), chosen = at(t, label), label == best[t]
            fill, stroke = (OURS, OURS) if chosen else (PAPER, FAINT)
            parts.append(element("circle", cx=x, cy=y, r=radius, fill=fill, stroke=stroke))
            ink = PAPER if chosen else INK
            parts.append(text(x, y + 5, f"{p:.2f}"[1:], ink, 13, **_MIDDLE))
    parts += [text(0, at(0, label)[1] + 5, label) for label in labels]
    height = top + (len(labels) - 1) * 56 + radius + 4
    save_diagram(parts, height, path, "Labels of a sentence, their probabilities, the best path")


def working_set(path: Path) -> None:
    """Draw the states of weights of twelve features in three iterations of a training."""
    found = figures("working_set")
    n_labels, left, cell, row, top = len(found["labels"]), 126, 10, 19, 30
    looks = {
        "outside: zero, only screened": {"fill": "none", "stroke": FAINT},
        "in the working set, zero": {"fill": "none", "stroke": CRFSUITE, "stroke_width": 2},
        "in the working set, active": {"fill": OURS, "stroke": OURS},
    }
    parts = [text(0, top + i * row + 12, name, size=13) for i, name in enumerate(found["features"])]
    bottom = top + len(found["features"]) * row
    for frame, x in zip(found["frames"], range(left, WIDTH, n_labels * cell + 14), strict=True):
        parts.append(text(x, 18, f"step {frame['step']}", size=13))
        parts.append(text(x, bottom + 18, f"{frame['inside']:,} in set", size=13))
        parts.append(text(x, bottom + 36, f"{frame['active']:,} active", size=13))
        for i, states in enumerate(frame["states"]):
            for y, state in enumerate(states):
                look = list(looks.values())[state]
                parts.append(_box(x + y * cell + 1, top + i * row + 2, 8, 13, rx=0, **look))
    for i, (name, look) in enumerate(looks.items()):
        y = bottom + 66 + i * 22
        parts += [_box(2, y - 11, 8, 13, rx=0, **look), text(20, y, name)]
    save_diagram(parts, bottom + 120, path, "Weights in the working set at three steps")


def stages(path: Path) -> None:
    """Draw the first-stage labels of a word in a document, and how the second corrects one."""
    found = figures("stages")
    rows = found["rows"]
    wrong = next(row for row in rows if row["first[0]"] != row["label"])
    parts, y = [text(0, 16, "stage 1 labels each mention", font_weight="bold")], 0
    for i, row in enumerate(rows):
        y = 30 + i * 44
        colour = CRFSUITE if row is wrong else OURS
        parts += [_box(2, y, WIDTH - 4, 34, colour), text(12, y + 22, row["text"])]
        parts.append(text(WIDTH - 12, y + 22, row["first[0]"], colour, text_anchor="end"))
    y += 70
    parts += [text(0, y, "stage 2 reads these labels as features", font_weight="bold")]
    for name, what in ("first[0]", "of the mention"), ("doc_majority[0]", "of the others"):
        y += 26
        parts.append(text(12, y, f"{name}={wrong[name]}"))
        parts.append(text(WIDTH - 12, y, what, text_anchor="end"))
    y += 20
    parts += [_box(2, y, WIDTH - 4, 34, OURS), text(12, y + 22, wrong["text"])]
    parts.append(text(WIDTH - 12, y + 22, wrong["label"], OURS, text_anchor="end"))
    save_diagram(parts, y + 38, path, "Two stages: the second corrects a label of the first")


def _box(
    x: float, y: float, width: float, height: float, stroke: str, rx: int = 5, **more: object
) -> str:
    """Return a rectangle without filling."""
    given = {"fill": "none", "stroke_width": 2, **more}
    return element("rect", x=x, y=y, width=width, height=height, rx=rx, stroke=stroke, **given)


def _line(start: tuple[float, float], end: tuple[float, float], stroke: str, width: int) -> str:
    """Return a line between two points."""
    (x1, y1), (x2, y2) = start, end
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width)


_FUNCTIONS = templates, explanation, lattice, working_set, stages
DIAGRAMS = {each.__name__.replace("_", "-"): each for each in _FUNCTIONS}
