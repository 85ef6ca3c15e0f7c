"""Checks of features and targets, on Docs."""

import copy
import pickle
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_sparsecrf.crf.corpus.encoded import Observations
from spacy_sparsecrf.pipeline.settings import Features
from spacy_sparsecrf.pipeline.targets.target import Target

from .facts import is_refused, require_same

_WORDS = [
    ["Ms.", "Straße", "sold", "12", "e-mails", "!"],
    [],
    ["\t.", "2\n\n", "x\u200b"],
    ["e\u0301", "İ", "😀", "ﬁ", "\u0000", "שלום"],
    ["x", "Ab-1é" * 4_000],
]


def check_features(features: Features, docs: Sequence[Doc] | None = None) -> None:
    """Check the observations that features read from Docs.

    Features must not change Docs, and must return the shapes of `crf.corpus.encoded.Observations`.
    The result must be the same for a second call, for single Docs, for the same Docs with
    another vocab, and for copies and pickles of the features. Sequences must be sentences or
    Docs as requested, and other values must be refused.

    Parameters
    ----------
    features : callable
        Features, ready for use.
    docs : sequence of Doc, optional
        Docs with the annotation that the features read. Default: difficult Docs.

    Raises
    ------
    AssertionError
        If a check fails; the message has the reason.
    """
    if docs is None:
        vocab = spacy.blank("xx").vocab
        docs = [Doc(vocab, words=words) for words in _WORDS]
        docs.append(Doc(vocab, words=[*"Abcd"], sent_starts=[True, False, True, True]))
    before = [doc.to_bytes() for doc in docs]
    whole = features(docs, "sents")
    require_same("it changes Docs", [doc.to_bytes() for doc in docs], before)
    _check_observations(features, whole)
    tokens = [token for doc in docs for token in doc]
    for mode in ("docs", "sents"):
        begins = [t.i == 0 or (mode == "sents" and bool(t.is_sent_start)) for t in tokens]
        offsets = [*np.flatnonzero(begins).tolist(), len(tokens)]
        require_same(
            f"it cuts sequences otherwise with sequences = {mode!r}",
            features(docs, mode).offsets.tolist(),
            offsets,
        )
    alone = [features([doc], "sents").hashes for doc in docs]
    require_same("Docs change each other", np.concatenate(alone), whole.hashes)
    copies = {"a copy": copy.copy(features), "a deep copy": copy.deepcopy(features)}
    copies["a pickle"] = pickle.loads(pickle.dumps(features))  # noqa: S301
    for name, own in ({"a second call": features} | copies).items():
        require_same(f"{name} reads something else", _arrays(own(docs, "sents")), _arrays(whole))
    copied = spacy.blank(docs[0].vocab.lang or "xx").vocab.from_bytes(docs[0].vocab.to_bytes())
    others = [Doc(copied).from_bytes(data) for data in before]
    require_same(
        "another vocab changes what is read", _arrays(features(others, "sents")), _arrays(whole)
    )
    for nothing in ([], [Doc(doc.vocab) for doc in docs[:1]]):
        none = features(nothing, "sents")
        require_same("it reads tokens where there are none", none.offsets.tolist(), [0])
        width = none.hashes.shape[1:]
        require_same("columns differ without tokens", width, whole.hashes.shape[1:])
    assert is_refused(features, docs, "words"), "it takes sequences = 'words'"


def _arrays(found: Observations) -> list[Any]:
    return [getattr(found, field.name) for field in fields(found)]


def _check_observations(features: Features, found: Observations) -> None:
    n, width = found.hashes.shape
    hashes, values, keys = found.hashes, found.values, found.value_keys
    assert hashes.dtype == np.uint64, "hashes are not uint64"
    assert found.offsets.dtype == np.int64, "offsets are not int64"
    for columns in (found.unigram_columns, found.bigram_columns):
        good: object = columns.dtype == np.int32 and len(np.unique(columns)) == len(columns)
        good = good and ((columns >= 0) & (columns < width)).all()
        assert good, "columns are not distinct int32 columns of the hashes"
    assert values.dtype == np.float32 and np.isfinite(values).all(), "values are not finite float32"
    assert keys.dtype == np.uint64 and len(np.unique(keys)) == len(keys) and keys.all(), (
        "value_keys are not distinct uint64 above 0"
    )
    assert len(keys) == values.shape[1] and len(values) in ((n,) if len(keys) else (0, n)), (
        "values are not [N, V]"
    )


def check_target(target: Target, references: Sequence[Doc]) -> None:
    """Check that a target writes the annotation that it reads, and nothing else.

    Parameters
    ----------
    target : Target
        The target.
    references : sequence of Doc
        Docs with gold annotation of all tokens, with several labels and lengths.

    Raises
    ------
    AssertionError
        If a check fails; the message has the reason.
    """
    assert isinstance(target, Target), "it has not all methods of `Target`"
    bare = [_bare(doc) for doc in references]
    gold = [target.gold(Example(_bare(doc), doc)) for doc in references]
    lengths = [len(doc) for doc in references]
    require_same("gold is not as long as the tokens", [len(row) for row in gold], lengths)
    known = [isinstance(label, str) and label != "" for row in gold for label in row]
    assert known and all(known), "references must have gold labels at all tokens"
    labels = target.complete(sorted({str(label) for row in gold for label in row}))
    _check_labels(target, labels)
    ids = [np.array([labels.index(str(label)) for label in row], np.int32) for row in gold]
    _check_valid(target, labels, ids)
    _check_permitted(target, references, labels, ids)
    for docs in (bare, [_bare(doc, Vocab()) for doc in references]):
        target.write(docs, ids, labels, overwrite=False)
        found = [list(target.gold(Example(_bare(doc), doc))) for doc in docs]
        require_same("what it writes is not what it reads", found, [[*row] for row in gold])
    before = [doc.to_bytes() for doc in bare]
    for overwrite in (False, True):
        target.write(bare, ids, labels, overwrite=overwrite)
        require_same(
            f"to write the same again with overwrite = {overwrite} changes Docs",
            [doc.to_bytes() for doc in bare],
            before,
        )
    target.write([], [], labels, overwrite=False)
    target.write([Doc(Vocab())], [np.empty(0, np.int32)], labels, overwrite=False)
    for doc, reference in zip(bare, references, strict=True):
        merged = Doc(doc.vocab, words=[doc.text or "x"])
        n = len(target.gold(Example(merged, reference))) if len(doc) else 1
        require_same("gold of other tokens is not as long as these", n, 1)


def _bare(doc: Doc, vocab: Vocab | None = None) -> Doc:
    """Return a Doc with the same tokens and no annotation."""
    spaces = [bool(token.whitespace_) for token in doc]
    return Doc(vocab or doc.vocab, words=[token.text for token in doc], spaces=spaces)


def _check_labels(target: Target, labels: Sequence[str]) -> None:
    require_same("completed labels are not complete", target.complete(labels), labels)
    for label in labels:
        assert not is_refused(target.check_label, label), f"it refuses its own label {label!r}"
    for name in target.names_of(labels):
        assert name in target.names_of(target.labels_of(name)), (
            f"the labels of its name {name!r} lead to another name"
        )


def _check_valid(target: Target, labels: Sequence[str], rows: Sequence[np.ndarray]) -> None:
    """Check that all gold transitions are valid."""
    valid, n = target.valid_transitions(labels), len(labels)
    if valid is None:
        return
    assert valid.shape == (n + 1, n + 1) and valid.dtype == np.bool_, (
        "valid_transitions is not [Y + 1, Y + 1] bool"
    )
    for row in rows:
        path = [n, *row.tolist(), n]
        assert len(row) == 0 or valid[path[:-1], path[1:]].all(), (
            f"gold labels {[labels[y] for y in row]} are not valid"
        )


def _check_permitted(
    target: Target, references: Sequence[Doc], labels: Sequence[str], rows: Sequence[np.ndarray]
) -> None:
    """Check that existing annotation is permitted, and all labels if none exists or is kept."""
    row = np.concatenate(rows)
    mask = target.permitted(references, labels, overwrite=False)
    if mask is not None:
        assert mask.shape == (len(row), len(labels)) and mask.dtype == np.bool_, (
            "permitted is not [N, Y] bool"
        )
        assert mask[np.arange(len(row)), row].all(), "labels that are set are not permitted"
    for docs, overwrite in ((references, True), ([_bare(doc) for doc in references], False)):
        mask = target.permitted(docs, labels, overwrite=overwrite)
        assert mask is None or mask.all(), "it forbids labels where nothing is kept"
