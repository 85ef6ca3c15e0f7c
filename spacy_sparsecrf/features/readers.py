"""The functions that read the attributes of a plan."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from .annotations import Extension, Spans, TokenReader
from .arguments import Read
from .attributes import AFFIX, EXPRESSION, EXTENSION, NGRAMS, PHRASE, SPAN, WORD, Value
from .expressions import Expression
from .ngrams import Ngrams
from .phrases import Phrases, Tokens
from .vectors import VectorBins

Reader: TypeAlias = Callable[[str], Value] | Ngrams


def word_reader(read: Read, number: int, template: str) -> Reader:
    """The function of a word's string that an attribute is.

    number, template: the first template that reads it, for messages.
    """
    if read.name in AFFIX:
        return partial(AFFIX[read.name], read.length)
    if read.name in EXPRESSION:
        text = read.name == "match"
        return Expression(read.argument, text=text, number=number, template=template)
    if read.name == NGRAMS:
        return Ngrams(read.length, read.longest, read.argument)
    return WORD[read.name]


def token_reader(
    read: Read, phrases: dict[str, list[Tokens]], phrase_attr: str, vector_width: int
) -> TokenReader:
    """The function of Docs that an attribute is which is read in Python.

    phrases: all lists that are read; phrase_attr: see `Phrases`; vector_width: see `VectorBins`.
    """
    if read.name == EXTENSION:
        return Extension(read.argument)
    if read.name == SPAN:
        return Spans(read.argument)
    if read.name == PHRASE:
        return Phrases(phrases[read.argument], phrase_attr)
    return VectorBins(read.length, vector_width)
