"""Models of other programs, and CRFsuite trained here.

`PEERS` has models that Wapiti and CRF++ trained on made-up sentences, and their labels of other
sentences: words, tags, and the labels of each model.
"""

from pathlib import Path
from typing import Any

import pytest

PEERS = Path(__file__).parents[1] / "interop" / "peers"
TESTS = {"bias": "always", "word": "orth[0]", "end": "suffix(3)[0]", "-1:end": "suffix(3)[-1]"}
TESTS |= {"first": "orth[-1]=^1"}


def crfsuite(X: Any, Y: Any, path: Path, **parameters: Any) -> Any:
    """Train a model with CRFsuite; return its tagger."""
    reason = "python-crfsuite (extra `bench`) is not installed"
    pycrfsuite = pytest.importorskip("pycrfsuite", reason=reason)
    trainer = pycrfsuite.Trainer(verbose=False, params={"c1": 0.05, "c2": 0.01, **parameters})
    for tokens, labels in zip(X, Y, strict=True):
        trainer.append(tokens, labels)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger
