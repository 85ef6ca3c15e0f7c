"""Prediction of overlapping spans, with several chains that label the same tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from spacy.tokens import Doc

from ..decoding.transitions import valid_transitions
from ..targets.base import Chain
from .prediction import Predictions, Reader, make_decoder, predict
from .settings import Setup

if TYPE_CHECKING:
    from ..model.model import CRFModel


class ChainDecoders:
    """Decoders of the chains of a component.

    setup: of the component; model: of all chains, whose labels and weights must not change.
    """

    def __init__(self, setup: Setup, model: "CRFModel", chains: Sequence[Chain]) -> None:
        self._source = model.content
        temperature = setup.settings.decoding.temperature
        self._chains = []
        every = [(chain, model.with_labels(chain.ids, chain.labels)) for chain in chains]
        # A chain without weights, of a type that was only added, would predict arbitrary spans.
        for chain, own in [each for each in every if each[1].n_active] or every:
            pairs = setup.settings.decoding.forbidden, setup.settings.decoding.allowed
            valid = valid_transitions(chain.labels, *pairs, chain.target.legal(chain.labels))
            self._chains.append((chain, make_decoder(own, valid, temperature)))

    def is_of(self, model: "CRFModel") -> bool:
        """Return whether the model has the weights and labels that the decoders were made from."""
        return model.is_made_of(self._source)

    def predict(self, reader: Reader, docs: Sequence[Doc]) -> Predictions:
        """Predict the labels of Docs with at least one token: [tokens, chains] for each Doc.

        Probabilities are probabilities of spans, chain by chain.
        """
        parts, found = reader.parts(docs), []
        for chain, decoder in self._chains:
            setup = reader.setup._replace(target=chain.target)
            own = reader._replace(setup=setup, labels=chain.labels)
            found.append((chain, predict(decoder, own, docs, parts)))
        columns = ([chain.ids[ids] for ids in of_docs] for chain, of_docs in found)
        of_docs = (np.stack(ids, axis=1).astype(np.int32) for ids in zip(*columns, strict=True))
        scores = [own.span_scores for _, own in found if own.span_scores is not None]
        return Predictions(of_docs, None, np.concatenate(scores) if scores else None)
