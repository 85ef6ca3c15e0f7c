"""What each attribute reads: golden values, and difficult tokens."""

import pytest
import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.features.attributes import CLUSTER, NAMES, NGRAMS, TOKEN, VALUE
from spacy_sparsecrf.features.featurizer import Featurizer

from .feature_cases import SENTENCE, column
from .reference_features import after, before, hash_values

# Without numba's compiler 64-bit products are numpy scalars, which warn when they wrap around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

GOLDEN: dict[str, list[str | int]] = {
    "orth[0]": ["Ms.", "Straße", "sold", "12", "e-mails", "!"],
    "lower[0]": ["ms.", "straße", "sold", "12", "e-mails", "!"],
    "norm[0]": ["ms.", "straße", "sold", "12", "e-mails", "!"],
    "casefold[0]": ["ms.", "strasse", "sold", "12", "e-mails", "!"],
    "fold[0]": ["ms.", "strasse", "sold", "12", "e-mails", "!"],
    "short_shape[0]": ["Xx.", "Xx", "x", "d", "x-x", "!"],
    "shape[0]": ["Xx.", "Xxxxx", "xxxx", "dd", "x-xxxx", "!"],
    "length[0]": [3, 6, 4, 2, 7, 1],
    "prefix(2)[0]": ["Ms", "St", "so", "12", "e-", 0],
    "suffix(3)[0]": ["Ms.", "aße", "old", 0, "ils", 0],
    "is_alpha[0]": [0, 1, 1, 0, 0, 0],
    "is_ascii[0]": [1, 0, 1, 1, 1, 1],
    "is_digit[0]": [0, 0, 0, 1, 0, 0],
    "is_lower[0]": [0, 0, 1, 0, 1, 0],
    "is_upper[0]": [0, 0, 0, 0, 0, 0],
    "is_title[0]": [1, 1, 0, 0, 0, 0],
    "is_punct[0]": [0, 0, 0, 0, 0, 1],
    "is_space[0]": [0, 0, 0, 0, 0, 0],
    "like_num[0]": [0, 0, 0, 1, 0, 0],
    "like_url[0]": [0, 0, 0, 0, 0, 0],
    "like_email[0]": [0, 0, 0, 0, 0, 0],
    "has_digit[0]": [0, 0, 0, 1, 0, 0],
    "has_hyphen[0]": [0, 0, 0, 0, 1, 0],
    "has_upper[0]": [1, 1, 0, 0, 0, 0],
    'regex("^[[:upper:]]")[0]': [1, 1, 0, 0, 0, 0],
    'match("[a-z]+")[0]': ["s", "tra", "sold", 0, "e", 0],
    "glued[0]": [0, 0, 0, 0, 0, 0],
    "lower[-2]": [before(2), before(1), "ms.", "straße", "sold", "12"],
    "lower[1]": ["straße", "sold", "12", "e-mails", "!", after(1)],
    "is_title[-1]": [before(1), 1, 1, 0, 0, 0],
    "is_title[2]": [0, 0, 0, 0, after(1), after(2)],
}


@pytest.mark.parametrize("key", GOLDEN)
def test_golden(vocab: Vocab, key: str) -> None:
    expected = [hash_values(key, value) for value in GOLDEN[key]]
    assert column(vocab, SENTENCE, f"u:{key}") == expected


def test_glued_is_true_between_tokens_without_white_space(vocab: Vocab) -> None:
    first = Doc(vocab, words=["do", "n't", "stop", "!"], spaces=[False, True, False, False])
    second = Doc(vocab, words=["a", "b"], spaces=[True, True])
    hashes = Featurizer(["u:glued[0]"])([first, second]).hashes[:, 0]
    assert (hashes != 0).tolist() == [True, False, True, False, False, False]


def test_every_attribute_is_in_a_golden_test() -> None:
    tested = {key.partition("(")[0].partition("[")[0] for key in GOLDEN}
    assert tested | set(UPSTREAM) | {NGRAMS, CLUSTER, VALUE, *TOKEN} == set(NAMES)


def test_hashes_are_frozen(vocab: Vocab) -> None:
    # Models hold these numbers: to change them is to break every saved model.
    doc = Doc(vocab, words=["Ms.", "Straße"])
    templates = ["b:", "u:lower[0]", "u:suffix(3)[0]|is_title[1]", "u:lower[-1]"]
    assert Featurizer(templates)([doc]).hashes.tolist() == FROZEN


FROZEN = [
    [
        0x136C530E4029FFF4,
        0x878B6E386CE99853,
        0x6E0A35F1B338C47B,
        0x15C0091A9F3EF292,
    ],
    [
        0x136C530E4029FFF4,
        0x0BE7CA566EE2D9CA,
        0xC5A7442FD2DE85CD,
        0xA9D972C2157FD9DC,
    ],
]

UPSTREAM: dict[str, list[str | int]] = {
    "tag": ["PRP", "VB", 0],
    "pos": ["PRON", "VERB", 0],
    "morph": ["Number=Sing|Person=3", "_", "_"],  # Doc sets "_" where it gets ""
    "lemma": ["she", "go", 0],
    "dep": ["nsubj", "ROOT", "mydep"],
    "ent_type": ["PERSON", 0, 0],
    "ent_iob": [3, 2, 2],
}


@pytest.mark.parametrize("name", UPSTREAM)
def test_golden_of_annotations(name: str) -> None:
    doc = Doc(
        spacy.blank("en").vocab,
        words=["She", "went", "home"],
        tags=["PRP", "VB", ""],
        pos=["PRON", "VERB", ""],
        morphs=["Person=3|Number=Sing", "_", ""],
        lemmas=["she", "go", ""],
        heads=[1, 1, 1],
        deps=["nsubj", "ROOT", "mydep"],
        ents=["B-PERSON", "O", "O"],
    )
    expected = [hash_values(f"{name}[0]", value) for value in UPSTREAM[name]]
    assert Featurizer([f"u:{name}[0]"])([doc]).hashes[:, 0].tolist() == expected


def test_annotations_that_are_not_set(vocab: Vocab) -> None:
    doc = Doc(vocab, words=["She", "went"])
    templates = [f"u:{name}[0]" for name in UPSTREAM]
    assert not Featurizer(templates)([doc]).hashes.any()


@pytest.mark.usefixtures("exceptions_of_the_tokenizer")
def test_norm_is_that_of_the_token() -> None:
    doc = spacy.blank("en")("can't")
    hashes = Featurizer(["u:norm[0]"])([doc]).hashes[:, 0].tolist()
    assert hashes == [hash_values("norm[0]", value) for value in ("can", "not")]


def test_like_num_is_the_language_s_own() -> None:
    vocabs = [spacy.blank(lang).vocab for lang in ("en", "fr")]
    english, french = (Doc(vocab, words=["deux", "two"]) for vocab in vocabs)
    present = Featurizer(["u:like_num[0]"])([english, french, english]).hashes[:, 0] != 0
    assert present.tolist() == [False, True, True, False, False, True]


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("é", "prefix(1)[0]", "é"),
        ("e\u0301", "prefix(1)[0]", "e"),
        ("e\u0301", "suffix(1)[0]", "\u0301"),
        ("ß", "lower[0]", "ß"),
        ("ẞ", "lower[0]", "ß"),
        ("ß", "prefix(2)[0]", 0),
        ("İ", "lower[0]", "i\u0307"),
        ("İ", "prefix(2)[0]", 0),
        ("İ", "length[0]", 1),
        ("😀", "prefix(1)[0]", "😀"),
        ("😀", "prefix(2)[0]", 0),
        ("a😀b", "suffix(2)[0]", "😀b"),
        ("a\u2011b", "has_hyphen[0]", 1),
        ("a\u2014b", "has_hyphen[0]", 0),
        ("٣", "is_digit[0]", 1),
        ("NOUN", "orth[0]", "NOUN"),
        ("\n\n", "is_space[0]", 1),
        ("http://example.com", "like_url[0]", 1),
        ("a.b@example.com", "like_email[0]", 1),
        ("USA", "is_upper[0]", 1),
        ("ẞ", "casefold[0]", "ss"),
        ("Éte\u0301", "fold[0]", "ete"),
        ("İ", "fold[0]", "i"),
        ("ﬁ", "fold[0]", "fi"),
        ("हिन्दी", "fold[0]", "हिनदी"),
        ("\u0301", "fold[0]", 0),
        ("AAA-bb..", "short_shape[0]", "X-x."),
        ("Aé1", "short_shape[0]", "Xxd"),
    ],
)
def test_characters(vocab: Vocab, word: str, key: str, value: str | int) -> None:
    assert column(vocab, [word], f"u:{key}") == [hash_values(key, value)]
