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

import math
import os
import re
import unicodedata
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, groupby, pairwise, product
from operator import add, mul, sub
from typing import Any, NamedTuple

HEAD = b'{"format": "spacy-sparsecrf portable 1", "digest": "%08x",'
CACHED = lru_cache(20_000)  # of distinct words, pieces of text and matrices
PIECE = re.compile(r"(?:(?<=\S) )?(\s+|\S+|\Z)")  # one space belongs to the token before it
MOST_STATES = 2048  # of the search for paths that repeat no name
TINY = 1e-300  # sum of paths that are too improbable for numbers
REPEATED = 1e9  # cost of a repetition, far above differences between scores of paths
Rows = Sequence[Sequence[float]]
Bits = Sequence[Sequence[int]]
Fields = dict[str, Any]
Words = list[tuple[str, int]]  # texts of tokens, and their starts
Weights = tuple[tuple[int, float], ...]  # of labels, or numbers of label pairs


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


class Tokenizer:
    """spaCy's tokenizer. fields: of `tokenizer` in a model."""

    def __init__(self, fields: Fields) -> None:
        self._patterns = {name: re.compile(text) for name, text in fields["patterns"].items()}
        self._rules: dict[str, list[str]] = fields["rules"]
        self._matched: dict[str, list[list[str]]] = fields["matched"]
        self._texts = CACHED(self._split)

    def __call__(self, text: str) -> Words:
        """Split a text at blanks, then each piece, then apply special cases of several tokens."""
        tokens: Words = []
        for piece in PIECE.finditer(text):
            tokens += _placed(self._texts(piece[1]), piece.start(1))
        return self._with_rules(text, tokens)

    def _split(self, text: str) -> list[str]:
        """Split a piece of text without spaces: affixes, then special cases, URLs and infixes."""
        prefixes = []
        suffixes = []
        while text and not self._patterns["token"].match(text) and text not in self._rules:
            head = len(matched(self._patterns["prefix"], text))
            tail = 0
            if text[head:] not in self._rules:
                tail = len(matched(self._patterns["suffix"], text[head:]))
            if tail and text[:-tail] in self._rules:
                head = 0
            if head == tail == 0:
                break
            end = len(text) - tail
            prefixes.append(text[:head])
            suffixes.append(text[end:])
            text = text[head:end]
        return [*filter(None, (*prefixes, *self._inner(text), *reversed(suffixes)))]

    def _inner(self, text: str) -> list[str]:
        """Split a piece without affixes."""
        if text in self._rules:
            return self._rules[text]
        if self._patterns["token"].match(text) or self._patterns["url"].match(text):
            return [text]
        texts: list[str] = []
        end = 0
        for match in self._patterns["infix"].finditer(text):
            if match.start():
                texts += text[end : match.start()], match[0]
                end = match.end()
        return [*texts, text[end:]]

    def _with_rules(self, text: str, tokens: Words) -> Words:
        """Apply special cases to tokens: the longest, then leftmost, which hide what they overlap.

        A special case hides others also if it is hidden itself.
        """
        matches = [
            (-len(texts), i)
            for i, (token, _) in enumerate(tokens)
            for texts in self._matched.get(token, ())
            if [x for x, _ in tokens[i : i + len(texts)]] == texts
        ]
        covered = set[int]()
        parts = {}
        for minus_n, i in sorted(matches):
            j, start = i - minus_n, tokens[i][1]
            end = tokens[j - 1][1] + len(tokens[j - 1][0])
            rule = self._rules.get(text[start:end])
            if rule and covered.isdisjoint((i, j - 1)):
                parts[i] = j, _placed(rule, start)
            covered.update(range(i, j))
        for i in sorted(parts, reverse=True):
            j, tokens[i:j] = parts[i]
        return tokens


def matched(pattern: str | re.Pattern[str], text: str) -> str:
    """Return what an expression matches in a text, "" for nothing."""
    match = re.search(pattern, text)
    return match[0] if match else ""


def _placed(texts: Sequence[str], start: int) -> Words:
    """Return adjacent tokens."""
    return [*zip(texts, accumulate(map(len, texts), initial=start))]


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


def like_num(text: str, words: Sequence[str], endings: Sequence[str], sign: str) -> bool:
    """Return whether a word is a number: of digits, a fraction, an ordinal, or in a list.

    words, endings: of the language, of ordinals such as 2nd; sign: that may end a number.
    """
    text = re.sub("[,.]", "", re.sub("^[-+±~]", "", text).removesuffix(sign)).lower()
    parts = text.split("/")
    is_number = text in words or (len(parts) < 3 and all(map(str.isdigit, parts)))
    return is_number or any(text.removesuffix(ending).isdigit() for ending in endings)


def ngrams(text: str, low: int, high: int, marks: str) -> str:
    """Return the distinct n-grams of a word between marks; a long word has those of its ends."""
    pieces = [text] if len(text) <= 20 else [text[:10], text[-10:]]
    pieces[0] = marks[:1] + pieces[0]
    pieces[-1] += marks[1:]
    sizes = product(range(low, high + 1), pieces)
    texts = (piece[i : i + n] for n, piece in sizes for i in range(len(piece) - n + 1))
    return "\n".join(dict.fromkeys(texts))


def string_hash(text: str) -> int:
    """Return spaCy's hash of a string: MurmurHash64A of its UTF-8 with seed 1."""
    data, factor, mask = text.encode(), 0xC6A4A7935BD1E995, 2**64 - 1
    value = 1 ^ (len(data) * factor & mask)
    for i in range(0, len(data), 8):
        block = int.from_bytes(data[i : i + 8], "little")
        if i + 8 <= len(data):
            block = block * factor & mask
            block = (block ^ block >> 47) * factor & mask
        value = (value ^ block) * factor & mask
    value = (value ^ value >> 47) * factor & mask
    return value ^ value >> 47


def class_of(text: str, classes: dict[str, str], bits: int | None = None) -> str:
    """Return the class of a word, or else of its form in lower case, or its leading bits.

    classes: by hash of words.
    """
    hashes = (f"{string_hash(form):x}" for form in (text, text.lower()))
    return next((classes[x] for x in hashes if x in classes), "")[:bits]


def labels_of(text: str, classes: dict[str, str]) -> str:
    """Return the labels of a word in the training data."""
    return class_of((text if text.isalpha() else re.sub(r"\d", "0", text)).lower(), classes)


ATTRIBUTES: dict[str, Callable[..., Any]] = {
    **{"orth": str, "lower": str.lower, "casefold": str.casefold, "fold": fold, "shape": shape},
    **{"length": len, "is_alpha": str.isalpha, "is_ascii": str.isascii, "is_digit": str.isdigit},
    **{"is_lower": str.islower, "is_upper": str.isupper, "is_title": str.istitle},
    **{"like_num": like_num, "ngrams": ngrams, "cluster": class_of, "word_labels": labels_of},
    "short_shape": lambda text: "".join(x for x, _ in groupby(shape(text))),
    "is_punct": lambda text: all(unicodedata.category(char)[0] == "P" for char in text),
    "has_digit": lambda text: any(map(str.isdigit, text)),
    "has_upper": lambda text: any(map(str.isupper, text)),
    "prefix": lambda text, n: text[:n] if len(text) >= n else "",
    "suffix": lambda text, n: text[-n:] if len(text) >= n else "",
    "regex": lambda text, pattern: bool(re.search(pattern, text)),
    "match": lambda text, pattern: matched(pattern, text),
}
"""Attributes of a word, called with the word and the arguments in the model."""


# Attributes that depend on other words


def glued(words: Words, breaks: Sequence[int]) -> list[bool]:
    """Return whether the next word begins where a word ends."""
    ends = (start + len(text) for text, start in words)
    return [end == start for end, (_, start) in zip(ends, [*words[1:], ("", -1)])]


def phrase_marks(
    words: Words, breaks: Sequence[int], phrases: dict[str, str], attr: str, longest: int
) -> list[str]:
    """Return B, I, L or U of words in the longest phrases of a list.

    phrases: their types, by words joined by tabs; attr: by which words are compared.
    """
    texts = [ATTRIBUTES[attr](text) for text, _ in words]
    marks = [""] * len(texts)
    spans = ((i, i + n) for n in range(longest, 0, -1) for i in range(len(texts) - n + 1))
    for i, j in spans:
        kind = phrases.get("\t".join(texts[i:j]))
        if kind is not None and not marks[i] and not marks[j - 1]:
            signs = "B" + "I" * (j - i - 2) + "L" if j > i + 1 else "U"
            marks[i:j] = (f"{sign}-{kind}" if kind else sign for sign in signs)
    return marks


def runs_elsewhere(words: Words, breaks: Sequence[int]) -> Iterator[str]:
    """Yield the positions (B, I, L, U) that words have elsewhere in runs of capitalised words."""
    lowers = [text.lower() for text, _ in words]
    begins = [n == 2 or x in (*".!?…", "") for n, x in zip(breaks, ["", *lowers])]
    opened = (x in (*":¿¡-–—•*'\"“«",) for x in ["", *lowers])
    capital = (text != lower for (text, _), lower in zip(words, lowers))
    marks = zip(begins, opened, capital)
    cases = [(2 - (begin or quoted)) * is_capital for begin, quoted, is_capital in marks]
    positions = [
        (case == 2 and previous > 0) + 2 * (following == 2) if case else -1
        for previous, case, following in zip([0, *cases], cases, [*cases[1:], 0])
    ]
    counts = Counter(zip(lowers, positions))
    is_used = sum(begins) > 1
    for lower, at in zip(lowers, positions):
        signs = zip("BILU", (2, 3, 1, 0)) if is_used and at >= 0 else ()
        yield "".join(sign for sign, k in signs if counts[lower, k] > (k == at))


CONTEXTUAL: dict[str, Callable[..., Iterable[Any]]] = {
    "break": lambda words, breaks: breaks,
    **{"glued": glued, "phrase": phrase_marks, "doc_run": runs_elsewhere},
}
"""Attributes of all words, called with the words, the line breaks before them, and arguments."""
LISTED = ("cluster", "word_labels", "phrase")  # whose first argument is the key of a list


# Features


def written(value: Any) -> str:
    """Return a value of an attribute as in features, "" for none."""
    return value if isinstance(value, str) else str(+value or "")


class WordReading(NamedTuple):
    """Values that a model reads of a word, however often it occurs.

    n_breaks: of a blank, its line breaks, at most 2, or else -1; values: of attributes, several
    n-grams joined by line ends; sums: of the weights of features of this word alone, by its offset.
    """

    n_breaks: int
    values: list[str]
    sums: dict[int, list[float]]


class Reading(NamedTuple):
    """Words and values that a model reads of a text.

    words: the tokens that are no blanks; breaks: line breaks before them, at most 2; contents: of
    words and the positions outside the text; columns: values of attributes of `contents`.
    """

    tokens: Words
    words: Words
    breaks: list[int]
    contents: list[WordReading]
    columns: list[list[str]]


class Features:
    """The attributes, templates and weights of a model. model: the fields of model.json."""

    def __init__(self, model: Fields) -> None:
        self._model = model
        self._margin: int = model["margin"]
        self._unseen = dict.fromkeys(map(ord, model["unseen"]))
        self._offsets = {reads[0][1] for _, reads, _ in model["near"]}
        lists = {
            key: {text: name for name, texts in groups.items() for text in texts.split("\n")}
            for key, groups in model["lists"].items()
        }
        self._calls = [
            (name, [lists[arguments[0]], *arguments[1:]] if name in LISTED else arguments)
            for name, *arguments in model["attributes"]
        ]
        self._weights = CACHED(self._read_weights)
        self._word = CACHED(self._read_word)
        self._pairs_of = CACHED(self._sum_pairs)

    def _read_weights(self, text: str) -> Weights:
        """Return the labels, or the numbers of label pairs, and weights of a feature."""
        parts = text.split()
        return (*zip(map(int, parts[::2]), array(self._model["type"], map(float, parts[1::2]))),)

    def read(self, tokens: Words) -> Reading:
        """Read the tokens of a text."""
        margin = range(1, self._margin + 1)
        ahead = [self._word(f" ^{min(n, self._model['edges'])}") for n in reversed(margin)]
        reading = Reading(tokens, words=[], breaks=[], contents=ahead, columns=[])
        n_breaks = -math.inf  # blanks at the beginning of a text do not count
        for token in tokens:
            word = self._word(token[0])
            if word.n_breaks >= 0:
                n_breaks += word.n_breaks
                continue
            reading.words.append(token)
            reading.breaks.append(int(min(max(n_breaks, 0), 2)))
            reading.contents.append(word)
            n_breaks = 0
        reading.contents.extend(self._word(f" ${min(n, self._model['edges'])}") for n in margin)
        reading.columns.extend(map(list, zip(*(word.values for word in reading.contents))))
        for column, (name, arguments) in zip(reading.columns, self._calls):
            if name in CONTEXTUAL:
                values = CONTEXTUAL[name](reading.words, reading.breaks, *arguments)
                column[self._margin : len(column) - self._margin] = map(written, values)
        return reading

    def _read_word(self, text: str) -> WordReading:
        """Read a word without characters that have no width, composed, or a position outside."""
        view = unicodedata.normalize("NFC", text.translate(self._unseen)) or " "
        if view.isspace():
            return WordReading(min(len(f"{view}.".splitlines()), 3) - 1, [], {})
        values = [text] * len(self._calls)
        if text[0] != " ":
            calls = ((ATTRIBUTES.get(name), arguments) for name, arguments in self._calls)
            values = [written(f(view, *arguments)) if f else "" for f, arguments in calls]
        sums = {offset: [0.0] * len(self._model["labels"]) for offset in self._offsets}
        for _, [(number, offset, _)], weights in self._model["near"]:
            for value in values[number].split("\n"):
                for label, weight in self._weights(weights.get(value, "")):
                    sums[offset][label] += weight
        return WordReading(-1, values, sums)

    def scores(self, reading: Reading) -> list[list[float]]:
        """Sum the weights of labels at each word: [T, Y]."""
        n = len(reading.words)
        by_offset = [
            [word.sums[offset] for word in reading.contents[self._margin + offset :][:n]]
            for offset in self._offsets
        ]
        sums = zip([[0.0] * len(self._model["labels"])] * n, *by_offset)
        scores: list[list[float]] = [[*map(sum, zip(*rows))] for rows in sums]
        for t, weights, *_ in self._present("wide", reading):
            for label, weight in self._weights(weights):
                scores[t][label] += weight
        return scores

    def pairs(self, reading: Reading) -> list["PairTable"]:
        """Return the scores of label pairs at each word."""
        present: list[tuple[str, ...]] = [()] * len(reading.words)
        for t, weights, *_ in self._present("bigrams", reading):
            present[t] += (weights,)
        return [*map(self._pairs_of, present)]

    def named(self, reading: Reading, word: int) -> Iterator[tuple[str, Weights]]:
        """Yield names of features at a word, and the weights of labels."""
        for kind in ("near", "wide"):
            for t, weights, name, values in self._present(kind, reading):
                if t == word:
                    shown = values.replace("\t", "|").replace(" ", "")
                    yield f"{name}={shown}" if shown else name, self._weights(weights)

    def _present(self, kind: str, reading: Reading) -> Iterator[tuple[int, str, str, str]]:
        """Yield words, and the weights, templates and values of features there.

        kind: of templates: "near", "wide", "bigrams".
        """
        n = len(reading.words)
        for name, reads, weights in self._model[kind]:
            columns = []
            for number, offset, is_place in reads:
                column, start = reading.columns[number], self._margin + offset
                if is_place:
                    start += n if offset < 0 else -1
                columns.append([column[start]] * n if is_place else column[start:][:n])
            for t, text in enumerate(map("\t".join, zip(*columns)) if columns else [""] * n):
                if text in weights:
                    yield t, weights[text], name, text
                elif "\n" in text:  # n-grams
                    yield from ((t, weights[x], name, x) for x in text.split("\n") if x in weights)

    def _sum_pairs(self, present: tuple[str, ...]) -> "PairTable":
        """Sum the weights of label pairs of features."""
        table = [[*row] for row in self._model["valid"]]
        for pair, weight in self._weights(" ".join(present)):
            table[pair // len(table[0])][pair % len(table[0])] += weight
        return PairTable(table)


# Labels


class PairTable:
    """Scores of label pairs, and their exponentials: [Y + 1, Y], row Y: from the beginning.

    top: the largest score; reach: if the label a has the best score at a token, labels with a score
    lower by more than reach[a] are on no best path behind it.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.columns = [*zip(*rows[:-1])]
        self.top = max(map(max, rows))
        tops = [*map(max, self.columns)]
        self.reach = [max(map(sub, tops, row)) + 1e-6 for row in rows[:-1]]

    @cached_property
    def powers(self) -> Rows:
        """exp(rows - top)."""
        return [[math.exp(x - self.top) for x in row] for row in self.rows]

    @cached_property
    def columns_of_powers(self) -> Rows:
        """The columns of `powers`, without the beginning."""
        return [*zip(*self.powers[:-1])]

    def tops(self, ahead: Sequence[float]) -> list[float]:
        """Compute the largest `ahead[i] + rows[i][j]` of all i."""
        top = max(ahead)
        least = top - self.reach[ahead.index(top)]
        pairs = zip(ahead, self.rows)
        return [*map(max, zip(*([a + x for x in row] for a, row in pairs if a >= least)))]


class Chain:
    """The distribution of the labels of a sequence, by a scaled recursion.

    scores: [T, Y] of words, whose differences are below 700; pairs: of label pairs at each word.
    """

    def __init__(self, scores: Rows, pairs: Sequence[PairTable]) -> None:
        self.scores = scores
        self.pairs = pairs

    def labels(self) -> list[int]:
        """Find the most probable labels: argmax_y sum_t scores[t, y_t] + pairs[t, y_{t-1}, y_t].

        The lowest label wins a tie, of the last word first (Viterbi).
        """
        best: list[list[float]] = []
        for scores, pairs in zip(self.scores, self.pairs):
            tops = pairs.tops(best[-1]) if best else pairs.rows[-1]
            best.append([*map(add, scores, tops)])
        path = [x.index(max(x)) for x in best[-1:]]
        for row, pairs in zip(best[-2::-1], self.pairs[:0:-1]):
            totals = [*map(add, row, pairs.columns[path[-1]])]
            path.append(totals.index(max(totals)))
        return path[::-1]

    def relaxed(self, bits: Bits) -> list[int]:
        """Find the most probable labels given that no name is repeated, if possible.

        A state of this search is a label and the subset of names begun. A repetition costs
        `REPEATED`. The lowest label wins a tie, then the lowest subset.
        bits: [Y + 1, Y], names that a step begins, as bit sets.
        """
        best: dict[tuple[int, int], Any] = {(-1, 0): (0.0, ())}
        for scores, pairs in zip(self.scores, self.pairs):
            reached: dict[tuple[int, int], Any] = {}
            for (previous, subset), (total, path) in sorted(best.items()):
                for y, begun in enumerate(bits[previous]):
                    score = total + (pairs.rows[previous][y] - REPEATED * bool(subset & begun))
                    if score > reached.get((y, subset | begun), (-math.inf,))[0]:
                        reached[y, subset | begun] = score, (y, path)
            best = {state: (scores[state[0]] + x, path) for state, (x, path) in reached.items()}
        path = max(sorted(best.items()), key=lambda state: state[1][0])[1][1]
        labels = []
        while path:
            y, path = path
            labels.append(y)
        return labels[::-1]

    def marginals(self) -> list[list[float]]:
        """Compute p(y_t = y | x): [T, Y]."""
        return [[*map(mul, a, b)] for a, b in zip(*self._sums[:2])]

    def probability(self, begin: int, labels: Sequence[int]) -> float:
        """Compute the probability that the words from `begin` have some labels."""
        alphas, betas, powers, _ = self._sums
        p = alphas[begin][labels[0]] * betas[begin + len(labels) - 1][labels[-1]]
        for t, (previous, y) in enumerate(pairwise(labels), begin + 1):
            p *= self.pairs[t].powers[previous][y] * powers[t][y]
        return p

    @property
    def log_z(self) -> float:
        """The logarithm of the sum over all paths of exp(score)."""
        return self._sums[3]

    @cached_property
    def _sums(self) -> tuple[Rows, Rows, Rows, float]:
        """Sums over the paths up to each word with a label, and behind it (Rabiner 1989, V.A).

        Returns both, [T, Y], the exponentials of scores by which both are scaled, and `log_z`.
        """
        alphas: list[list[float]] = []
        powers = []
        log_z = 0.0
        for scores, pairs in zip(self.scores, self.pairs):
            top = max(scores)
            power = [math.exp(x - top) for x in scores]
            sums = products(pairs.columns_of_powers, alphas[-1]) if alphas else pairs.powers[-1]
            alpha = [*map(mul, power, sums)]
            norm = sum(alpha) or TINY
            alphas.append([x / norm for x in alpha])
            powers.append([x / norm for x in power])
            log_z += math.log(norm) + top + pairs.top
        betas = [[1.0] * len(row) for row in powers[-1:]]
        for power, pairs in zip(powers[:0:-1], self.pairs[:0:-1]):
            betas.append(products(pairs.powers, [*map(mul, power, betas[-1])]))
        return alphas, betas[::-1], powers, log_z


def products(rows: Rows, vector: Sequence[float]) -> list[float]:
    """Return the product of each row with a vector."""
    return [sum(map(mul, row, vector)) for row in rows]


class Model:
    """A model of model.json.

    source: its path, or its contents. RAISES: ValueError for other data.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        import json  # here, because programs that need `Chain` alone start sooner

        data = source
        if not isinstance(data, bytes):
            with open(data, "rb") as file:
                data = file.read()
        head, _, body = data.partition(b"\n")
        if head != HEAD % zlib.adler32(body):
            reason = "This is no model of `export --format portable`, it is cut off or damaged, or"
            raise ValueError(f"{reason} of another version: copy it again, with its crf.py.")
        self.fields: Fields = json.loads(data)
        self.labels: list[str] = self.fields["labels"]
        self._tokenizer = Tokenizer(self.fields["tokenizer"])
        self._features = Features(self.fields)

    def __call__(self, text: str) -> Labelled:
        """Label a text. RAISES: ValueError for anything but a text of whole characters."""
        reading = self._read(text)
        chain = self._chain(reading)
        path = self._path(chain)
        spans = []
        for begin, end, kind in self._spans(path):
            labels, longer = path[begin:end], self.fields["longer"].get(kind)
            score = chain.probability(begin, labels)
            if longer is not None and end < len(path):
                score -= chain.probability(begin, [*labels, longer])
            if score < self.fields["thresholds"][kind]:
                path[begin:end] = [0] * len(labels)
                continue
            (_, start), (word, stop) = reading.words[begin], reading.words[end - 1]
            stop += len(word)
            spans.append(TextSpan(start, stop, kind, text=text[start:stop], score=max(score, 0.0)))
        answers = dict.fromkeys(reading.tokens, (self.fields["blank"], 1.0))
        for token, y, p in zip(reading.words, path, chain.marginals()):
            label = y if p[y] >= self.fields["least"][y] else 0
            answers[token] = self.labels[label], p[label]
        tokens = [Token(x, t, t + len(x), *answer) for (x, t), answer in answers.items()]
        return Labelled(tokens, spans)

    def explain(self, text: str, token: int) -> list[tuple[str, dict[str, float]]]:
        """Return the features of a token and their weights by label, the strongest first.

        RAISES: ValueError for a blank.
        """
        reading = self._read(text)
        features = self._features.named(reading, reading.words.index(reading.tokens[token]))
        named = [(name, {self.labels[y]: x for y, x in weights}) for name, weights in features]
        return sorted(named, key=lambda feature: -max(map(abs, feature[1].values())))

    def _read(self, text: Any) -> Reading:
        if not isinstance(text, str) or re.search("[\ud800-\udfff]", text):
            reason = "A text is a string of whole characters, without halves of surrogate pairs"
            raise ValueError(f"{reason}, not {type(text).__name__} {text!r:.60}")
        return self._features.read(self._tokenizer(text))

    def _chain(self, reading: Reading) -> Chain:
        """Return the distribution of the labels of a text; no span crosses an empty line."""
        scores = self._features.scores(reading)
        masks = [(t, self.fields["begins"]) for t, n in enumerate(reading.breaks) if n == 2]
        for t, mask in [*masks, (-1, self.fields["ends"])] if scores else ():
            scores[t] = [*map(add, scores[t], mask)]
        return Chain(scores, self._features.pairs(reading))

    def _path(self, chain: Chain) -> list[int]:
        """Find the best labels, with the weight of the outside label, and names at most once."""
        begun, weight = self.fields["once"], self.fields["outside_weight"]
        chain = Chain([[row[0] + weight, *row[1:]] for row in chain.scores], chain.pairs)
        path = chain.labels()
        tracked: list[str] = []
        while begun and len(self.labels) << len(tracked) + 1 <= MOST_STATES:
            steps = [begun[previous][y] for previous, y in pairwise((-1, *path))]
            names = [name for name in steps if name and name not in tracked]
            again = [name for k, name in enumerate(names[: len(begun) + 1]) if name in names[:k]]
            if not again:
                break
            tracked.append(again[0])
            bits = [[1 << tracked.index(x) if x in tracked else 0 for x in row] for row in begun]
            path = chain.relaxed(bits)
        return path

    def _spans(self, path: Sequence[int]) -> list[list[Any]]:
        """Return the spans that labels encode: the words begin:end, and the type."""
        spans: list[list[Any]] = []
        for t, (previous, y) in enumerate(pairwise((-1, *path))):
            if kind := self.fields["starts"][previous][y]:
                spans.append([t, t, kind])
            if self.fields["kinds"][y]:
                spans[-1][1] = t + 1
        return spans


if __name__ == "__main__":
    import fileinput
    import json

    model = Model(os.path.join(os.path.dirname(__file__), "model.json"))
    with fileinput.input(mode="rb") as lines:
        for line in lines:
            text = line.decode().rstrip("\r\n")
            print(json.dumps({"text": text, **model(text)._asdict()}))
