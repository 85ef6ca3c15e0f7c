"""Layouts of pair potentials, forced for tests instead of chosen by the cost model."""

import numpy as np
import pytest

from spacy_sparsecrf.crf.loss.workspace import LIMITS, Limits

# Minimum share of the tokens from which a feature is in matrices, by the resulting layout.
_SHARES = {"matrices": 0.0, "frequent": 0.27, "entries": np.inf}
# Corrections cost nothing, so that no context gets a matrix because it has many.
LAYOUTS = {
    name: Limits(
        shares=(share, share),
        shares_by_example=(share, share),
        correction=0.0,
        correction_exp=0.0,
        shared=2,
    )
    for name, share in _SHARES.items()
}
in_every_layout = pytest.mark.parametrize("limits", LAYOUTS.values(), ids=list(LAYOUTS))
# The same, and as the cost model chooses.
in_all_layouts = pytest.mark.parametrize(
    "limits", [LIMITS, *LAYOUTS.values()], ids=["rule", *LAYOUTS]
)
