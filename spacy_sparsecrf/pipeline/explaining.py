"""What a component tells of its weights, and how they are changed by hand.

This module is imported at each start of spaCy: what only its use needs is imported there.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..names import Names
from .storage import StoredPipe

if TYPE_CHECKING:
    from ..explanation import DocExplanation, ModelExplanation


class ExplainedPipe(StoredPipe):
    """Explains, writes and changes a component's weights."""

    features: Callable[..., Any]
    settings: Any

    def marginals(self, docs: Iterable[Doc], *, forced: bool = False) -> list[NDArray[np.float64]]:
        """Compute the probabilities of labels, see `Probabilities`."""
        raise NotImplementedError

    def explain(self, n: int = 10) -> "ModelExplanation":
        """Explain the model: its transitions, and the strongest tests of each label.

        n: number of tests for, and against, each label.
        """
        from ..explanation import explain_model
        from ..features.naming import constant_tests

        names = self._named()
        return explain_model(self.model, names, constant_tests(self.features), n)

    def explain_doc(self, doc: Doc) -> "DocExplanation":
        """Explain the label that each token of a Doc gets: what spoke for it, what for another.

        Probabilities are those that `predict` goes by: of legal sequences, and given the annotation
        that is set and is not replaced.

        doc: annotated by the pipes before this one; is not changed.
        RAISES: SparseCRFError if there are tokens but no labels.
        """
        from ..explanation import DocExplanation, explain_tokens
        from ..features.naming import NameRecord

        if not len(doc):
            return DocExplanation(())
        labels = self.predict([doc])[0]
        record = NameRecord.of(self.features)
        observations = (record or self.features)([doc], self.settings.sequences)
        model, names = self.model, self._names
        if record is not None:
            # What a Doc itself tells needs no stored names.
            keys = np.concatenate((model.unigram.keys, model.bigram.keys))
            names = Names()
            names.add(record.names(np.intersect1d(observations.hashes, keys)))
        [marginals] = self.marginals([doc], forced=True)
        texts = [token.text for token in doc]
        return explain_tokens(model, observations, labels, marginals, texts, names)

    def dump(self) -> Iterator[str]:
        """Write the weights as lines of text, see `patching`."""
        from ..patching import dump

        names = self._named()
        return dump(self.model, names)

    def patch(self, lines: Iterable[str], path: str = "<lines>", *, replace: bool = False) -> int:
        """Change weights by lines of text, see `patching`; nothing changes if one is refused.

        path: of the lines' file, for messages; replace: whether weights that no line is about are
        removed. RETURNS: number of changes. A training run that goes on knows nothing of them.
        RAISES: SparseCRFError that names file and line.
        """
        from ..features.naming import hash_names, templates_by_kind
        from ..patching import patch

        names = self._named()
        templates = templates_by_kind(self.features)
        patched = patch(self.model, lines, path, hash_names, templates, replace=replace)
        self.model = patched.model
        names.add(patched.names)
        return patched.n_changes
