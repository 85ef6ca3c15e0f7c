"""Write LAVERGNE.md and its figure from the stored figures."""

from pathlib import Path
from typing import Annotated

import srsly
import typer
from bench.publishing import publish

from .goals import goals
from .plots import draw
from .records import Record, read_records
from .sections import SECTIONS

COMMAND = "python -m spacy project run lavergne project"
PLOTS = "lavergne/plots"
FIGURE = "errors"
_HEAD = f"""# The tables of Lavergne, Cappé & Yvon (2010)

Written by `{COMMAND}`; do not edit. What is measured is in `lavergne/experiments.py`; tables show
the experiments that have been run. Those that are done are not run again, and one alone is run by
`python -m lavergne.run metrics/lavergne DATA --only NAME` in `project`, with `.` and `scripts` on
`PYTHONPATH`.

- Letters are Nettalk's, 51 phonemes. Where no fold is named, training, stopping and testing are on
  16,007, 2,000 and 2,000 words, one deal of the words to ten folds; the paper's folds are not
  known, and its figures are means of ten. Joint labels are phoneme and stress mark as the file has
  them, 160 in training; the paper's 114 come of marks that were moved in a way it does not tell.
- `n-grm`, `n-grm+` and `n-grm++` are `*:ngrm(n, orth)`, `*:ngrm(n, orth)+`, `*:ngrm(n, orth)++`
  ([docs/patterns.md](../docs/patterns.md)), conjoined with labels and with pairs of labels; even
  windows are those of `+`, and windows of `++` are told apart by their place. l1 = 0.5 and
  l2 = 0.00001, the paper's, where nothing else is said.
- Training stops when the last five error rates of the development part, one after each outer
  iteration, are within 0.02 points (Wapiti's rule), or where two outer iterations running have
  lowered the objective by less than 0.001 % each (0.01 % with SGD-L1, with joint labels and in the
  ten folds). `*`: it was cut at its limit of seconds. An outer iteration is ten of OWL-QN (the
  first has six epochs of SGD-L1 before them) and one of SGD-L1 and of BCD, and then a screening of
  all potential weights.
- *Test* is the error of the weights at the stop, *best dev* that of the iteration with the lowest
  error of the development part, which is the one that `spacy train` keeps, and *polished* that
  of the weights at the stop after 5 or 10 iterations of L-BFGS on them alone, without l1: the
  number, in parentheses, is chosen on the development part.
- Seconds are of the processor, on one thread, of a whole process: reading, training, and the errors
  of the development part after each iteration. So is the peak of memory. Kernels were compiled
  before. The paper's minutes are of cores of 2010, all of them together.
"""
_QUICK = """
**A trial on a few words: the figures mean nothing.**
"""


def render(records: dict[str, Record], extra: Record) -> str:
    """The whole report."""
    parts = [_HEAD]
    if any(record["quick"] for record in records.values()):
        parts.append(_QUICK)
    machines = {
        f"{record['machine']['processor']}, {record['machine']['date']}": None
        for record in records.values()
    }
    parts.append(f"Measured on: {'; '.join(machines)}.")
    for title, write in (("Goals", goals), *SECTIONS):
        text = write(records, extra)
        if text:
            parts.append(f"\n## {title}\n\n{text}")
    parts.append(f"\n## Errors and active weights\n\n![Errors and weights]({PLOTS}/{FIGURE}.svg)")
    return "\n".join(parts).rstrip() + "\n"


def main(
    figures: Annotated[Path, typer.Argument(help="Directory of the stored figures")],
    project: Annotated[Path, typer.Argument(help="Where LAVERGNE.md belongs")],
) -> None:
    """Write the report; that of a trial stays beside the figures."""
    records = read_records(figures)
    timing = figures / "gradients.json"
    extra = srsly.read_json(timing) if timing.exists() else {}
    is_trial = any(record["quick"] for record in records.values())
    if extra and extra["quick"] != is_trial:
        extra = {}
    text = render(records, extra)
    draw(records, figures / FIGURE)
    publish(text, "LAVERGNE.md", figures, project, PLOTS, is_trial)


if __name__ == "__main__":
    typer.run(main)
