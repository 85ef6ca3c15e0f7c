"""Label texts with an exported model: one file, the standard library alone, Python 3.10 or newer.

    model = Model("model.json")
    labelled = model("Maria Lopez flew to Lisbon.")
    labelled.spans                                   # start, end, label, text, score
    labelled.tokens                                  # text, start, end, label, probability
    model.explain("Maria Lopez flew to Lisbon.", 0)  # features of a token, and their weights

`python -m spacy_sparsecrf export PIPELINE FOLDER --format portable` writes this file as crf.py. The
answers are those of the pipeline; docs/portable.md describes the fields of model.json. A model with
a valid digest is trusted like code. In the order of reading a text: `Tokenizer` splits it as spaCy
does, `Features` reads words and sums weights, `Chain` finds labels and their probabilities.
"""

import base64
import hashlib
import json
import math
import os
import re
import sys
import unicodedata
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate, groupby, pairwise, product
from operator import add, mul
from typing import Any, NamedTuple, TypeVar

FORMAT, VERSION = "spacy-sparsecrf portable", 1
MOST_CACHED = 20_000  # distinct words, pieces of text and matrices
MOST_STATES = 2048  # of the search for paths that repeat no name
REPEATED = 1e9  # cost of a repetition, far above differences between scores of paths
MISSING = "\n"  # a value without a feature: no value in a model has a line end
NEVER = -math.inf
Rows = Sequence[Sequence[float]]
Fields = dict[str, Any]
Recursion = tuple[list[list[float]], list[list[float]], list[float], float]
Value = TypeVar("Value")


class Token(NamedTuple):
    """A token of a text. A blank has the label of blanks and probability 1."""

    text: str
    start: int
    end: int
    label: str
    probability: float


class TextSpan(NamedTuple):
    """An entity or span of a text, and the probability of exactly this span."""

    start: int
    end: int
    label: str
    text: str
    score: float


class Labelled(NamedTuple):
    """The tokens and spans of a text. Offsets count characters (code points)."""

    tokens: list[Token]
    spans: list[TextSpan]


class Piece:
    """A token before it is labelled. is_spaced: whether one space follows."""

    __slots__ = "is_spaced", "start", "text"

    def __init__(self, text: str, start: int, is_spaced: bool = False) -> None:
        self.text = text
        self.start = start
        self.is_spaced = is_spaced

    @property
    def end(self) -> int:
        """Offset behind the token."""
        return self.start + len(self.text)


class Tokenizer:
    """spaCy's tokenizer. fields: of `tokenizer` in a model."""

    def __init__(self, fields: Fields) -> None:
        compiled = {name: re.compile(text or "(?!)") for name, text in fields["patterns"].items()}
        self._prefix = compiled["prefix"].search
        self._suffix = compiled["suffix"].search
        self._infixes = compiled["infix"].finditer
        self._token = compiled["token"].match
        self._url = compiled["url"].match
        self._rules: dict[str, list[str]] = fields["rules"]
        self._matched = {*map(tuple, fields["matched"])}
        self._lengths: dict[str, set[int]] = {}
        for texts in self._matched:
            self._lengths.setdefault(texts[0], set()).add(len(texts))
        self._cache: dict[str, list[str]] = {}

    def __call__(self, text: str) -> list[Piece]:
        """Split a text at blanks, then each piece, then apply special cases of several tokens."""
        return self._with_rules(text, self.pieces(text, self._rules))

    def pieces(self, text: str, rules: dict[str, list[str]]) -> list[Piece]:
        """Split a text at blanks, then each piece. rules: special cases, all or none."""
        pieces: list[Piece] = []
        for match in re.finditer(r"\s+|\S+", text):
            chunk, start = match[0], match.start()
            if chunk[0] == " " and pieces:
                # One space belongs to the token before it, and other blanks are tokens.
                pieces[-1].is_spaced = True
                chunk, start = chunk[1:], start + 1
            texts = self._cache.get(chunk) if rules else self._split(chunk, rules)
            if texts is None:
                texts = _stored(self._cache, chunk, self._split(chunk, rules))
            for part in texts:
                pieces.append(Piece(part, start))
                start += len(part)
        return pieces

    def _split(self, text: str, rules: dict[str, list[str]]) -> list[str]:
        """Split a piece of text without spaces: affixes, then special cases, URLs and infixes."""
        prefixes: list[str] = []
        suffixes: list[str] = []
        size = 0
        while text and len(text) != size and not self._token(text) and text not in rules:
            size = len(text)
            head = _length(self._prefix(text))
            tail = 0 if text[head:] in rules else _length(self._suffix(text[head:]))
            if tail and text[:-tail] in rules:
                head = 0
            if head + tail > size:
                tail = 0
            prefixes += [text[:head]] if head else []
            suffixes += [text[-tail:]] if tail else []
            text = text[head : size - tail]
        return [*prefixes, *self._inner(text, rules), *reversed(suffixes)]

    def _inner(self, text: str, rules: dict[str, list[str]]) -> list[str]:
        """Split a piece without affixes."""
        if not text or text in rules:
            return rules.get(text, [])
        if self._token(text) or self._url(text):
            return [text]
        texts: list[str] = []
        start = 0
        for begin, end in map(re.Match.span, self._infixes(text)):
            if begin:
                texts += filter(None, (text[start:begin], text[begin:end]))
                start = end
        return [*texts, text[start:]] if text[start:] else texts

    def _with_rules(self, text: str, pieces: list[Piece]) -> list[Piece]:
        """Apply special cases to tokens: the longest, then leftmost, which hide what they overlap.

        A special case hides others also if it is hidden itself.
        """
        matches = [
            (-n, i)
            for i, piece in enumerate(pieces)
            for n in self._lengths.get(piece.text, ())
            if tuple(x.text for x in pieces[i : i + n]) in self._matched and i + n <= len(pieces)
        ]
        covered: set[int] = set()
        parts: dict[int, tuple[int, list[Piece]]] = {}
        for minus_n, i in sorted(matches):
            j = i - minus_n
            rule = self._rules.get(text[pieces[i].start : pieces[j - 1].end])
            if rule is not None and covered.isdisjoint((i, j - 1)):
                parts[i] = (
                    j,
                    [*map(Piece, rule, accumulate(map(len, rule), initial=pieces[i].start))],
                )
                parts[i][1][-1].is_spaced = pieces[j - 1].is_spaced
            covered.update(range(i, j))
        for i in sorted(parts, reverse=True):
            j, pieces[i:j] = parts[i]
        return pieces


def _length(match: re.Match[str] | None) -> int:
    return match.end() - match.start() if match else 0


def _stored(cache: dict[Any, Any], key: Any, value: Value) -> Value:
    """Store a value in a cache, which is emptied when it is full. RETURNS: the value."""
    if len(cache) > MOST_CACHED:
        cache.clear()
    cache[key] = value
    return value


# Attributes of words


def fold(text: str) -> str:
    """Return a text without accents and case."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char)).casefold()


def shape(text: str) -> str:
    """Return spaCy's shape of a word: Xxxxx, dd.d; at most four equal characters in a row."""
    letters = (("X" if x.isupper() else "x") if x.isalpha() else x for x in text)
    classes = ("d" if x.isdigit() else x for x in letters)
    return "LONG" if len(text) >= 100 else "".join("".join([*x][:4]) for _, x in groupby(classes))


def like_num(text: str, words: Iterable[str], endings: Iterable[str], signs: str) -> bool:
    """Return whether a word is a number: of digits, a fraction, an ordinal, or in a list.

    words, endings: of the language, of ordinals such as 2nd; signs: that may end a number.
    """
    text = text[1:] if text.startswith(("+", "-", "±", "~")) else text
    text = text[:-1] if text.endswith((*signs,)) else text
    text = text.replace(",", "").replace(".", "")
    lower, fraction = text.lower(), text.split("/")
    ordinals = (lower.removesuffix(ending) for ending in endings if lower.endswith(ending))
    is_number = text.isdigit() or lower in words or any(map(str.isdigit, ordinals))
    return is_number or (len(fraction) == 2 and all(map(str.isdigit, fraction)))


def like_url(text: str, domains: Iterable[str], matches: Callable[[str], Any]) -> bool:
    """Return whether a word looks like a URL. domains: top-level ones; matches: the pattern."""
    if text.startswith(("http://", "https://")) or (text.startswith("www.") and len(text) >= 5):
        return True
    if "." in (text[0], text[-1]) or "@" in text or "." not in text:
        return False
    domain = text.rpartition(".")[2].partition(":")[0]
    return domain[-1:] == "/" or (domain.isalpha() and domain in domains) or bool(matches(text))


def ngrams(text: str, low: int, high: int, marks: str = "") -> list[str]:
    """Return the distinct n-grams of a word; a long word has those of its ends."""
    pieces = [text] if len(text) <= 20 else [text[:10], text[-10:]]
    pieces[0] = marks[:1] + pieces[0]
    pieces[-1] += marks[1:]
    sizes = product(range(low, high + 1), pieces)
    texts = (piece[i : i + n] for n, piece in sizes for i in range(len(piece) - n + 1))
    return [*dict.fromkeys(texts)]


def string_hash(text: str) -> int:
    """Return spaCy's hash of a string: MurmurHash64A of its UTF-8 with seed 1."""
    data, factor, mask = text.encode(), 0xC6A4A7935BD1E995, 2**64 - 1
    tail = len(data) & ~7
    value = 1 ^ (len(data) * factor & mask)
    for i in range(0, tail, 8):
        block = int.from_bytes(data[i : i + 8], "little") * factor & mask
        value = (value ^ ((block ^ block >> 47) * factor & mask)) * factor & mask
    if data[tail:]:
        value = (value ^ int.from_bytes(data[tail:], "little")) * factor & mask
    value = (value ^ value >> 47) * factor & mask
    return value ^ value >> 47


class Classes:
    """Classes of words, found by hash: of a word, or else of its form in lower case."""

    def __init__(self, fields: Fields) -> None:
        self._names: list[str] = fields["names"]
        self._parts = [
            [array(code, base64.b64decode(text)) for code, text in zip(("Q", fields["type"]), part)]
            for part in (fields["others"], fields["lower"])
        ]
        for numbers in (x for part in self._parts for x in part if sys.byteorder == "big"):
            numbers.byteswap()

    def __call__(self, word: str, bits: int = 0) -> str:
        """Return the class of a word, or its leading bits; "" for none."""
        for (hashes, codes), text in zip(self._parts, (word, word.lower())):
            wanted = string_hash(text)
            i = bisect_left(hashes, wanted)
            if i < len(hashes) and hashes[i] == wanted:
                return self._names[codes[i]][: bits or None]
        return ""


SIMPLE: dict[str, Callable[[str], Any]] = {
    **{"always": bool, "orth": str, "lower": str.lower, "casefold": str.casefold, "fold": fold},
    **{"shape": shape, "short_shape": lambda text: "".join(x for x, _ in groupby(shape(text)))},
    **{"length": len, "is_alpha": str.isalpha, "is_ascii": str.isascii, "is_digit": str.isdigit},
    **{"is_lower": str.islower, "is_upper": str.isupper, "is_title": str.istitle},
    "is_punct": lambda text: all(unicodedata.category(char)[0] == "P" for char in text),
    "has_digit": lambda text: any(map(str.isdigit, text)),
    "has_upper": lambda text: any(map(str.isupper, text)),
    "has_hyphen": lambda text: not {*"-\u2010\u2011"}.isdisjoint(text),
    "like_email": re.compile(r"([a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9-.]+)").match,
}
"""Attributes of a word without arguments."""
CONTEXTUAL = ("break", "glued", "doc_run", "phrase")
"""Attributes that depend on other words."""


def function_of(model: Fields, name: str, *arguments: Any) -> Callable[[str], Any]:
    """Return the function of a word for an attribute. model: the fields of model.json."""
    if name in SIMPLE:
        return SIMPLE[name]
    if name == "like_num":
        return partial(like_num, **model["like_num"] | {"words": {*model["like_num"]["words"]}})
    if name == "like_url":
        matches = re.compile(model["like_url"]["pattern"]).match
        return partial(like_url, domains={*model["like_url"]["domains"]}, matches=matches)
    if name == "ngrams":
        return lambda text: ngrams(text, *arguments)
    if name in ("prefix", "suffix"):
        n: int = arguments[0]
        part = slice(n) if name == "prefix" else slice(-n, None)
        return lambda text: text[part] if len(text) >= n else ""
    if name in ("regex", "match"):
        search = re.compile(arguments[0]).search
        return search if name == "regex" else lambda text: (search(text) or [""])[0]
    classes = Classes(model["classes"][arguments[0]])
    if name == "cluster":
        return partial(classes, bits=arguments[1])
    return lambda text: classes((text if text.isalpha() else re.sub(r"\d", "0", text)).lower())


def phrase_marks(texts: Sequence[str], phrases: dict[str, str]) -> Iterator[str]:
    """Yield B, I, L or U of words in the longest phrases of a list.

    texts: of words, as they are compared; phrases: their types, by words joined by tabs.
    """
    longest = 2 + max((phrase.count("\t") for phrase in phrases), default=0)
    spans = ((i, i + n) for i in range(len(texts)) for n in range(1, longest))
    matches = [
        (i - j, i, j) for i, j in spans if j <= len(texts) and "\t".join(texts[i:j]) in phrases
    ]
    marks = [""] * len(texts)
    for _, i, j in sorted(matches):
        if not marks[i] and not marks[j - 1]:
            kind = phrases["\t".join(texts[i:j])]
            signs = "B" + "I" * (j - i - 2) + "L" if j > i + 1 else "U"
            marks[i:j] = (f"{sign}-{kind}" if kind else sign for sign in signs)
    yield from marks


def runs_elsewhere(texts: Sequence[str], apart: Sequence[int]) -> Iterator[str]:
    """Yield the positions (B, I, L, U) that words have elsewhere in runs of capitalised words."""
    lowers = [*map(str.lower, texts)]
    begins = [t in apart or x in (*".!?…", "") for t, x in enumerate(["", *lowers[:-1]])]
    opened = (x in (*":¿¡-–—•*'\"“«",) for x in ["", *lowers])
    marks = zip(begins, opened, map(str.__ne__, texts, lowers))
    cases = [(2 - (begin or quoted)) * is_capital for begin, quoted, is_capital in marks]
    positions = [
        (case == 2 and previous > 0) + 2 * (following == 2) if case else -1
        for previous, case, following in zip([0, *cases], cases, [*cases[1:], 0])
    ]
    counts = Counter(zip(lowers, positions))
    for lower, at in zip(lowers, positions):
        is_used = at >= 0 and sum(begins) > 1
        signs = zip("BILU", (2, 3, 1, 0))
        yield "".join(x for x, k in signs if is_used and counts[lower, k] > (k == at))


# Features


class PairTable:
    """Scores of label pairs, and their exponentials: [Y + 1, Y], row Y: from the beginning."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.columns = [*zip(*rows[:-1])]
        self.top = max(map(max, rows))
        self.powers = [[math.exp(x - self.top) for x in row] for row in rows]
        self.power_columns = [*zip(*self.powers[:-1])]


class WordReading(NamedTuple):
    """What a model reads of a word, however often it occurs.

    n_lines: 0 for a word, and for a blank 1 + its line breaks, at most 3; values: of attributes,
    a list for n-grams; sums: of the weights of features of this word alone, by its offset.
    """

    n_lines: int
    values: list[Any]
    sums: list[list[float]]


class Reading(NamedTuple):
    """The words of a text: tokens that are no blanks.

    pieces: all tokens; tokens: positions of words among them; words: their contents, and those
    outside the sequence; apart: words behind an empty line; columns: values of attributes of
    `words`, by number.
    """

    pieces: list[Piece]
    tokens: list[int]
    words: list[WordReading]
    apart: list[int]
    columns: dict[int, list[Any]]


Read = tuple[int, int, int]  # number of an attribute, offset, and whether it is a place
Template = tuple[list[Read], dict[str, int]]  # and rows of weights by values


class Features:
    """The attributes, templates and weights of a model. model: the fields of model.json."""

    def __init__(self, model: Fields) -> None:
        self._model = model
        self._n_labels = len(model["labels"])
        self._attributes: list[list[Any]] = model["attributes"]
        self._readers = {
            number: function_of(model, *attribute)
            for number, (_, *attribute) in enumerate(self._attributes)
            if attribute[0] not in CONTEXTUAL
        }
        self._escapes = str.maketrans(model["escapes"])
        self._unseen = dict.fromkeys(map(ord, model["unseen"]))
        numbers = iter(range(len(model["counts"])))
        self.templates: list[list[Template]] = [
            [(reads, dict(zip(values.split("\n"), numbers))) for reads, values in model[kind]]
            for kind in ("near", "wide", "bigrams")
        ]
        self._ends = array("L", accumulate(model["counts"], initial=0))
        self._labels: list[int] = model["weighted"]
        self._weights = array("d" if model["is_double"] else "f", model["weights"])
        self._cache: dict[int, list[tuple[int, float]]] = {}
        self._offsets = sorted({reads[0][1] for reads, _ in self.templates[0]})
        self._words: dict[str, WordReading] = {}
        self._pairs: dict[tuple[int, ...], PairTable] = {}
        self._margin: int = model["margin"]
        distances = range(-self._margin, 0), range(1, self._margin + 1)
        self._outside = [[*map(self._edge_word, of_side)] for of_side in distances]
        self._several = {i for i, x in enumerate(self._attributes) if x[1] == "ngrams"}

    def weights(self, row: int) -> list[tuple[int, float]]:
        """Return the labels, or the numbers of label pairs, and weights of a feature."""
        weights: list[tuple[int, float]] | None = self._cache.get(row)
        if weights is None:
            part = slice(self._ends[row], self._ends[row + 1])
            weights = [*zip(self._labels[part], self._weights[part])]
            _stored(self._cache, row, weights)
        return weights

    def written(self, value: Any, is_text: bool = False) -> str:
        """Return a value as in names of features: a backslash precedes texts like numbers."""
        if not value or not isinstance(value, str):
            return str(value if type(value) is int else 1) if value else MISSING
        if value.isalpha():
            return value
        numbers = r"[$^][1-9][0-9]{0,9}" if is_text else r"-?[0-9]{1,20}|[$^][1-9][0-9]{0,9}"
        prefix = "\\" if re.fullmatch(numbers, value) else ""
        return prefix + (value if value.isalnum() else value.translate(self._escapes))

    def read(self, pieces: list[Piece]) -> Reading:
        """Read the tokens of a text."""
        reading = Reading(pieces, tokens=[], words=[*self._outside[0]], apart=[], columns={})
        contents = [self._words.get(piece.text) or self._word(piece.text) for piece in pieces]
        breaks: list[int] = []
        glued: list[bool] = []
        n_breaks = -3  # blanks at the beginning of a text do not count
        for t, word in enumerate(contents):
            if word.n_lines:
                n_breaks += (word.n_lines - 1) * (n_breaks >= 0)
                continue
            if n_breaks >= 2:
                reading.apart.append(len(breaks))
            breaks.append(min(max(n_breaks, 0), 2))
            is_inner = t + 1 < len(contents) and not contents[t + 1].n_lines
            glued.append(is_inner and not pieces[t].is_spaced)
            reading.words.append(word)
            reading.tokens.append(t)
            n_breaks = 0
        reading.words.extend(self._outside[1])
        for number, (_, name, *arguments) in enumerate(self._attributes):
            if name in CONTEXTUAL:
                values: Iterable[Any] = breaks if name == "break" else glued
                texts = [pieces[t].text for t in reading.tokens]
                if name == "phrase":
                    texts = [*map(SIMPLE[self._model["phrase_attribute"]], texts)]
                    values = phrase_marks(texts, self._model["phrases"][arguments[0]])
                elif name == "doc_run":
                    values = runs_elsewhere(texts, reading.apart)
                ahead, behind = ([x.values[number] for x in words] for words in self._outside)
                reading.columns[number] = [*ahead, *map(self.written, values), *behind]
        return reading

    def _word(self, text: str) -> WordReading:
        """Read a word: without characters that have no width, composed."""
        view = text
        if not text.isascii():
            view = unicodedata.normalize("NFC", text.translate(self._unseen)) or " "
        if view.isspace():
            n_lines = min(len(f"{view}.".splitlines()), 3)
            return _stored(self._words, text, WordReading(n_lines, [], []))
        values: list[Any] = [MISSING] * len(self._attributes)
        for number, function in self._readers.items():
            value, name = function(view), self._attributes[number][1]
            if isinstance(value, list):
                values[number] = [*map(self.written, value)]
            else:
                values[number] = self.written(value, name in ("cluster", "word_labels"))
        return _stored(self._words, text, WordReading(0, values, self._sums_of(values)))

    def _edge(self, distance: int) -> str:
        """Return the value of all attributes at a distance from the sequence, < 0 before it."""
        return f"{'^' if distance < 0 else '$'}{min(abs(distance), self._model['edges'])}"

    def _edge_word(self, distance: int) -> WordReading:
        values: list[Any] = [self._edge(distance)] * len(self._attributes)
        return WordReading(0, values, self._sums_of(values))

    def _sums_of(self, values: list[Any]) -> list[list[float]]:
        """Sum the weights of features of one word, by its offset."""
        sums = {offset: [0.0] * self._n_labels for offset in self._offsets}
        for [(number, offset, _)], rows in self.templates[0]:
            value = values[number]
            for text in value if isinstance(value, list) else (value,):
                for label, weight in self.weights(rows[text]) if text in rows else ():
                    sums[offset][label] += weight
        return [*sums.values()]

    def scores(self, reading: Reading) -> list[list[float]]:
        """Sum the weights of labels at each word: [T, Y]."""
        n = len(reading.tokens)
        by_offset = [
            [word.sums[k] for word in reading.words[self._margin + offset :][:n]]
            for k, offset in enumerate(self._offsets)
        ]
        sums = zip([[0.0] * self._n_labels] * n, *by_offset)
        scores: list[list[float]] = [[*map(sum, zip(*rows))] for rows in sums]
        for template in self.templates[1]:
            for t, row in self._rows(template, reading):
                if row is not None:
                    of_token = scores[t]
                    for label, weight in self.weights(row):
                        of_token[label] += weight
        return scores

    def _rows(self, template: Template, reading: Reading) -> Iterable[tuple[int, int | None]]:
        """Return words, and the row of weights of a template's feature there, or None."""
        reads, rows = template
        columns = [self._column(read, reading) for read in reads]
        if not columns:
            return enumerate([rows[""]] * len(reading.tokens))
        if not self._several.isdisjoint(number for number, _, _ in reads):
            lists = [[x if isinstance(x, list) else [x] for x in column] for column in columns]
            texts = ((t, "|".join(x)) for t, of in enumerate(zip(*lists)) for x in product(*of))
            return ((t, rows.get(text)) for t, text in texts)
        return enumerate(map(rows.get, map("|".join, zip(*columns))))

    def _column(self, read: Read, reading: Reading) -> list[Any]:
        """Return the values of an attribute at an offset from each word, or at a place."""
        (number, offset, is_place), n = read, len(reading.tokens)
        values = reading.columns.get(number)
        if values is None:
            values = reading.columns[number] = [word.values[number] for word in reading.words]
        if not is_place:
            return values[self._margin + offset :][:n]
        at = offset - 1 if offset > 0 else n + offset
        is_inside = 0 <= at < n
        return [
            values[self._margin + at] if is_inside else self._edge(at if at < 0 else at - n + 1)
        ] * n

    def named(self, kind: int, reading: Reading, word: int) -> Iterator[tuple[str, int, float]]:
        """Yield names, labels or label pairs, and weights of the features at a word."""
        for reads, rows in self.templates[kind]:
            parts = [
                f"{self._attributes[number][0]}[{'@' * is_place}{offset}]"
                for number, offset, is_place in reads
                if self._attributes[number][0]
            ]
            for t, row in self._rows((reads, rows), reading):
                if t == word and row is not None:
                    values = next(text for text, number in rows.items() if number == row)
                    name = f"{'|'.join(parts)}={values}" if parts else "always"
                    yield from ((name, label, weight) for label, weight in self.weights(row))

    def pairs(self, reading: Reading) -> list[PairTable]:
        """Return the scores of label pairs at each word."""
        rows_at: list[list[int]] = [[] for _ in reading.tokens]
        for template in self.templates[2]:
            for t, row in self._rows(template, reading):
                rows_at[t] += [] if row is None else [row]
        return [self._pairs.get(rows) or self._pairs_of(rows) for rows in map(tuple, rows_at)]

    def _pairs_of(self, rows: tuple[int, ...]) -> PairTable:
        """Sum the weights of label pairs of features, by their rows."""
        n = self._n_labels
        table = [[0.0 if x == "1" else NEVER for x in row[:n]] for row in self._model["valid"]]
        for row in rows:
            for pair, weight in self.weights(row):
                table[pair // n][pair % n] += weight
        return _stored(self._pairs, rows, PairTable(table))


# Labels


class Chain:
    """The distribution of the labels of a sequence, by a scaled recursion (Rabiner 1989, V.A).

    scores: [T, Y] of words; pairs: of label pairs at each word.
    """

    n_contexts = 1  # matrices of pairs that a search of states needs

    def __init__(self, scores: Rows, pairs: Sequence[PairTable]) -> None:
        self._scores = scores
        self._pairs = pairs

    def __len__(self) -> int:
        return len(self._scores)

    def labels(self) -> list[int]:
        """Find the most probable labels: argmax_y sum_t scores[t, y_t] + pairs[t, y_{t-1}, y_t].

        The lowest label wins a tie, of the last word first (Viterbi).
        """
        best: list[list[float]] = []
        for scores, pairs in zip(self._scores, self._pairs):
            tops: Iterable[float] = pairs.rows[-1]
            if best:
                ahead = best[-1]
                tops = [max(map(add, ahead, column)) for column in pairs.columns]
            best.append([*map(add, scores, tops)])
        path = [x.index(max(x)) for x in best[-1:]]
        for ahead, pairs in zip(best[-2::-1], self._pairs[:0:-1]):
            steps = [*map(add, ahead, pairs.columns[path[-1]])]
            path.append(steps.index(max(steps)))
        return path[::-1]

    def preferring(self, weight: float) -> "Chain":
        """Return the chain with a weight added to the scores of the label 0."""
        return Chain([[row[0] + weight, *row[1:]] for row in self._scores], self._pairs)

    def relaxed(self, bits: Sequence[Sequence[int]], m: int) -> list[list[int]]:
        """Find the most probable labels given that none of K names is repeated, if possible.

        A state of this search is a label and the subset of names begun. A repetition costs
        `REPEATED`. The lowest label wins a tie, then the lowest subset.
        bits: [Y + 1, Y], names that a step begins, as bit sets; m: 2^K. RETURNS: one path.
        """
        best: dict[tuple[int, int], Any] = {(-1, 0): (0.0, ())}
        for scores, pairs in zip(self._scores, self._pairs):
            reached: dict[tuple[int, int], Any] = {}
            for (previous, subset), (total, path) in sorted(best.items()):
                for y, begun in enumerate(bits[previous]):
                    score = total + (pairs.rows[previous][y] - REPEATED * bool(subset & begun))
                    if score > reached.get((y, subset | begun), (NEVER,))[0]:
                        reached[y, subset | begun] = score, path
            best = {(y, s): (scores[y] + x, (y, path)) for (y, s), (x, path) in reached.items()}
        state = max(sorted(best), key=lambda state: best[state][0])
        labels: list[int] = []
        path = best[state][1]
        while path:
            y, path = path
            labels.append(y)
        return [labels[::-1]]

    def marginals(self) -> list[list[float]]:
        """Compute p(y_t = y | x): [T, Y]."""
        alphas, _, _, _ = self._forward
        return [[*map(mul, a, b)] for a, b in zip(alphas, self._betas)]

    @property
    def log_z(self) -> float:
        """The logarithm of the sum over all paths of exp(score)."""
        return self._forward[3]

    def log_probability(self, labels: Sequence[int]) -> float:
        """Compute log p(y | x) of the labels [T]."""
        steps = zip(self._scores, self._pairs, (-1, *labels), labels)
        score = sum(scores[y] + pairs.rows[previous][y] for scores, pairs, previous, y in steps)
        return min(score - self.log_z, 0.0)

    def span_probability(self, begin: int, labels: Sequence[int], longer: int | None) -> float:
        """Compute the probability that the words from `begin` have some labels.

        longer: label that the next word must not have, None for none.
        """
        alphas, powers, norms, _ = self._forward
        p, final = alphas[begin][labels[0]], begin + len(labels) - 1
        for t, (previous, y) in enumerate(pairwise(labels), begin + 1):
            p *= self._pairs[t].powers[previous][y] * powers[t][y] / norms[t]
        if longer is None or final + 1 == len(self):
            return p * self._betas[final][labels[-1]]
        t = final + 1
        steps = map(mul, self._pairs[t].powers[labels[-1]], map(mul, powers[t], self._betas[t]))
        behind: float = sum(x for y, x in enumerate(steps) if y != longer)
        return p * behind / norms[t]

    @cached_property
    def _forward(self) -> Recursion:
        """Sums over paths up to each word, scaled to 1: [T, Y]; exp(scores), scales, log Z."""
        alphas: list[list[float]] = []
        powers: list[list[float]] = []
        norms: list[float] = []
        log_z = 0.0
        for scores, pairs in zip(self._scores, self._pairs):
            top = max(scores)
            sums: Iterable[float] = pairs.powers[-1]
            if alphas:
                ahead = alphas[-1]
                sums = [sum(map(mul, ahead, column)) for column in pairs.power_columns]
            powers.append([math.exp(x - top) for x in scores])
            alpha = [*map(mul, powers[-1], sums)]
            norm = sum(alpha)
            if not 0.0 < norm < math.inf:
                raise ValueError("The scores of all labels of a word are out of range.")
            alphas.append([x / norm for x in alpha])
            norms.append(norm)
            log_z += math.log(norm) + top + pairs.top
        return alphas, powers, norms, log_z

    @cached_property
    def _betas(self) -> list[list[float]]:
        """Sums over paths behind each word, scaled: [T, Y]."""
        _, powers, norms, _ = self._forward
        betas = [[1.0] * len(row) for row in powers[-1:]]
        for t in range(len(powers) - 1, 0, -1):
            norm = norms[t]
            ahead = [x * b / norm for x, b in zip(powers[t], betas[-1])]
            betas.append([sum(map(mul, row, ahead)) for row in self._pairs[t].powers[:-1]])
        return betas[::-1]


class Model:
    """A model of model.json.

    source: its path, or its contents. RAISES: ValueError for other data.
    """

    def __init__(self, source: "str | os.PathLike[str] | bytes") -> None:
        self.fields = read_model(source)
        self.labels: list[str] = self.fields["labels"]
        self._tokenizer = Tokenizer(self.fields["tokenizer"])
        self._features = Features(self.fields)

    def __call__(self, text: str) -> Labelled:
        """Label a text. RAISES: ValueError for anything but a text of whole characters."""
        reading = self._read(text)
        chain = self._chain(reading)
        path = self._path(chain)
        least, kinds = self.fields["thresholds"], self.fields["kinds"]
        spans: list[TextSpan] = []
        for begin, end, kind in self._spans(path):
            score = chain.span_probability(begin, path[begin:end], self.fields["longer"].get(kind))
            if score < least.get(kind, self.fields["threshold"]):
                path[begin:end] = [0] * (end - begin)
                continue
            start = reading.pieces[reading.tokens[begin]].start
            stop = reading.pieces[reading.tokens[end - 1]].end
            spans.append(TextSpan(start, stop, label=kind, text=text[start:stop], score=score))
        labels = [self.fields["blank"]] * len(reading.pieces)
        shares = [1.0] * len(labels)
        for t, y, p in zip(reading.tokens, path, chain.marginals()):
            if p[y] < least.get(self.labels[y], self.fields["threshold"]) and not kinds[y][1]:
                y = 0
            labels[t], shares[t] = self.labels[y], p[y]
        pieces = ((x.text, x.start, x.start + len(x.text)) for x in reading.pieces)
        tokens = [*map(Token, *zip(*pieces), labels, shares)] if labels else []
        return Labelled(tokens, spans)

    def explain(self, text: str, token: int) -> list[tuple[str, dict[str, float]]]:
        """Return the features of a token and their weights by label, the strongest first.

        Weights of label pairs are by both labels, as in "O B-PER", "^ O" at the beginning.
        """
        reading = self._read(text)
        if token not in reading.tokens:
            raise ValueError(f"Token {token} is a blank, or the text has no such token.")
        t = reading.tokens.index(token)
        pairs = [f"{a} {y}" for a in (*self.labels, "^") for y in self.labels]
        weights: dict[str, dict[str, float]] = {}
        for kind, names in enumerate((self.labels, self.labels, pairs)):
            for name, label, weight in self._features.named(kind, reading, t):
                weights.setdefault(name, {})[names[label]] = weight
        return sorted(weights.items(), key=lambda named: -max(map(abs, named[1].values())))

    def _read(self, text: str) -> Reading:
        if not isinstance(text, str):
            raise ValueError(f"A text is a string, not {type(text).__name__}: {text!r:.60}")
        if half := re.search("[\ud800-\udfff]", text):
            reason = f"The text has half of a surrogate pair at character {half.start()}"
            raise ValueError(f"{reason}, which is no character. Decode it again.")
        return self._features.read(self._tokenizer(text))

    def _chain(self, reading: Reading) -> Chain:
        """Return the distribution of the labels of a text; no span crosses an empty line."""
        scores = self._features.scores(reading)
        ends = "".join(row[-1] for row in self.fields["valid"])
        masks = [(t, self.fields["begins"]) for t in reading.apart]
        for t, mask in [*masks, (-1, ends)] if scores else ():
            scores[t] = [x if ok == "1" else NEVER for x, ok in zip(scores[t], mask)]
        return Chain(scores, self._features.pairs(reading))

    def _path(self, chain: Chain) -> list[int]:
        """Find the best labels, with the weight of the outside label, and names at most once."""
        begun, weight = self.fields["once"], self.fields["outside_weight"]
        if weight:
            chain = chain.preferring(weight)
        path = chain.labels()
        tracked: list[str] = []
        while begun and (names := [x for x in _repeated(begun, path) if x not in tracked]):
            m = 2 << len(tracked)
            if len(self.labels) * m > MOST_STATES:
                break
            tracked.append(names[0])
            bit_of = {name: 1 << k for k, name in enumerate(tracked)}
            [path] = chain.relaxed([[bit_of.get(name, 0) for name in row] for row in begun], m)
        return path

    def _spans(self, path: Sequence[int]) -> list[tuple[int, int, str]]:
        """Return the spans that labels encode: the words begin:end, and the type."""
        spans: list[tuple[int, int, str]] = []
        open_kind = ""  # of the span that may continue
        for t, (sign, kind) in enumerate(map(self.fields["kinds"].__getitem__, path)):
            if kind and kind == open_kind and sign in "IL":
                spans[-1] = spans[-1][0], t + 1, kind
            elif kind:
                spans.append((t, t + 1, kind))
            open_kind = kind if sign in "BI" else ""
        return spans


def _repeated(begun: Sequence[Sequence[str]], path: Sequence[int]) -> list[str]:
    """Return the names that a path begins again. begun: [Y + 1, Y], names that steps begin."""
    names = [begun[previous][y] for previous, y in pairwise((-1, *path))]
    return [name for k, name in enumerate(names) if name and name in names[:k]]


def read_model(source: "str | os.PathLike[str] | bytes") -> Fields:
    """Read the fields of a model; check format, version and digest first. RAISES: ValueError."""
    name = "The model"
    if not isinstance(source, bytes):
        name = os.fspath(source)
        with open(source, "rb") as file:
            source = file.read()
    line, _, body = source.partition(b"\n")
    try:
        head = json.loads(line.rstrip(b",") + b"}")
    except ValueError:
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ValueError(f"{name} is no model of `export --format portable`, or it is damaged.")
    if head.get("version") != VERSION:
        reason = f"{name} has version {head.get('version')!r}, and this reader reads {VERSION}"
        raise ValueError(f"{reason}. Use the crf.py that was exported with it.")
    if head.get("digest") != hashlib.sha256(body).hexdigest():
        raise ValueError(f"{name} is cut off or damaged: its digest differs. Copy it again.")
    fields: Fields = json.loads(b"{" + body)
    return fields


def main(arguments: Sequence[str]) -> None:
    """Label the lines of a file, or of the standard input: a line of JSON for each text."""
    if len(arguments) != 1 or arguments[0].startswith("--"):
        sys.exit("python crf.py TEXTS: label TEXTS, a file with a text per line; -: standard input")
    model = Model(os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.json"))
    with open(0 if arguments[0] == "-" else arguments[0], encoding="utf-8", newline="\n") as file:
        for line in file:
            text = line.rstrip("\r\n")
            answer = json.dumps({"text": text, **model(text)._asdict()}, ensure_ascii=False)
            sys.stdout.buffer.write(answer.encode() + b"\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")
