"""Optional parts of the package, each imported when a component first needs it.

The registry `crf_add_ons` maps names to their modules. The core imports no add-on otherwise.

    graphs         model = "graph": edges between tokens
    explanation    `explain` and `explain_doc` of a component
    edit_weights   `dump` and `patch` of a component
    partitioning   a corpus in shards, divided among several workers
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..corpus.encoded import Observations
from ..errors import Errors, SparseCRFError
from ..model.model import CRFModel
from ..parallel import WorkerPool
from ..registry import crf_add_ons
from .graph_settings import Edge, Inference

if TYPE_CHECKING:
    from ..decoding.decoder import Decoder
    from ..training.training import Training

HashNames = Callable[[Sequence[str]], NDArray[np.uint64]]


class LinkedFeatures(Protocol):
    """Features that also record the links of the Docs that they read."""

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the features of Docs."""

    @property
    def names(self) -> dict[int, str]:
        """The names of the features of links, by hash."""

    def training(self, inference: Inference) -> "Callable[..., Training]":
        """Return a function that creates a training run with these links."""


class GraphAddOn(Protocol):
    """Models with edges between tokens."""

    def record_links(
        self, read: Callable[[Sequence[Doc], str], Observations], edges: Sequence[Edge]
    ) -> LinkedFeatures:
        """Return features that also record links. read: the features."""

    def with_links(
        self, parts: Sequence[Any], docs: Sequence[Doc], edges: Sequence[Edge]
    ) -> list[Any]:
        """Add the links of Docs to their readings, for the decoder."""

    def make_decoder(
        self, model: CRFModel, valid: NDArray[np.bool_] | None, inference: Inference
    ) -> "Decoder":
        """Create a decoder."""


class ExplanationAddOn(Protocol):
    """Explanations of models and Docs."""

    def explain_model(self, model: CRFModel, names: Any, always: frozenset[int], n: int) -> Any:
        """Return a `ModelExplanation`."""

    def explain_tokens(
        self,
        model: CRFModel,
        observations: Observations,
        labels: NDArray[np.int32],
        marginals: NDArray[np.float64],
        texts: Sequence[str],
        names: Any,
        rivals: Mapping[int, int],
    ) -> Iterator[Any]:
        """Yield a `TokenExplanation` for each position of the rivals."""

    def explain_doc(
        self, tokens: tuple[Any, ...], spans: Iterable[tuple[int, int, str, float]] | None
    ) -> Any:
        """Return a `DocExplanation`. spans: first token, end (exclusive), label and probability;
        None if the target has no spans.
        """


class WeightEditingAddOn(Protocol):
    """Weights as lines of text."""

    def dump(self, model: CRFModel, names: Any) -> Iterator[str]:
        """Yield the weights, one per line."""

    def patch(
        self,
        model: CRFModel,
        lines: Iterable[str],
        path: str,
        hash_names: HashNames,
        templates: Mapping[str, frozenset[str]] | None,
        *,
        replace: bool = False,
    ) -> Any:
        """Return the changed model, names of its features, and the number of changes."""


class PartitionedCorpus(Protocol):
    """A corpus that is divided among workers."""

    def training(self) -> "Callable[..., Training]":
        """Return a function that creates a training run on the corpus."""


class PartitioningAddOn(Protocol):
    """Corpora in shards."""

    def divide(
        self, job: Any, n_threads: int, pool_of: Callable[[Callable[[], Any]], WorkerPool]
    ) -> Any:
        """Let workers encode a corpus and keep their shards. RETURNS: `EncodedExamples`."""


def graphs() -> GraphAddOn:
    """Import the add-on for model = "graph"."""
    found: GraphAddOn = _add_on("graphs")
    return found


def explanation() -> ExplanationAddOn:
    """Import the add-on for explanations."""
    found: ExplanationAddOn = _add_on("explanation")
    return found


def edit_weights() -> WeightEditingAddOn:
    """Import the add-on that writes and reads weights as text."""
    found: WeightEditingAddOn = _add_on("edit_weights")
    return found


def partitioning() -> PartitioningAddOn:
    """Import the add-on for corpora in shards."""
    found: PartitioningAddOn = _add_on("partitioning")
    return found


@cache
def _add_on(name: str) -> Any:
    """Import an add-on. RAISES: SparseCRFError if no entry point has its name."""
    # Cached, because a look-up takes milliseconds, too long for Docs that are annotated one by one.
    if name not in crf_add_ons:
        raise SparseCRFError(Errors.SC663.format(name=name))
    return crf_add_ons.get(name)
