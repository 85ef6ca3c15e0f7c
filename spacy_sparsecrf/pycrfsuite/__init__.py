"""The interface of python-crfsuite: `Trainer`, `Tagger` and `ItemSequence`.

Models have CRFsuite's format. A process that labels a few sequences imports the standard library
alone; the kernels are loaded when they pay off, see `interop.sequences.predictor`.
"""

from ..interop.sequences.tagger import ItemSequence, Tagger
from ..interop.sequences.trainer import Trainer

CRFSUITE_VERSION = "0.12"
"""The version of CRFsuite whose model format is read and written."""

__all__ = ["CRFSUITE_VERSION", "ItemSequence", "Tagger", "Trainer"]
