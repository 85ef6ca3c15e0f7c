"""A word's other occurrences in its Doc, for templates that need no first stage.

`doc_run` is a global feature as in Chieu & Ng (2002): the positions that a word has elsewhere in
the Doc in runs of capitalised words, if it has capitals itself. Its letters are B, I and L for the
first, inner and last word of a run, and U for a run of one word. Comparisons of words ignore case.

A run ends with the sentence, and before a quotation: there the next word may have capitals for
another reason. A sentence begins with the Doc, behind a full stop, question or exclamation mark,
and behind an empty line. Annotated sentences are ignored, so that values are the same with and
without annotation. Docs of one sentence have no values.
"""

from itertools import compress, product

import numpy as np
from spacy.attrs import LOWER  # type: ignore[import-not-found]
from spacy.strings import get_string_id

from ..corpus.numbering import Hashes as Values
from ..corpus.readings import Division
from .plan import TemplatePlan

_FINAL = np.array([*map(get_string_id, ".!?…")], dtype=np.uint64)
_OPENING = np.array([*map(get_string_id, ":¿¡-–—•*'\"“«")], dtype=np.uint64)
_TEXTS = ["".join(sorted(compress("ULBI", own))) for own in product((0, 1), repeat=4)]
_SETS = np.array([*map(get_string_id, _TEXTS)], dtype=np.uint64)
TEXTS = dict(zip(_SETS.tolist(), _TEXTS, strict=True))
"""Texts of values, by their numbers."""


def fill(values: Values, plan: TemplatePlan, division: Division) -> None:
    """Insert the positions of words in runs elsewhere.

    values: [N, A], of annotations, in and out; division: of the Docs.
    """
    from ..kernels.hashing import find_runs

    columns = plan.annotations.index(LOWER), plan.doc_run
    size = 1 << (2 * len(values)).bit_length()
    table = np.zeros(size, np.uint64), np.zeros((size, 4), np.int64)
    cells = np.zeros(len(values), np.int64)
    cells[np.array(division.apart, np.int64)] = 1
    find_runs(division.ends, values, columns, (_FINAL, _OPENING), table, cells, _SETS)
