"""What tests of the pipeline share."""

from pathlib import Path

import pytest
import spacy
from spacy.language import Language


@pytest.fixture(scope="session")
def fitted(trained_dir: Path) -> Language:
    """The trained pipeline, loaded once: for tests that change neither it nor its component."""
    return spacy.load(trained_dir)
