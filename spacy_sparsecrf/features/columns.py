"""Columns of other programs' data: attributes of tokens, one text a token."""

from collections.abc import Mapping, Sequence

from spacy.strings import get_string_id
from spacy.tokens import Doc

from ..errors import Errors, SparseCRFError
from .annotations import number_of
from .arguments import Read
from .attributes import EXTENSION, NGRAMS, PHRASE, VALUE, VECTOR
from .templates import parse_template
from .views import text_of

SEVERAL = {NGRAMS, PHRASE, VALUE, VECTOR}  # attributes that are not one text of a token


def parse_columns(columns: Sequence[str]) -> tuple[Read, ...]:
    """Parse the attributes that columns are.

    RAISES: SparseCRFError if they are not a list of attributes with one text a token.
    """
    if isinstance(columns, str) or not columns:
        raise SparseCRFError(Errors.SC157.format(value=columns))
    return tuple(_parse_column(i, column) for i, column in enumerate(columns))


def _parse_column(number: int, column: str) -> Read:
    try:
        tests = parse_template(f"u:{column}[0]").tests
    except SparseCRFError as error:
        raise _no_attribute(number, column, str(error)) from None
    if len(tests) != 1:
        raise _no_attribute(number, column, "it has an offset.")
    if tests[0].attribute in SEVERAL:
        raise _no_attribute(number, column, "it is not one text.")
    return tests[0].read


def _no_attribute(number: int, column: str, reason: str) -> SparseCRFError:
    return SparseCRFError(Errors.SC158.format(number=number, column=column, reason=reason))


def texts_of(read: Read, docs: Sequence[Doc]) -> Mapping[int, str]:
    """Texts of the values that an attribute which is read in Python has in Docs.

    RETURNS: the texts by their numbers, see `annotations`; "" for 0.
    """
    if read.name == EXTENSION:
        values = {token._.get(read.argument) for doc in docs for token in doc}
        texts = {number_of(value): text_of(value) for value in values if value is not None}
    else:
        spans = (span for doc in docs for span in doc.spans.get(read.argument, ()))
        labels = {span.label_ for span in spans}
        marked = (f"{mark}-{label}" for label in labels for mark in "BI")
        texts = {int(get_string_id(text)): text for text in marked}
    return {**texts, 0: ""}
