"""Ways to evaluate pair potentials that the rule would choose between, forced for tests."""

import numpy as np
import pytest

from spacy_sparsecrf.loss.workspace import Limits

# Shares of the tokens from which tests belong to matrices, by what they lead to.
_SHARES = {"matrices": 0.0, "frequent": 0.27, "entries": np.inf}
# Entries are never so many that a context gets a matrix of its own.
LAYOUTS = {
    name: Limits(shares=(share,), correction=0.0, correction_exp=0.0)
    for name, share in _SHARES.items()
}
in_every_layout = pytest.mark.parametrize("limits", LAYOUTS.values(), ids=list(LAYOUTS))
