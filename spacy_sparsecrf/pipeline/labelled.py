"""The labels of a component, and the names that users know them by."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spacy.pipeline import TrainablePipe

from ..errors import Errors, SparseCRFError

if TYPE_CHECKING:
    from ..targets.base import Target


class LabelledPipe(TrainablePipe):  # type: ignore[misc]
    """A trainable pipe that keeps the labels of its target in `cfg`."""

    name: str
    target: "Target"
    cfg: dict[str, Any]

    @property
    def labels(self) -> tuple[str, ...]:
        """What the target tells users: labels of tokens, or types of entities or spans."""
        return self.target.names_of(self.label_data)

    @property
    def label_data(self) -> tuple[str, ...]:
        """The labels of tokens, in the order of their ids.

        `spacy init labels` writes and `initialize` takes them.
        """
        return tuple(self.cfg["labels"])

    @property
    def is_resizable(self) -> bool:
        """Whether labels can be added: always, with zero weights."""
        return True

    @abstractmethod
    def _refresh(self) -> None:
        """Bring the model up to date with labels added since."""

    def add_label(self, label: str) -> int:
        """Add a label; its weights are zero until the component is initialized with it.

        label: of tokens; or a type of entities or spans, all of whose labels are added.
        RETURNS: 1, or 0 if the label is there already.
        RAISES: SparseCRFError for a label that is not a non-empty string, or that the target
            cannot write.
        """
        self.check_strings([label])
        new = [each for each in self.target.labels_of(label) if each not in self.label_data]
        self.check_labels(new)
        self.cfg["labels"].extend(new)
        self._refresh()
        return int(bool(new))

    def set_output(self, nO: int) -> None:
        """Do nothing if the number of outputs is `nO`; they grow by `add_label`.

        RAISES: SparseCRFError if it is not.
        """
        n_labels = len(self.label_data)
        if nO != n_labels:
            raise SparseCRFError(Errors.SC213.format(name=self.name, n=nO, n_labels=n_labels))

    def check_strings(self, labels: Iterable[object]) -> None:
        """Raise SparseCRFError for anything but non-empty strings."""
        for label in labels:
            if not isinstance(label, str) or not label:
                raise SparseCRFError(Errors.SC212.format(name=self.name, label=label))

    def check_labels(self, labels: Iterable[str]) -> None:
        """Raise SparseCRFError for a label of tokens that the target cannot write."""
        for label in labels:
            self.target.check_label(label)
