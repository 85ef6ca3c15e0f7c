"""Named entities: `doc.ents`."""

from collections.abc import Mapping

import numpy as np
from spacy.attrs import ENT_ID, ENT_IOB, ENT_KB_ID, ENT_TYPE  # type: ignore[import-not-found]
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.iob_utils import tags_to_entities

from ...crf.corpus.blanks import words_of
from ...crf.corpus.numbering import Mask
from ...errors import Errors, SparseCRFError
from ...registry import crf_targets
from . import target as base
from .scheme import OUTSIDE, check_found, span_kernels, types_of
from .spans import ANNOTATED, Present, SpanTarget, trimmed
from .target import Docs, Ids, Labels, Not, Scores

# Values of ENT_IOB: unknown, inside an entity, outside of entities, first token of an entity. A
# first token without an entity type is blocked: it must stay outside of entities.
UNKNOWN, INSIDE, OUT, BEGIN = range(4)
SCORE = "ents_score"  # the extension of entities for their probabilities
_COLUMNS = [ENT_IOB, ENT_TYPE, ENT_KB_ID, ENT_ID]


@crf_targets("spacy_sparsecrf.Entities.v1")
class Entities(SpanTarget):
    """Learns and writes named entities, `doc.ents`.

    As with spaCy's `ner`, existing entities, their ids and blocked tokens are kept unless
    annotation is overwritten. Tokens that are marked as outside may become part of an entity.
    Entities of types that are not learnt are read as outside of entities, and always kept.

    scheme, types: see `SpanTarget`.
    """

    def gold(self, example: Example) -> list[str | Not | None]:
        """Read gold labels, see `Target.gold`; they are missing if a Doc has no annotation.

        RAISES: SparseCRFError that names the Doc if its entities are damaged.
        """
        try:
            if base.have_same_tokens(example):
                doc = example.reference
                is_out = (doc.to_array("ENT_IOB") == OUT).tolist()
                spans = [(entity.start, entity.end, entity.label_) for entity in doc.ents]
            else:
                tags = [tag or "-" for tag in example.get_aligned_ner()]
                is_out = [tag == "O" for tag in tags]
                spans = [
                    (start, inner_end + 1, name)
                    for name, start, inner_end in tags_to_entities(tags)
                    if name
                ]
        except ValueError as error:
            text = example.reference.text[:60]
            raise SparseCRFError(Errors.SC503.format(text=text, reason=error)) from error
        labels: list[str | Not | None] = [OUTSIDE if out else None for out in is_out]
        if ANNOTATED in example.reference.user_data:
            outside = self.outside_of(example.reference)
            for i in np.flatnonzero(_unknown(example)).tolist():
                labels[i] = outside
        words = words_of(example.predicted) if spans else np.empty(0, np.int64)
        for span in spans:
            start, end, name = span
            labels[start:end] = [OUTSIDE] * (end - start)
            if self.has_type(name):
                start, end, _ = trimmed(span, words)
                labels[start:end] = self.scheme.labels_for(end - start, name)
        return labels

    def unknown(self, example: Example) -> Mask | None:
        """Return the tokens without annotation of a partly annotated Doc; see `SpanTarget`."""
        iob = example.reference.to_array("ENT_IOB")
        if not iob.any() or iob.all() or ANNOTATED in example.reference.user_data:
            return None
        return _unknown(example)

    def present(self, doc: Doc) -> Present | None:
        """Return existing entities and blocked tokens; None if there are none."""
        if not doc.has_annotation(ENT_IOB):
            return None
        iob = doc.to_array("ENT_IOB")
        if not (iob == BEGIN).any():
            return None
        blocked = (iob == BEGIN) & (doc.to_array("ENT_TYPE") == 0)
        entities = [
            (entity.start, entity.end, entity.label_)
            for entity in doc.ents
            if self.has_type(entity.label_)
        ]
        return Present(entities, np.flatnonzero(blocked).tolist())

    def write(
        self, docs: Docs, label_ids: Ids, labels: Labels, *, overwrite: bool, scores: Scores = None
    ) -> None:
        """Write predicted entities, with one array for each Doc; see `Target.write`.

        Predicted entities that overlap kept annotation are left out. Scores are written to
        `span._.ents_score` of `doc.ents`; the score of kept entities of the learnt types is 1.
        """
        if not len(docs):
            return
        names, of = types_of(tuple(labels))
        ends = base.ends_of(docs)
        ids = np.ascontiguousarray(base.joined(label_ids), np.int32)
        values = np.zeros((ends[-1], len(_COLUMNS)), np.uint64)
        spans, n = np.empty((4, len(ids)), np.int64), 0
        marked = (self.types or not overwrite) and [x for x in docs if x.has_annotation(ENT_IOB)]
        if marked:
            arrays = [doc.to_array(_COLUMNS).reshape(-1, len(_COLUMNS)) for doc in docs]
            values = np.concatenate(arrays)
            is_kept = (values[:, 0] == BEGIN) | (values[:, 0] == INSIDE)
            if overwrite:  # only blocked tokens and entities of the learnt types
                is_kept &= ~np.isin(values[:, 1], [0, *base.string_ids((*sorted(self.types),))])
            values[~is_kept] = OUT, 0, 0, 0
        if len(ids) or len(values):
            find_entities = span_kernels()[1]
            type_ids = base.string_ids(names)
            n = find_entities(ids, ends, of, type_ids, bool(marked), values, spans)
            check_found(n, len(labels))
        used, vocab, end = {*spans[2, :n].tolist()}, None, 0
        for doc in docs:
            if doc.vocab is not vocab:
                # It may have lost strings since the last call, at the end of a memory zone.
                vocab = doc.vocab
                for i in used:
                    vocab.strings.add(names[i])
            begin, end = end, end + len(doc)
            doc.from_array(_COLUMNS, values[begin:end])  # type: ignore[arg-type]
        if scores is not None:
            is_new = spans[3, :n] > 0
            starts = spans[0, :n][is_new].tolist()
            self._write_scores(docs, dict(zip(starts, scores[is_new].tolist(), strict=True)))

    def _write_scores(self, docs: Docs, scores: Mapping[int, float]) -> None:
        """Write the scores of entities by first token, and 1 for kept ones of the learnt types."""
        base.add_extension(Span, SCORE)
        begin = 0
        for doc in docs:
            for entity in doc.ents:
                if self.has_type(entity.label_):
                    entity._.set(SCORE, scores.get(begin + entity.start, 1.0))
            begin += len(doc)


def _unknown(example: Example) -> Mask:
    """Return the predicted tokens whose gold tokens have no annotation: [tokens] bool."""
    iob = example.reference.to_array("ENT_IOB")
    aligned = iob if base.have_same_tokens(example) else example.get_aligned("ENT_IOB")
    return np.array([value == UNKNOWN for value in aligned], np.bool_)
