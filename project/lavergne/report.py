"""Write LAVERGNE.md and its plot from the stored figures."""

from collections.abc import Iterator, Mapping

import typer
from reports.document import Document, Metrics, Project, Section
from reports.records import Stored, is_trial

from .figures import (
    KEPT,
    KEPT_EVALUATIONS,
    Figures,
    in_order,
    keep,
    read_evaluations,
    read_kept,
    read_runs,
)
from .goals import goals
from .plots import draw
from .sections import SECTIONS

COMMAND = "python -m spacy project run lavergne project"
PLOT = "errors"
_HEAD = f"""# The tables of Lavergne, Cappé & Yvon (2010)

Written by `{COMMAND}`; do not edit. What is measured is in `lavergne/experiments.py`; tables show
the experiments that have been run. Their figures are kept in `{KEPT}`, those of table 2 in
`{KEPT_EVALUATIONS}`: rows that were not measured here are taken from there, where a figure
that is not known leaves its cell empty. Experiments that are done here are not run again, and one
alone is run by `python -m lavergne.run metrics/lavergne DATA --only NAME` in `project`, with `.`
and `scripts` on `PYTHONPATH`.

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
DOCUMENT = Document("LAVERGNE.md", _HEAD, "a few words", "lavergne/plots")


def render(known: Mapping[str, Figures], extra: Stored, trial: bool) -> str:
    """The whole report.

    extra: what was timed for table 2, see `read_evaluations`.
    """
    machines = [(one.processor, one.date) for one in known.values()]
    if extra:
        machines.append((extra["machine"]["processor"], extra["machine"]["date"]))
    measured = f"Measured on: {'; '.join(dict.fromkeys(map(', '.join, machines)))}."
    return DOCUMENT.render(measured, _sections(known, extra), trial)


def _sections(known: Mapping[str, Figures], extra: Stored) -> Iterator[Section]:
    for title, write in (("Goals", goals), *SECTIONS):
        if text := write(known, extra):
            yield Section(title, (text,))
    yield Section("Errors and active weights", (DOCUMENT.picture(PLOT, "Errors and weights"),))


def main(metrics: Metrics, project: Project) -> None:
    """Write the report, with the kept figures of what was not run; that of a trial has none of
    them, and stays beside its figures.
    """
    metrics.mkdir(parents=True, exist_ok=True)
    runs = read_runs(metrics)
    trial = is_trial(runs)
    known = {name: Figures.of(record) for name, record in runs.items()}
    extra = read_evaluations(metrics / "gradients.json", trial)
    if not trial:
        known = in_order(read_kept(project) | known)
        extra = extra or read_evaluations(project / KEPT_EVALUATIONS, trial)
        keep(known, extra, project)
    draw(known, metrics / PLOT)
    DOCUMENT.publish(render(known, extra, trial), metrics, project, trial)


if __name__ == "__main__":
    typer.run(main)
