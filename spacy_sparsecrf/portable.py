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

import fileinput
import hashlib
import json
import math
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, groupby, pairwise, product
from operator import add, mul, sub
from pathlib import Path
from typing import Any, NamedTuple

HEAD = b'{"format": "spacy-sparsecrf portable 1", "digest": "%s",'
CACHED = lru_cache(20_000)  # of distinct words, pieces of text and matrices
MOST_STATES = 2048  # of the search for paths that repeat no name
REPEATED = 1e9  # cost of a repetition, far above differences between scores of paths
NEVER = -math.inf
Rows = list[list[float]]
Fields = dict[str, Any]
Weights = tuple[tuple[int, float], ...]  # of labels, or numbers of label pairs


class Token(NamedTuple):
    """A token of a text. A blank has the label of blanks and probability 1."""

    text: str
    start: int
    end: int
    label: str = ""
    probability: float = 1.0


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

    def __call__(self, text: str) -> list[Token]:
        """Split a text at blanks, then each piece, then apply special cases of several tokens."""
        tokens: list[Token] = []
        for match in re.finditer(r"\s+|\S+", text):
            piece, start = match[0], match.start()
            if piece[0] == " " and tokens:
                # One space belongs to the token before it, and other blanks are tokens.
                piece, start = piece[1:], start + 1
            tokens += _placed(self._texts(piece), start)
        return self._with_rules(text, tokens)

    def _split(self, text: str) -> list[str]:
        """Split a piece of text without spaces: affixes, then special cases, URLs and infixes."""
        prefixes = []
        suffixes = []
        while text and not self._patterns["token"].match(text) and text not in self._rules:
            head = self._length("prefix", text)
            tail = 0 if text[head:] in self._rules else self._length("suffix", text[head:])
            if tail and text[:-tail] in self._rules:
                head = 0
            if head == tail == 0:
                break
            end = len(text) - tail
            prefixes.append(text[:head])
            suffixes.append(text[end:])
            text = text[head:end]
        return [*filter(None, (*prefixes, *self._inner(text), *reversed(suffixes)))]

    def _length(self, name: str, text: str) -> int:
        match = self._patterns[name].search(text)
        return len(match[0]) if match else 0

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

    def _with_rules(self, text: str, tokens: list[Token]) -> list[Token]:
        """Apply special cases to tokens: the longest, then leftmost, which hide what they overlap.

        A special case hides others also if it is hidden itself.
        """
        matches = [
            (-len(texts), i)
            for i, token in enumerate(tokens)
            for texts in self._matched.get(token.text, ())
            if [x.text for x in tokens[i : i + len(texts)]] == texts
        ]
        covered = set[int]()
        parts = {}
        for minus_n, i in sorted(matches):
            j, start = i - minus_n, tokens[i].start
            rule = self._rules.get(text[start : tokens[j - 1].end])
            if rule and covered.isdisjoint((i, j - 1)):
                parts[i] = j, _placed(rule, start)
            covered.update(range(i, j))
        for i in sorted(parts, reverse=True):
            j, tokens[i:j] = parts[i]
        return tokens


def _placed(texts: Sequence[str], start: int) -> list[Token]:
    """Return adjacent tokens."""
    ends = accumulate(map(len, texts), initial=start)
    return [Token(text, *offsets) for text, offsets in zip(texts, pairwise(ends))]


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
    **{"like_num": like_num, "cluster": class_of, "word_labels": labels_of},
    "short_shape": lambda text: "".join(x for x, _ in groupby(shape(text))),
    "is_punct": lambda text: all(unicodedata.category(char)[0] == "P" for char in text),
    "has_digit": lambda text: any(map(str.isdigit, text)),
    "has_upper": lambda text: any(map(str.isupper, text)),
    "has_hyphen": lambda text: not {*"-\u2010\u2011"}.isdisjoint(text),
    "prefix": lambda text, n: text[:n] if len(text) >= n else "",
    "suffix": lambda text, n: text[-n:] if len(text) >= n else "",
    "regex": lambda text, pattern: bool(re.search(pattern, text)),
    "match": lambda text, pattern: (re.search(pattern, text) or [""])[0],
}
"""Attributes of a word, called with the word and the arguments in the model."""
CONTEXTUAL = ("break", "glued", "doc_run", "phrase")
"""Attributes that depend on other words."""


def phrase_marks(texts: Sequence[str], phrases: dict[str, str], longest: int) -> list[str]:
    """Return B, I, L or U of words in the longest phrases of a list.

    texts: of words, as they are compared; phrases: their types, by words joined by tabs.
    """
    spans = ((i, i + n) for n in range(longest, 0, -1) for i in range(len(texts) - n + 1))
    marks = [""] * len(texts)
    for i, j in spans:
        kind = phrases.get("\t".join(texts[i:j]))
        if kind is not None and not marks[i] and not marks[j - 1]:
            signs = "B" + "I" * (j - i - 2) + "L" if j > i + 1 else "U"
            marks[i:j] = (f"{sign}-{kind}" if kind else sign for sign in signs)
    return marks


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


def written(value: Any) -> str:
    """Return the value of an attribute as in features, "" for none."""
    return value if isinstance(value, str) else str(+value or "")


class PairTable:
    """Scores of label pairs, and their exponentials: [Y + 1, Y], row Y: from the beginning."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.columns = [*zip(*rows[:-1])]
        top = max(map(max, rows))
        self.powers = [[math.exp(x - top) for x in row] for row in rows]
        self.power_columns = [*zip(*self.powers[:-1])]


class WordReading(NamedTuple):
    """What a model reads of a word, however often it occurs.

    n_lines: 0 for a word, and for a blank 1 + its line breaks, at most 3; values: of attributes;
    sums: of the weights of features of this word alone, by its offset.
    """

    n_lines: int
    values: list[str]
    sums: dict[int, list[float]]


class Reading(NamedTuple):
    """The words of a text: tokens that are no blanks.

    positions: of words among tokens; apart: words behind an empty line; words: their contents, and
    those outside the sequence; columns: values of attributes of `words`.
    """

    tokens: list[Token]
    positions: list[int]
    apart: list[int]
    words: list[WordReading]
    columns: list[list[str]]


class WeightedTemplate(NamedTuple):
    """What features read, and their weights.

    reads: number of an attribute, offset, and whether that is a position in the text; weights: by
    values joined by tabs, labels or numbers of label pairs, each before its weight.
    """

    name: str
    reads: list[tuple[int, int, bool]]
    weights: dict[str, str]


class Features:
    """The attributes, templates and weights of a model. model: the fields of model.json."""

    def __init__(self, model: Fields) -> None:
        self._model = model
        self._n_labels = len(model["labels"])
        self._margin: int = model["margin"]
        self._lists = {
            key: {word: name for name, words in classes.items() for word in words.split()}
            for key, classes in model["classes"].items()
        }
        self._unseen = dict.fromkeys(map(ord, model["unseen"]))
        self._near, self._wide, self._bigrams = (
            [WeightedTemplate(*template) for template in model[kind]]
            for kind in ("near", "wide", "bigrams")
        )
        self._weights = CACHED(self._read_weights)
        self._word = CACHED(self._read_word)
        self._pairs_of = CACHED(self._sum_pairs)
        distances = range(-self._margin, 0), range(1, self._margin + 1)
        self._outside = [[*map(self._edge, of_side)] for of_side in distances]

    def _read_weights(self, text: str) -> Weights:
        """Return the labels, or the numbers of label pairs, and weights of a feature."""
        parts = text.split()
        return (*zip(map(int, parts[::2]), array(self._model["type"], map(float, parts[1::2]))),)

    def read(self, tokens: list[Token]) -> Reading:
        """Read the tokens of a text."""
        apart = []
        positions = []
        breaks: list[int] = []
        words = []
        n_breaks = -3  # blanks at the beginning of a text do not count
        for t, token in enumerate(tokens):
            word = self._word(token.text)
            if word.n_lines:
                n_breaks += (word.n_lines - 1) * (n_breaks >= 0)
                continue
            if n_breaks >= 2:
                apart.append(len(breaks))
            breaks.append(min(max(n_breaks, 0), 2))
            words.append(word)
            positions.append(t)
            n_breaks = 0
        ahead, behind = self._outside
        words = [*ahead, *words, *behind]
        columns = [*map(list, zip(*(word.values for word in words)))]
        inside = slice(len(ahead), len(words) - len(behind))
        seen = [tokens[t] for t in positions]
        for number, (name, *arguments) in enumerate(self._model["attributes"]):
            values: Iterable[Any] = breaks
            if name == "glued":
                values = [*(a.end == b.start for a, b in pairwise(seen)), *[False] * bool(seen)]
            elif name == "doc_run":
                values = runs_elsewhere([x.text for x in seen], apart)
            elif name == "phrase":
                compared, phrases, longest = arguments
                texts = [ATTRIBUTES[compared](x.text) for x in seen]
                values = phrase_marks(texts, self._model["phrases"][phrases], longest)
            if name in CONTEXTUAL:
                columns[number][inside] = map(written, values)
        return Reading(tokens, positions, apart=apart, words=words, columns=columns)

    def _read_word(self, text: str) -> WordReading:
        """Read a word: without characters that have no width, composed."""
        view = text
        if not text.isascii():
            view = unicodedata.normalize("NFC", text.translate(self._unseen)) or " "
        if view.isspace():
            n_lines = min(len(f"{view}.".splitlines()), 3)
            return WordReading(n_lines, [], {})
        values = []
        for name, *arguments in self._model["attributes"]:
            if name in ("cluster", "word_labels"):
                arguments[0] = self._lists[arguments[0]]
            is_near = name not in CONTEXTUAL
            values.append(written(ATTRIBUTES[name](view, *arguments)) if is_near else "")
        return WordReading(0, values, self._sums(values))

    def _edge(self, distance: int) -> WordReading:
        """Return what is read outside the sequence. distance: < 0 before its first word."""
        value = f" {'^' if distance < 0 else '$'}{min(abs(distance), self._model['edges'])}"
        values: list[str] = [value] * len(self._model["attributes"])
        return WordReading(0, values, self._sums(values))

    def _sums(self, values: list[str]) -> dict[int, list[float]]:
        """Sum the weights of features of one word, by its offset."""
        sums: dict[int, list[float]] = {}
        for _, [(number, offset, _)], weights in self._near:
            row = sums.setdefault(offset, [0.0] * self._n_labels)
            for label, weight in self._weights(weights.get(values[number], "")):
                row[label] += weight
        return sums

    def scores(self, reading: Reading) -> Rows:
        """Sum the weights of labels at each word: [T, Y]."""
        n, ahead = len(reading.positions), self._margin
        by_offset = [
            [word.sums[offset] for word in reading.words[ahead + offset :][:n]]
            for offset in sorted({template.reads[0][1] for template in self._near})
        ]
        sums = zip([[0.0] * self._n_labels] * n, *by_offset)
        scores: Rows = [[*map(sum, zip(*rows))] for rows in sums]
        for template in self._wide:
            for t, _, weights in self._present(template, reading):
                row = scores[t]
                for label, weight in self._weights(weights):
                    row[label] += weight
        return scores

    def _present(
        self, template: WeightedTemplate, reading: Reading
    ) -> Iterator[tuple[int, str, str]]:
        """Yield words, and values and weights of a template's features there."""
        n = len(reading.positions)
        columns = []
        for number, offset, is_place in template.reads:
            column, start = reading.columns[number], self._margin + offset
            if is_place:
                start += n if offset < 0 else -1
            columns.append([column[start]] * n if is_place else column[start:][:n])
        rows = map("\t".join, zip(*columns)) if columns else [""] * n
        for t, text in enumerate(rows):
            if text in template.weights:
                yield t, text, template.weights[text]

    def named(self, reading: Reading, word: int) -> Iterator[tuple[str, Weights]]:
        """Yield names of features at a word, and the weights of labels."""
        for template in (*self._near, *self._wide):
            for t, values, weights in self._present(template, reading):
                if t == word:
                    shown = "=" + values.replace("\t", "|").replace(" ", "") if values else ""
                    yield template.name + shown, self._weights(weights)

    def pairs(self, reading: Reading) -> list[PairTable]:
        """Return the scores of label pairs at each word."""
        present: list[tuple[str, ...]] = [()] * len(reading.positions)
        for template in self._bigrams:
            for t, _, weights in self._present(template, reading):
                present[t] += (weights,)
        return [*map(self._pairs_of, present)]

    def _sum_pairs(self, present: tuple[str, ...]) -> PairTable:
        """Sum the weights of label pairs of features."""
        table = [[*row] for row in self._model["valid"]]
        for weights in present:
            for pair, weight in self._weights(weights):
                table[pair // self._n_labels][pair % self._n_labels] += weight
        return PairTable(table)


# Labels


@dataclass
class Chain:
    """The distribution of the labels of a sequence, by a scaled recursion (Rabiner 1989, V.A).

    scores: [T, Y] of words; pairs: of label pairs at each word.
    """

    scores: Rows
    pairs: Sequence[PairTable]

    def labels(self) -> list[int]:
        """Find the most probable labels: argmax_y sum_t scores[t, y_t] + pairs[t, y_{t-1}, y_t].

        The lowest label wins a tie, of the last word first (Viterbi).
        """
        best: Rows = []
        for scores, pairs in zip(self.scores, self.pairs):
            ahead = best[-1] if best else []
            tops = [max(map(add, ahead, column)) for column in pairs.columns if best]
            best.append([*map(add, scores, tops or pairs.rows[-1])])
        path = [x.index(max(x)) for x in best[-1:]]
        for ahead, pairs in zip(best[-2::-1], self.pairs[:0:-1]):
            steps = [*map(add, ahead, pairs.columns[path[-1]])]
            path.append(steps.index(max(steps)))
        return path[::-1]

    def tracking(self, bits: Sequence[Sequence[int]], m: int) -> "Chain":
        """Return the chain in which repetitions of names cost `REPEATED`.

        State y * m + subset is a label and the names begun.
        bits: [Y + 1, Y], names that a step begins, as bit sets; m: number of bit sets.
        """
        states = [*product(range(len(bits[-1])), range(m))]

        def expanded(rows: Rows) -> Iterator[list[float]]:
            for previous, begun in [*states, (-1, 0)]:
                costs = [REPEATED * bool(begun & bit) for bit in bits[previous]]
                goals = [begun | bit for bit in bits[previous]]
                row = [*map(sub, rows[previous], costs)]
                yield [row[y] if subset == goals[y] else NEVER for y, subset in states]

        tables = {pairs: PairTable([*expanded(pairs.rows)]) for pairs in {*self.pairs}}
        scores = [[score for score in row for _ in range(m)] for row in self.scores]
        return Chain(scores, [tables[pairs] for pairs in self.pairs])

    def marginals(self) -> Rows:
        """Compute p(y_t = y | x): [T, Y]."""
        alphas, betas, _ = self._sums
        return [[*map(mul, a, b)] for a, b in zip(alphas, betas)]

    def probability(self, begin: int, labels: Sequence[int]) -> float:
        """Compute the probability that the words from `begin` have some labels."""
        alphas, betas, powers = self._sums
        p = alphas[begin][labels[0]]
        for t, (previous, y) in enumerate(pairwise(labels), begin + 1):
            p *= self.pairs[t].powers[previous][y] * powers[t][y]
        return p * betas[begin + len(labels) - 1][labels[-1]]

    @cached_property
    def _sums(self) -> tuple[Rows, Rows, Rows]:
        """Sums over paths up to each word, and behind it; exp(scores) by which they are scaled."""
        alphas: Rows = []
        powers = []
        for scores, pairs in zip(self.scores, self.pairs):
            top = max(scores)
            power = [math.exp(x - top) for x in scores]
            ahead = alphas[-1] if alphas else []
            sums = [sum(map(mul, ahead, column)) for column in pairs.power_columns if alphas]
            alpha = [*map(mul, power, sums or pairs.powers[-1])]
            norm = sum(alpha)
            alphas.append([x / norm for x in alpha])
            powers.append([x / norm for x in power])
        betas = [[1.0] * len(row) for row in powers[-1:]]
        for power, pairs in zip(powers[:0:-1], self.pairs[:0:-1]):
            behind = [*map(mul, power, betas[-1])]
            betas.append([sum(map(mul, row, behind)) for row in pairs.powers[:-1]])
        return alphas, betas[::-1], powers


class Model:
    """A model of model.json.

    source: its path, or its contents. RAISES: ValueError for other data.
    """

    def __init__(self, source: str | Path | bytes) -> None:
        data = source if isinstance(source, bytes) else Path(source).read_bytes()
        head, _, body = data.partition(b"\n")
        if head != HEAD % hashlib.sha256(body).hexdigest().encode():
            reason = "This is no model of `export --format portable`, it is cut off or damaged, or"
            raise ValueError(f"{reason} of another version: copy it again, with its crf.py.")
        self.fields: Fields = json.loads(data)
        self.labels: list[str] = self.fields["labels"]
        self._tokenizer = Tokenizer(self.fields["tokenizer"])
        self._features = Features(self.fields)

    def __call__(self, text: str) -> Labelled:
        """Label a text. RAISES: ValueError for anything but a text of whole characters."""
        reading = self._read(text)
        tokens = [token._replace(label=self.fields["blank"]) for token in reading.tokens]
        chain = self._chain(reading)
        path = self._path(chain)
        spans = []
        for begin, end, kind in self._spans(path):
            labels, longer = path[begin:end], self.fields["longer"].get(kind)
            score = chain.probability(begin, labels)
            if longer is not None and end < len(path):
                score = max(score - chain.probability(begin, [*labels, longer]), 0.0)
            if score < self.fields["thresholds"][kind]:
                path[begin:end] = [0] * len(labels)
                continue
            start = tokens[reading.positions[begin]].start
            stop = tokens[reading.positions[end - 1]].end
            spans.append(TextSpan(start, stop, label=kind, text=text[start:stop], score=score))
        for t, y, p in zip(reading.positions, path, chain.marginals()):
            label = y if p[y] >= self.fields["least"][y] else 0
            tokens[t] = tokens[t]._replace(label=self.labels[label], probability=p[label])
        return Labelled(tokens, spans)

    def explain(self, text: str, token: int) -> list[tuple[str, dict[str, float]]]:
        """Return the features of a token and their weights by label, the strongest first.

        RAISES: ValueError for a blank.
        """
        reading = self._read(text)
        features = self._features.named(reading, reading.positions.index(token))
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
        masks = [(t, self.fields["begins"]) for t in reading.apart]
        for t, mask in [*masks, (-1, self.fields["ends"])] if scores else ():
            scores[t] = [*map(add, scores[t], mask)]
        return Chain(scores, self._features.pairs(reading))

    def _path(self, chain: Chain) -> list[int]:
        """Find the best labels, with the weight of the outside label, and names at most once."""
        begun, weight = self.fields["once"], self.fields["outside_weight"]
        chain = Chain([[row[0] + weight, *row[1:]] for row in chain.scores], chain.pairs)
        path, m = chain.labels(), 1
        tracked: dict[str, int] = {}
        while begun and 2 * m * len(self.labels) <= MOST_STATES:
            steps = [begun[previous][y] for previous, y in pairwise((-1, *path))]
            again = [x for k, x in enumerate(steps) if x in {*steps[:k]} - {"", *tracked}]
            if not again:
                break
            tracked[again[0]] = m
            m *= 2
            bits = [[tracked.get(name, 0) for name in row] for row in begun]
            path = [state // m for state in chain.tracking(bits, m).labels()]
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
    model = Model(Path(__file__).with_name("model.json"))
    with fileinput.input(mode="rb") as lines:
        for line in lines:
            text = line.decode().rstrip("\r\n")
            print(json.dumps({"text": text, **model(text)._asdict()}))
