"""Interface of the graph add-on to a component, which imports it on first use."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..corpus.encoded import Observations
from ..features.naming import hash_names
from ..model.model import CRFModel
from ..pipeline.graph_settings import Edge, Inference
from .edges import names_of, read_links
from .encoded import Linked, Links

if TYPE_CHECKING:
    from .decoder import GraphDecoder
    from .training import GraphTraining

Features = Callable[[Sequence[Doc], str], Observations]


def with_links(parts: Sequence[Any], docs: Sequence[Doc], edges: Sequence[Edge]) -> list[Linked]:
    """Attach the links of Docs to their observations or readings.

    parts: observations or readings that contain all tokens of the Docs, in order.
    RAISES: SparseCRFError, see `read_links`.
    """
    starts = np.append(0, np.cumsum([part.n_tokens for part in parts]))
    begins = [part.offsets[:-1] + n for part, n in zip(parts, starts, strict=False)]
    offsets = np.append(np.concatenate(begins), starts[-1])
    links = read_links(edges, docs, offsets)
    ends = zip(parts, pairwise(starts.tolist()), strict=True)
    return [Linked(part, links.within(*own)) for part, own in ends]


def make_decoder(
    model: CRFModel, valid: NDArray[np.bool_] | None, inference: Inference
) -> "GraphDecoder":
    """Create a decoder of graphs. Imports numba."""
    from .decoder import GraphDecoder

    return GraphDecoder(model, valid, inference)


class LinkRecord:
    """A reader of features, called like `read`, that also records the links of the Docs."""

    def __init__(self, read: Features, edges: Sequence[Edge]) -> None:
        self._read, self._edges = read, edges
        self._found: list[Links] = []
        self._n_tokens = 0

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the features of Docs."""
        observations = self._read(docs, sequences)
        links = read_links(self._edges, docs, observations.offsets)
        ends = links.ends + self._n_tokens
        self._found.append(Links(ends, links.kinds, links.keys, links.chain))
        self._n_tokens += observations.n_tokens
        return observations

    @property
    def names(self) -> dict[int, str]:
        """Names of the features of links, by hash."""
        names = names_of(self._edges)
        return dict(zip(hash_names(names).tolist(), names, strict=True))

    @property
    def links(self) -> Links:
        """Links of all Docs so far."""
        last = self._found[-1]
        ends, kinds = (
            np.concatenate([getattr(links, name) for links in self._found])
            for name in ("ends", "kinds")
        )
        return Links(ends, kinds, last.keys, last.chain)

    def training(self, inference: Inference) -> "Callable[..., GraphTraining]":
        """Return a factory of training runs with these links. Imports numba."""
        from .training import GraphTraining

        return partial(GraphTraining, links=self.links, inference=inference)
