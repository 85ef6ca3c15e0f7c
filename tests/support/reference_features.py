"""Reference features, with Python integers, one token at a time, read from spaCy's Token."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import chain, groupby, product

from spacy.strings import get_string_id
from spacy.tokens import Doc, Token

from spacy_sparsecrf.portable import ATTRIBUTES, ngrams, runs_elsewhere

MASK = 2**64 - 1
NOT_ZERO = 0x165667B19E3779F9
UNSEEN = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff" + "".join(
    map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x2070)])
)
Value = str | int
Part = tuple[int, str, str]


def mix(x: int) -> int:
    """Apply the finaliser of MurmurHash3, on 64 bits."""
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & MASK
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return x ^ x >> 33


def before(distance: int) -> int:
    """Return the value of a token at this distance before the sequence."""
    return mix(0x9E3779B97F4A7C15 ^ distance)


def after(distance: int) -> int:
    """Return the value of a token at this distance after the sequence."""
    return mix(0xC2B2AE3D27D4EB4F ^ distance)


def hash_values(key: str, *values: Value) -> int:
    """Return the hash of a template, by its canonical text, for values of its parts."""
    h = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")
    numbers = [get_string_id(v) if isinstance(v, str) else int(v) for v in values]
    if not numbers:
        return mix(h) or NOT_ZERO
    for number in numbers:
        if number == 0:
            return 0
        h = mix(h ^ number)
    return h or NOT_ZERO


TEST = re.compile(r"""(\w+)(?:\((.*?)\))?\[([+-]?\d+)\](?:\||$)""")


def parse(template: str) -> tuple[str, list[Part]]:
    """Return canonical text and sorted parts (offset, attribute, argument) of a template.

    The template is canonical except for the order of its parts.
    """
    parts = []
    for name, argument, offset in TEST.findall(template.partition(":")[2]):
        parts.append((int(offset), name, argument))
    parts.sort(key=lambda part: (*part[:2], int("0" + re.findall("^[0-9]*", part[2])[0]), part[2]))
    texts = [f"{name}({given})[{o}]" if given else f"{name}[{o}]" for o, name, given in parts]
    return "|".join(texts), parts


def read_all(token: Token, name: str, argument: str) -> list[Value]:
    """Return the values of an attribute of a token, padded with 0 to the maximum number."""
    if name != "ngrams":
        return [read(token, name, argument)]
    low, high, *marks = argument.split(",")
    begin, end = "".join(marks).strip('"') or ("", "")
    texts = (
        ngrams(x, int(low), int(high), begin=begin, end=end).split("\n")
        for x in (seen(token.text), "abcdefghijklmnopqrst")
    )
    values: list[Value] = [*filter(None, next(texts))]
    most = len(next(texts))
    return values + [0] * (most - len(values))


def read(token: Token, name: str, argument: str) -> Value:
    """Return the value of an attribute of a token, from spaCy's Token if it has the attribute."""
    if name.startswith("doc_"):
        return elsewhere(token, name)
    text = seen(token.text)
    lexeme = token.vocab[text]
    if name in ("prefix", "suffix"):
        n = int(argument)
        return "" if n > len(text) else text[:n] if name == "prefix" else text[-n:]
    if name in ("regex", "match"):
        value = ATTRIBUTES[name](text, argument[1:-1].replace('\\"', '"'))
        return value if name == "match" else int(value or 0)
    if name in ("casefold", "fold"):
        decomposed = unicodedata.normalize("NFKD", text) if name == "fold" else text
        return "".join(
            x for x in decomposed if name != "fold" or not unicodedata.combining(x)
        ).casefold()
    if name == "short_shape":
        return "".join(x for x, _ in groupby(lexeme.shape_))
    if name == "length":
        return len(text)
    if name in ("has_digit", "has_upper"):
        return int(any(map(str.isdigit if name == "has_digit" else str.isupper, text)))
    if name == "has_hyphen":
        return int(any(char in "-\u2010\u2011" for char in text))
    if name == "ent_iob":
        return int(token.ent_iob)
    if name == "glued":
        rest = token.doc[token.i + 1 :]
        return int(not token.whitespace_ and len(rest) > 0 and is_word(rest[0]))
    if name == "break":
        return min(breaks_before(token), 2)
    if name.startswith(("is_", "like_")):
        return int(getattr(lexeme, name))
    if name in ("lower", "shape"):
        return str(getattr(lexeme, f"{name}_"))
    if name == "morph":
        return str(token.morph) or ("_" if token.has_morph() else "")
    return str(text if name == "orth" else getattr(token, f"{name}_"))


def elsewhere(token: Token, name: str) -> Value:
    """Return the value of an attribute of the word's other occurrences in the Doc."""
    words = [*filter(is_word, token.doc)]
    before = [".", *(word.text for word in words[:-1])]
    pairs = [*zip(before, words, strict=True)]
    begins = [mark in tuple(".!?…") or breaks_before(word) > 1 for mark, word in pairs]
    capital = [word.text != word.lower_ for word in words] + [False]
    goes_on = [False] * (len(words) + 1)
    for i in range(1, len(words)):
        quoted = before[i] in tuple(":¿¡-–—•*'\"“«")
        goes_on[i] = capital[i] and not begins[i] and not quoted
    others = [i for i, w in enumerate(words) if w.lower_ == token.lower_ and w.i != token.i]
    if sum(begins) < 2 or not others:
        return 0
    if name == "doc_title":
        return int(any(goes_on[i] for i in others))
    if name in ("doc_left", "doc_right"):
        step = 0 if name == "doc_left" else 2
        neighbours = ["", *(word.lower_ for word in words), ""]
        counts = Counter(neighbours[i + step] for i in others)
        return min(counts, key=lambda text: (-counts[text], get_string_id(text)))
    if token.text == token.lower_:
        return 0
    if name == "doc_lower":
        return int(not all(capital[i] for i in others))
    breaks = [breaks_before(word) for word in words]
    runs = runs_elsewhere([(word.text, word.idx) for word in words], breaks)
    return [*runs][words.index(token)]


def hash_sequence(tokens: Sequence[Token], template: str) -> list[list[int]]:
    """Return the hashes of a template at each token, of all combinations of its values."""
    key, parts = parse(template)
    hashes = []
    for t in range(len(tokens)):
        of_parts: list[list[Value]] = []
        for offset, name, argument in parts:
            at = t + offset
            inside = 0 <= at < len(tokens)
            values = read_all(tokens[at if inside else t], name, argument)
            if not inside:
                outside = before(-at) if at < 0 else after(at - len(tokens) + 1)
                values = [outside, *[0] * (len(values) - 1)]
            of_parts.append(values)
        hashes.append([hash_values(key, *values) for values in product(*of_parts)])
    return hashes


def seen(text: str) -> str:
    """Return a text without the characters that have no width, composed."""
    return unicodedata.normalize("NFC", "".join(char for char in text if char not in UNSEEN))


def is_word(token: Token) -> bool:
    """Return whether a token has anything but white space."""
    return seen(token.text).strip() != ""


def breaks_before(token: Token) -> int:
    """Return the number of line breaks between a word and the word before; 0 without one."""
    breaks, i = 0, token.i
    while i > 0:
        i -= 1
        if is_word(token.doc[i]):
            return breaks
        text = seen(token.doc[i].text).replace("\r\n", "\n")
        breaks += sum(char in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029" for char in text)
    return 0


def hash_docs(docs: Sequence[Doc], templates: Sequence[str]) -> list[list[int]]:
    """Return hashes [N][P] of the words of Docs, split into sentences if they have boundaries."""
    rows: list[list[int]] = []
    for doc in docs:
        for sequence in doc.sents if doc.has_annotation("SENT_START") else [doc[:]]:
            words = [*filter(is_word, sequence)]
            columns = [hash_sequence(words, template) for template in templates]
            rows.extend([*chain(*row)] for row in zip(*columns, strict=True))
    return rows
