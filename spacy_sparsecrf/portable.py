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
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise, repeat
from operator import add, mul, sub
from typing import Any, NamedTuple

HEAD = b'{"format": "spacy-sparsecrf portable 1", "digest": "%08x",'
CACHED = lru_cache(20_000)  # of distinct words, pieces of text and matrices
UNIT = 2.0**-30  # of weights, whose sums are exact, so that equal scores are equal
TINY = 1e-300  # sum of paths that are too improbable for numbers
REPEATED = 1e9  # cost of a repetition, far above differences between scores of paths
Rows = Sequence[Sequence[float]]
Matrix = list[list[float]]
Bits = Sequence[Sequence[int]]
Fields = dict[str, Any]
Words = list[tuple[str, int]]  # texts of tokens, and their starts
Paths = dict[tuple[int, int], Any]  # by label and subset of names: score and labels
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
        for piece in self._patterns["piece"].finditer(text):
            tokens += _placed(self._texts(piece[0]), piece.start())
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


def casefold(text: str, folded: dict[str, str]) -> str:
    """Return a text without case. folded: characters, if this is not their lower case."""
    return "".join(folded.get(char) or char.lower() for char in text)


def fold(text: str, folded: dict[str, str], combining: str) -> str:
    """Return a text without accents and case. combining: expression for accents."""
    return casefold(re.sub(combining, "", unicodedata.normalize("NFKD", text)), folded)


def signs(text: str, classes: Fields) -> str:
    """Return the classes of characters. classes: the first character of ranges, and their class."""
    return "".join(classes["signs"][bisect(classes["starts"], ord(x)) - 1] for x in text)


def shape(text: str, classes: Fields, most: int) -> str:
    """Return spaCy's shape of a word: Xxxxx, dd.d; at most so many equal characters in a row."""
    pairs = zip(signs(text, classes), text)
    marks = (x if x in "Xxd" else "x" if x in "ta" else char for x, char in pairs)
    runs = rf"(?s)((.)\2{{{most - 1}}})\2+"
    return "LONG" if len(text) >= 100 else re.sub(runs, r"\1", "".join(marks))


def ngrams(text: str, low: int, high: int, begin: str, end: str) -> str:
    """Return the distinct n-grams of a word between marks; a long word has those of its ends."""
    marked = begin + re.sub("^(.{10}).+(.{10})$", r"\1\n\2", text) + end
    texts = (x for n in range(low, high + 1) for x in re.findall(f"(?=([^\n]{{{n}}}))", marked))
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


def class_of(text: str, classes: dict[str, str], bits: int) -> str:
    """Return leading bits of the class of a word, or else of its form in lower case.

    classes: by hash of words.
    """
    hashes = (f"{string_hash(form):x}" for form in (text, text.lower()))
    return next((classes[x] for x in hashes if x in classes), "")[:bits]


ATTRIBUTES: dict[str, Callable[..., str]] = {
    **{"orth": str, "lower": str.lower, "casefold": casefold, "fold": fold, "shape": shape},
    **{
        "ngrams": ngrams,
        "cluster": class_of,
        "match": lambda text, pattern: matched(pattern, text),
    },
    "length": lambda text: str(len(text)),
    "regex": lambda text, pattern: "1" if re.search(pattern, text) else "",
    "signs": lambda text, classes, pattern: "1" if re.search(pattern, signs(text, classes)) else "",
    "word_labels": lambda text, digits, *arguments: class_of(re.sub(digits, "0", text), *arguments),
}
"""Attributes of a word, called with the word and the arguments in the model."""


# Attributes that depend on other words


def glued(words: Words, breaks: Sequence[int]) -> list[str]:
    """Return "1" for words that end where the next one begins."""
    ends = (start + len(text) for text, start in words)
    return ["1" if end == start else "" for end, (_, start) in zip(ends, [*words[1:], ("", -1)])]


def phrase_marks(
    words: Words, breaks: Sequence[int], phrases: dict[str, str], longest: int, *compared: Any
) -> list[str]:
    """Return B, I, L or U of words in the longest phrases of a list.

    phrases: their types, by words joined by tabs; compared: an attribute, and its arguments.
    """
    texts = [ATTRIBUTES[compared[0]](text, *compared[1:]) for text, _ in words]
    marks = [""] * len(texts)
    spans = ((i, i + n) for n in range(longest, 0, -1) for i in range(len(texts) - n + 1))
    for i, j in spans:
        kind = phrases.get("\t".join(texts[i:j]))
        if kind is not None and not marks[i] and not marks[j - 1]:
            letters = "B" + "I" * (j - i - 2) + "L" if j > i + 1 else "U"
            marks[i:j] = (f"{letter}-{kind}" if kind else letter for letter in letters)
    return marks


def runs_elsewhere(words: Words, breaks: Sequence[int]) -> Iterator[str]:
    """Yield the positions (B, I, L, U) that words have elsewhere in runs of capitalised words."""
    lowers = [text.lower() for text, _ in words]
    begins = [n == 2 or x in (*".!?…", "") for n, x in zip(breaks, ["", *lowers])]
    opened = (x in (*":¿¡-–—•*'\"“«",) for x in ["", *lowers])
    capital = (text != lower for (text, _), lower in zip(words, lowers))
    marks = zip(begins, opened, capital)
    cases = [(2 - (begin or quoted)) * is_capital for begin, quoted, is_capital in marks]
    places = [
        "ULBI"[(case == 2 and previous > 0) + 2 * (following == 2)] if case else ""
        for previous, case, following in zip([0, *cases], cases, [*cases[1:], 0])
    ]
    counts = Counter(zip(lowers, places))
    is_used = sum(begins) > 1
    for lower, place in zip(lowers, places):
        letters = "BILU" if is_used and place else ""
        yield "".join(x for x in letters if counts[lower, x] > (x == place))


CONTEXTUAL: dict[str, Callable[..., Iterable[str]]] = {
    "break": lambda words, breaks: (str(n or "") for n in breaks),
    **{"glued": glued, "phrase": phrase_marks, "doc_run": runs_elsewhere},
}
"""Attributes of all words, called with the words, the line breaks before them, and arguments."""


# Features


class WordReading(NamedTuple):
    """Values that a model reads of a word, however often it occurs.

    n_breaks: of a blank, its line breaks, at most 2, or else -1; values: of attributes, several
    n-grams joined by line ends; sums: of weights of features of this word alone, by their place.
    """

    n_breaks: int
    values: Sequence[str]
    sums: dict[int, list[float]]


class Reading(NamedTuple):
    """Words and values that a model reads of a text.

    words: the tokens that are no blanks; breaks: line breaks before them, at most 2; contents: of
    words and the positions outside the text; columns: by attribute, the values of `contents`.
    """

    tokens: Words
    words: Words
    breaks: list[int]
    contents: list[WordReading]
    columns: list[Sequence[str]]


class Features:
    """The attributes, templates and weights of a model. model: the fields of model.json."""

    def __init__(self, model: Fields) -> None:
        self._model = model
        self._characters = {name: re.compile(text) for name, text in model["characters"].items()}
        self._calls, self._contexts = (
            [
                (name, [model["lists"][x[0]] if isinstance(x, list) else x for x in arguments])
                for name, *arguments in model[kind]
            ]
            for kind in ("attributes", "contexts")
        )
        self._weights = CACHED(self._read_weights)
        self._word = CACHED(self._read_word)
        self._pairs_of = CACHED(self._sum_pairs)

    def _read_weights(self, text: str) -> Weights:
        """Return the labels, or the numbers of label pairs, and weights of a feature."""
        parts = text.split()
        return (*zip(map(int, parts[::2]), (int(x) * UNIT for x in parts[1::2])),)

    def read(self, tokens: Words) -> Reading:
        """Read the tokens of a text."""
        ahead, behind = self._model["outside"]
        reading = Reading(tokens, words=[], breaks=[], contents=[], columns=[])
        n_breaks = 0
        for token in tokens:
            word = self._word(token[0])
            if word.n_breaks >= 0:
                n_breaks += word.n_breaks if reading.words else 0
                continue
            reading.words.append(token)
            reading.breaks.append(min(n_breaks, 2))
            reading.contents.append(word)
            n_breaks = 0
        reading.contents[:] = *map(self._word, ahead), *reading.contents, *map(self._word, behind)
        reading.columns.extend(zip(*(word.values for word in reading.contents)))
        for name, arguments in self._contexts:
            values = CONTEXTUAL[name](reading.words, reading.breaks, *arguments)
            reading.columns.append([*ahead, *values, *behind])
        return reading

    def _read_word(self, text: str) -> WordReading:
        """Read a word without characters that have no width, composed, or a position outside."""
        view = unicodedata.normalize("NFC", self._characters["unseen"].sub("", text))
        if self._characters["blank"].match(view):
            return WordReading(min(len(self._characters["break"].findall(view)), 2), [], {})
        values = [text] * len(self._calls)
        if text[0] != " ":
            values = [ATTRIBUTES[name](view, *arguments) for name, arguments in self._calls]
        sums = {place: [0.0] * len(self._model["labels"]) for place in self._model["places"]}
        for _, [(number, place, _)], weights in self._model["near"]:
            for value in values[number].split("\n"):
                for label, weight in self._weights(weights.get(value, "")):
                    sums[place][label] += weight
        return WordReading(-1, values, sums)

    def _keys(self, kind: str, reading: Reading) -> Iterator[tuple[str, list[str], dict[str, str]]]:
        """Yield templates: the name, the values that they read at each word, weights by values.

        kind: "near", "wide" or "bigrams".
        """
        n = len(reading.words)
        for name, reads, weights in self._model[kind]:
            columns = (
                [reading.columns[number][place]] * n
                if is_absolute
                else reading.columns[number][place : place + n]
                for number, place, is_absolute in reads
            )
            yield name, [*map("\t".join, zip(*columns))], weights

    def scores(self, reading: Reading) -> Matrix:
        """Sum the weights of labels at each word: [T, Y]."""
        by_place = (
            [word.sums[place] for word in reading.contents[place : place + len(reading.words)]]
            for place in self._model["places"]
        )
        scores: Matrix = [[*map(sum, zip(*rows))] for rows in zip(*by_place)]
        for _, keys, weights in self._keys("wide", reading):
            for t, text in enumerate(map(weights.get, keys)):
                if text:
                    for label, weight in self._weights(text):
                        scores[t][label] += weight
        return scores

    def pairs(self, reading: Reading) -> list["PairTable"]:
        """Return the scores of label pairs at each word."""
        bigrams = self._keys("bigrams", reading)
        texts = (map(weights.get, keys, repeat("")) for _, keys, weights in bigrams)
        return [*map(self._pairs_of, zip(repeat("", len(reading.words)), *texts))]

    def named(self, reading: Reading, word: int) -> Iterator[tuple[str, Weights]]:
        """Yield names of features at a word, and the weights of labels."""
        for name, keys, weights in (*self._keys("near", reading), *self._keys("wide", reading)):
            for values in filter(weights.__contains__, keys[word].split("\n") if name else ()):
                shown = values.replace("\t", "|").replace(" ", "")
                yield f"{name}={shown}" if shown else name, self._weights(weights[values])

    def _sum_pairs(self, present: tuple[str, ...]) -> "PairTable":
        """Sum the weights of label pairs of features."""
        table = [[*row] for row in self._model["valid"]]
        for pair, weight in self._weights(" ".join(present)):
            table[pair // len(table[0])][pair % len(table[0])] += weight
        return PairTable(table)


# Labels


class PairTable:
    """Scores of label pairs, and their exponentials: [Y + 1, Y], row Y: from the beginning.

    top: the largest score; powers: exp(rows - top); columns: without the beginning.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.columns = [*zip(*rows[:-1])]
        self.top = max(map(max, rows))
        self.powers = [[math.exp(x - self.top) for x in row] for row in rows]
        self.columns_of_powers = [*zip(*self.powers[:-1])]
        self._gained: dict[int, list[float]] = {}

    def forward(self, alpha: Sequence[float]) -> list[float]:
        """Compute the sums of `alpha[i] * powers[i][j]` over all i."""
        return [sum(map(mul, column, alpha)) for column in self.columns_of_powers]

    def backward(self, beta: Sequence[float]) -> list[float]:
        """Compute the sums of `powers[i][j] * beta[j]` over all j, for each label i."""
        return [sum(map(mul, row, beta)) for row in self.powers[:-1]]

    def tops(self, ahead: Sequence[float]) -> list[float]:
        """Compute the largest `ahead[i] + rows[i][j]` of all i."""
        top = max(ahead)
        pairs = zip(ahead, self._gains(ahead.index(top)), self.rows)
        rows = ([a + x for x in row] for a, gain, row in pairs if a + gain >= top)
        return [*map(max, zip(*rows))]

    def _gains(self, label: int) -> list[float]:
        """Return the most that the next step of a path gains by each label instead of this one.

        If this label has the best score, labels with a score lower by more are on no best path.
        """
        if label not in self._gained:
            gains = (map(sub, row, self.rows[label]) for row in self.rows[:-1])
            self._gained[label] = [max(x) + 1e-6 for x in gains]
        return self._gained[label]


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
        best: Matrix = []
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
        best: Paths = {(-1, 0): (0.0, ())}
        for scores, pairs in zip(self.scores, self.pairs):
            reached: Paths = {}
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

    def marginals(self) -> Matrix:
        """Compute p(y_t = y | x): [T, Y]."""
        return [[*map(mul, a, b)] for a, b in zip(*self.sums[:2])]

    def probability(self, begin: int, labels: Sequence[int]) -> float:
        """Compute the probability that the words from `begin` have some labels."""
        alphas, betas, powers = self.sums
        p = alphas[begin][labels[0]] * betas[begin + len(labels) - 1][labels[-1]]
        for t, (previous, y) in enumerate(pairwise(labels), begin + 1):
            p *= self.pairs[t].powers[previous][y] * powers[t][y]
        return p

    @cached_property
    def sums(self) -> tuple[Rows, Rows, Rows]:
        """Sums over the paths up to each word with a label, and behind it (Rabiner 1989, V.A).

        Returns both, [T, Y], and the exponentials of scores by which both are scaled.
        """
        alphas: Matrix = []
        powers = []
        for scores, pairs in zip(self.scores, self.pairs):
            top = max(scores)
            power = [math.exp(x - top) for x in scores]
            sums = pairs.forward(alphas[-1]) if alphas else pairs.powers[-1]
            alpha = [*map(mul, power, sums)]
            norm = sum(alpha) or TINY
            alphas.append([x / norm for x in alpha])
            powers.append([x / norm for x in power])
        betas = [[1.0] * len(row) for row in powers[-1:]]
        for power, pairs in zip(powers[:0:-1], self.pairs[:0:-1]):
            betas.append(pairs.backward([*map(mul, power, betas[-1])]))
        return alphas, betas[::-1], powers


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
        chain = Chain(self._features.scores(reading), self._features.pairs(reading))
        path = self._path(chain)
        spans = []
        for begin, end, kind in self._spans(path):
            labels, (threshold, longer) = path[begin:end], self.fields["types"][kind]
            score = chain.probability(begin, labels)
            if longer is not None and end < len(path):
                score -= chain.probability(begin, [*labels, longer])
            if score < threshold:
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

    def _path(self, chain: Chain) -> list[int]:
        """Find the best labels, with the weight of the outside label, and names at most once."""
        weight, begun = self.fields["outside_weight"], self.fields["once"]
        chain = Chain([[row[0] + weight, *row[1:]] for row in chain.scores], chain.pairs)
        path = chain.labels()
        tracked = 0
        for _ in range(self.fields["most_tracked"]):
            names = repeated = 0
            for previous, y in pairwise((-1, *path)):
                name = begun[previous][y] & ~tracked
                repeated = repeated or names & name
                names |= name
            if not repeated:
                break
            tracked |= repeated
            path = chain.relaxed([[bits & tracked for bits in row] for row in begun])
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
