"""Fixtures of tests of the pipeline."""

import pytest
import spacy
from spacy.language import Language


@pytest.fixture(scope="session")
def fitted(trained_dir) -> Language:
    """The trained pipeline, loaded once, for tests that do not modify it or its component."""
    return spacy.load(trained_dir)
