"""Ways to evaluate pair potentials that the rule would choose between, forced for tests."""

import numpy as np
import pytest

# Shares of the tokens from which tests belong to matrices, by what they lead to.
LAYOUTS = {"matrices": 0.0, "frequent": 0.27, "entries": np.inf}


def force_layout(monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    """Have contexts evaluated by matrices, by those of frequent tests and entries, or entries."""
    module = "spacy_sparsecrf.loss.contexts"
    monkeypatch.setattr(f"{module}._SHARES", (LAYOUTS[layout],))
    # Entries are never so many that a context gets a matrix of its own.
    monkeypatch.setattr(f"{module}._ENTRY", 0.0)
    monkeypatch.setattr(f"{module}._ENTRY_EXP", 0.0)
