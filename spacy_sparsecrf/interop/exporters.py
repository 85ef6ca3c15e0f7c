"""The programs that components are exported to: what their models may have, and their files."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..crf.corpus.numbering import Longs
from .crfsuite_file import write_crfsuite
from .external_models import CRFPP, CRFSUITE, KINDS, WAPITI, TrainedModel, starts_of


@dataclass(frozen=True)
class Exporter:
    """A program that models are exported to.

    write: returns a model as the program writes it, from which `read_model` reads the same weights,
    bit for bit; has_patterns: whether patterns generate
    features, also of pairs of labels, from columns, or else the data has the names of features,
    which may be numbers, and the label first; has_memm: whether it applies MEMMs; separators:
    expression of the characters that no field has; longest_line: bytes that it reads, 0 for all.
    """

    program: str
    write: Callable[[TrainedModel], bytes]
    has_patterns: bool = True
    has_memm: bool = False
    separators: str = r"[\0\t-\r ]"
    longest_line: int = 0

    @property
    def prefixes(self) -> tuple[str, str]:
        """Prefixes of features of labels, and of pairs of labels."""
        return ("u:", "b:") if self.has_patterns else ("", "")

    def field(self, text: str) -> str:
        """Return a text as one field of the program's files."""
        return re.sub(self.separators, lambda match: f"\\u{ord(match[0]):04x}", text)


def _write_crfsuite(model: TrainedModel) -> bytes:
    """Return a file of CRFsuite. The last feature of the model is that of transitions alone."""
    return write_crfsuite(model.labels, model.features[:-1], model.weights)


def _write_crfpp(model: TrainedModel) -> bytes:
    """Return the text of a model of CRF++, with all weights, also zeros."""
    places, starts = _places(model), starts_of(model.features, len(model.labels))
    dense = np.zeros(starts[-1])
    dense[places] = model.weights.values
    numbered = map("{} {}".format, starts.tolist(), map(_for_crfpp, model.features))
    patterns = map(_for_crfpp, model.patterns.split("\n"))
    head = "version: 100", "cost-factor: 1", f"maxid: {len(dense)}", f"xsize: {model.n_columns}"
    blocks = head, model.labels, patterns, numbered, map(repr, dense.tolist())
    return "\n\n".join(map("\n".join, blocks)).encode() + b"\n"


def _write_wapiti(model: TrainedModel) -> bytes:
    """Return a file of Wapiti."""
    patterns, values = model.patterns.split("\n"), model.weights.values.tolist()
    lines = [f"#mdl#{KINDS.index(model.kind)}#{len(values)}"]
    for count, texts in (
        (f"#rdr#{len(patterns)}/{model.n_columns}/0", patterns),
        (f"#qrk#{len(model.labels)}", model.labels),
        (f"#qrk#{len(model.features)}", model.features),
    ):
        lines += [count, *(f"{len(text.encode())}:{text}," for text in texts)]
    by_place = sorted(zip(_places(model).tolist(), values, strict=True))
    lines += [f"{number}={value.hex()}" for number, value in by_place]
    return "\n".join([*lines, ""]).encode()


def _places(model: TrainedModel) -> Longs:
    """Return the number of each weight in the files of Wapiti and CRF++: [n] int64."""
    n, weights = len(model.labels), model.weights
    has_both = np.array([text[:1] == "*" for text in model.features])
    pairs = weights.previous * n + n * has_both[weights.features]
    outcomes = weights.labels + np.where(weights.previous < 0, 0, pairs)
    places: Longs = starts_of(model.features, n)[weights.features] + outcomes
    return places


def _for_crfpp(text: str) -> str:
    """Return a pattern or feature with its kind as a capital, and without blanks."""
    return text[0].upper() + text[1:].replace(" ", "\\u0020").replace("\t", "\\u0009")


EXPORTERS = {
    exporter.program: exporter
    for exporter in (
        Exporter(CRFSUITE, _write_crfsuite, has_patterns=False, separators=r"[\0\t-\r]"),
        Exporter(WAPITI, _write_wapiti, has_memm=True),
        Exporter(CRFPP, _write_crfpp, longest_line=8191),
    )
}
"""Exporters by the name of the program."""
