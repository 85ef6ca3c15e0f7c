"""Fixtures of tests of the pipeline."""

from pathlib import Path

import pytest
import spacy
from spacy.language import Language


@pytest.fixture(scope="session")
def fitted(trained_dir: Path) -> Language:
    """The trained pipeline, loaded once, for tests that do not modify it or its component."""
    return spacy.load(trained_dir)
