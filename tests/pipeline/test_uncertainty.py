"""`uncertainty` of Docs equals enumeration of all label sequences."""

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.uncertainty import measure
from spacy_sparsecrf.targets.entities import Entities
from spacy_sparsecrf.targets.token_attribute import TokenAttribute

from ..decoding.decoding_reference import make_case

LENGTHS = [3, 1, 0, 2, 2]  # of sequences
DOCS = [range(4), range(0), range(4)]
OF_DOCS = [[0, 1], [], [3, 4]]
LABELS = ("B-X", "I-X", "O")


def entropy(p: np.ndarray) -> float:
    return -sum(x * math.log(x) for x in p.ravel().tolist() if x > 0)


def expected(table: dict[tuple[int, ...], float], target: Any, n: int) -> list[Any]:
    """Return the uncertainty of a Doc of n tokens, from its label sequence probabilities."""
    ranked = sorted(table, key=table.__getitem__, reverse=True)
    marginals = np.zeros((n, len(LABELS)))
    for path, p in table.items():
        marginals[np.arange(n), list(path)] += p

    def spans(path: tuple[int, ...]) -> list[Any]:
        return target.spans([np.array(path, np.int32)], LABELS).named()

    if isinstance(target, Entities):
        chosen = [sum(p for y, p in table.items() if e in spans(y)) for e in spans(ranked[0])]
        shares = {"X": marginals[:, :2].sum(axis=1)}
    else:
        chosen = marginals[np.arange(n), list(ranked[0])].tolist()
        shares = dict(zip(LABELS, marginals.T, strict=True))
    of_tokens = [entropy(row) for row in marginals]
    best, second = table[ranked[0]], table[ranked[1]] if len(ranked) > 1 else 0.0
    parts = {key: np.array([q, 1.0 - q]) for key, q in shares.items()}
    by_label = {key: entropy(part) / max(n, 1) for key, part in parts.items()}
    numbers = sum(of_tokens) / max(n, 1), max(of_tokens, default=0.0), 1.0 - best, best - second
    return [*numbers, 1.0 - min(chosen, default=1.0), by_label]


@pytest.mark.parametrize("target", [TokenAttribute(), Entities("IOB2")], ids=["tags", "entities"])
@pytest.mark.parametrize("kind", ["chain", "memm", "maxent"])
def test_uncertainty_equals_enumeration(kind: str, target: Any):
    for seed in range(3):
        case = make_case(seed, kind, LENGTHS)
        legal = target.legal(LABELS)
        reader: Any = SimpleNamespace(labels=LABELS, setup=SimpleNamespace(target=target))
        sources = [(case.observations, None)]
        found = measure(Decoder(case.model, legal), reader, DOCS, sources)  # type: ignore[arg-type]
        sequences = case.problem.sequences()
        for own, each, doc in zip(found, OF_DOCS, DOCS, strict=True):
            tables = [case.table(sequences[s], legal) for s in each]
            table = {
                tuple(itertools.chain(*paths)): math.exp(sum(map(dict.__getitem__, tables, paths)))
                for paths in itertools.product(*tables)
            }
            for value, right in zip(own, expected(table, target, len(doc)), strict=True):
                assert value == pytest.approx(right, abs=1e-10)


def test_uncertainty_of_docs(fitted: Language):
    pipe: Any = fitted.get_pipe("sparse_crf")
    docs = [Doc(fitted.vocab, words=words) for words in (["the", "plan"], [], ["plan", "of"])]
    found = pipe.uncertainty(docs)
    ranked = pipe.nbest(docs[2], 2)
    assert found[2].margin == pytest.approx(ranked[0][1] - ranked[1][1])
    assert found[1][:5] == (0.0, 0.0, 0.0, 1.0, 0.0)
    assert set(found[0].by_label) == set(pipe.labels)
    docs[2][0].tag_ = "VB"
    assert pipe.uncertainty([docs[2]]) == found[2:]  # annotation is ignored by default
    [given] = pipe.uncertainty([docs[2]], forced=True)
    assert given.entropy < found[2].entropy
    assert pipe.uncertainty([]) == []
    with pytest.raises(SparseCRFError, match="SC430"):
        pipe.uncertainty(docs[0])
