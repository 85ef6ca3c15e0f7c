"""The file of an estimator's model, for programs that copy it."""

from tempfile import NamedTemporaryFile
from typing import Any

from ..sequences.tagger import Tagger


class ModelFile:
    """The file of a model in CRFsuite's format.

    tagger: the model, or None; filename: its file, else a temporary file is written when its name
    is read; is_kept: whether the temporary file stays when the object is deleted.
    """

    def __init__(self, tagger: Tagger | None, filename: str | None, is_kept: bool) -> None:
        self.tagger, self._filename, self._is_kept = tagger, filename, is_kept
        self._temporary: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the model, without a temporary file."""
        return ModelFile, (self.tagger, self._filename, self._is_kept)

    @property
    def name(self) -> str | None:
        """The path; None for a temporary file without a model."""
        if self._filename is None and self._temporary is None and self.tagger is not None:
            # Is open as long as its name is used.
            self._temporary = NamedTemporaryFile(  # noqa: SIM115
                suffix=".crfsuite", delete=not self._is_kept
            )
            self._temporary.write(self.tagger.predictor.trained.to_crfsuite())
            self._temporary.flush()
        return self._filename or getattr(self._temporary, "name", None)

    def cleanup(self) -> None:
        """Remove the temporary file, unless it is to stay."""
        if self._temporary is not None and not self._is_kept:
            self._temporary.close()
            self._temporary = None
