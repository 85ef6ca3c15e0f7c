"""Templates at the tokens of Docs: conjunctions, windows, vocabs, processes."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.registry import crf_features

from .feature_cases import EVERY_TEMPLATE, SENTENCE, column
from .reference_features import after, before, hash_docs, hash_values

# Without numba's compiler 64-bit products are numpy scalars, which warn when they wrap around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")


# Templates -----------------------------------------------------------------------------------


def test_conjunction(vocab: Vocab) -> None:
    key = "lower[-1]|is_title[0]"
    values = [(before(1), 1), ("ms.", 1), ("straße", 0), ("sold", 0), ("12", 0), ("e-mails", 0)]
    assert column(vocab, SENTENCE, f"u:{key}") == [hash_values(key, *pair) for pair in values]


def test_conjunction_over_both_ends(vocab: Vocab) -> None:
    key = "orth[-1]|orth[1]"
    assert column(vocab, ["only"], f"u:{key}") == [hash_values(key, before(1), after(1))]


def test_order_in_a_conjunction_does_not_matter(vocab: Vocab) -> None:
    assert column(vocab, SENTENCE, "u:lower[0]|orth[-1]") == column(
        vocab, SENTENCE, "u:orth[-1]|lower[0]"
    )


def test_window_wider_than_the_sentence(vocab: Vocab) -> None:
    key = "lower[-1000]"
    assert column(vocab, ["a", "b"], f"u:{key}") == [
        hash_values(key, before(1000)),
        hash_values(key, before(999)),
    ]


def test_windows_stop_at_sentence_bounds(vocab: Vocab) -> None:
    doc = Doc(vocab, words=["a", "b", "c"], sent_starts=[True, False, True])
    features = Featurizer(["u:lower[-1]", "u:lower[1]"])
    inside = features([doc], "sents")
    assert inside.offsets.tolist() == [0, 2, 3]
    assert inside.hashes[2].tolist() == [
        hash_values("lower[-1]", before(1)),
        hash_values("lower[1]", after(1)),
    ]
    across = features([doc], "docs")
    assert across.offsets.tolist() == [0, 3]
    assert across.hashes[2, 0] == hash_values("lower[-1]", "b")


def test_always_on(vocab: Vocab) -> None:
    assert column(vocab, ["a", " ", "b"], "b:") == [hash_values("")] * 3
    assert hash_values("") != 0


def test_columns_by_kind(vocab: Vocab) -> None:
    docs = [Doc(vocab, words=SENTENCE)]
    features = Featurizer(["b:", "u:orth[0]", "*:lower[0]", "u:shape[0]"], start_label=False)
    both = features(docs)
    assert both.unigram_columns.tolist() == [1, 2, 3]
    assert both.bigram_columns.tolist() == [0, 2]
    assert both.start_label is False
    dtypes = both.hashes.dtype, both.offsets.dtype, both.unigram_columns.dtype
    assert dtypes == (np.uint64, np.int64, np.int32)
    assert both.bigram_columns.dtype == np.int32
    apart = Featurizer(["b:lower[0]", "u:lower[0]"])(docs)
    assert apart.start_label is True
    np.testing.assert_array_equal(apart.hashes[:, 0], both.hashes[:, 2])
    np.testing.assert_array_equal(apart.hashes[:, 1], both.hashes[:, 2])


def test_position_in_the_list_does_not_matter(vocab: Vocab) -> None:
    docs = [Doc(vocab, words=SENTENCE)]
    forwards = Featurizer(EVERY_TEMPLATE)(docs).hashes
    backwards = Featurizer(EVERY_TEMPLATE[::-1])(docs).hashes
    # Tests of one template keep their order.
    np.testing.assert_array_equal(np.sort(forwards, axis=1), np.sort(backwards, axis=1))


def test_unknown_sequences(vocab: Vocab) -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC105\].*sequences = 'words'.*sents, docs"):
        Featurizer()([Doc(vocab, words=["a"])], "words")


def test_registered() -> None:
    assert crf_features.get("spacy_sparsecrf.Templates.v1") is Featurizer


# Difficult tokens ----------------------------------------------------------------------------


def test_long_token(vocab: Vocab) -> None:
    word = "Ab-1é" * 20_000
    docs = [Doc(vocab, words=["x", word])]
    assert Featurizer(EVERY_TEMPLATE)(docs).hashes.tolist() == hash_docs(docs, EVERY_TEMPLATE)
    assert column(vocab, [word], "u:suffix(5)[0]") == [hash_values("suffix(5)[0]", "Ab-1é")]


def test_whitespace(vocab: Vocab) -> None:
    docs = [Doc(vocab, words=[" ", "\n\n", "\t"]), spacy.blank("en")("   ")]
    assert Featurizer(EVERY_TEMPLATE)(docs).hashes.tolist() == hash_docs(docs, EVERY_TEMPLATE)


# Sameness ------------------------------------------------------------------------------------

SCRIPT = """
import sys
import spacy
from spacy_sparsecrf.features.featurizer import Featurizer
assert "numba" not in sys.modules
features = Featurizer()
assert "numba" not in sys.modules
observations = features([spacy.blank("en")("Ms. Straße sold 12 e-mails! 😀")])
print(observations.hashes.tolist())
"""


@pytest.mark.usefixtures("exceptions_of_the_tokenizer")
def test_same_in_every_process() -> None:
    outputs = set()
    for seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf8"}
        command = [sys.executable, "-c", SCRIPT]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.add(run.stdout)
    doc = spacy.blank("en")("Ms. Straße sold 12 e-mails! 😀")
    assert outputs == {f"{Featurizer()([doc]).hashes.tolist()}\n"}


def test_vocab_without_language() -> None:
    doc = Doc(Vocab(), words=["Ab-1", "x"])
    hashes = Featurizer(["u:lower[0]", "u:like_num[0]", "u:shape[0]"])([doc]).hashes
    assert hashes[0].tolist() == [
        hash_values("lower[0]", "ab-1"),
        0,
        hash_values("shape[0]", "Xx-d"),
    ]


def test_several_vocabs_in_one_call() -> None:
    vocabs = [spacy.blank(lang).vocab for lang in ("en", "en", "fr")]
    words = [["two", "dogs"], ["cats"], ["deux", "chats"], ["Été"], ["two", "deux"]]
    docs = [Doc(vocabs[i], words=words[k]) for k, i in enumerate((0, 1, 2, 2, 0))]
    docs.insert(2, Doc(vocabs[1]))
    together = Featurizer(EVERY_TEMPLATE)(docs)
    assert together.hashes.tolist() == hash_docs(docs, EVERY_TEMPLATE)
    assert together.offsets.tolist() == [0, 2, 3, 5, 6, 8]


def test_inside_a_memory_zone() -> None:
    nlp = spacy.blank("en")
    features = Featurizer()
    expected = Featurizer()([nlp.make_doc("A transient word")]).hashes
    for _ in range(2):
        with nlp.memory_zone():
            hashes = features([nlp.make_doc("A transient word")]).hashes
        np.testing.assert_array_equal(hashes, expected)


def test_pickle_leaves_the_words_behind(vocab: Vocab) -> None:
    features = Featurizer()
    before_use = pickle.dumps(features)
    features([Doc(vocab, words=SENTENCE)])
    assert pickle.dumps(features) == before_use


# Against the slow twin -----------------------------------------------------------------------

characters = st.characters(exclude_categories=["Cs"])
words = st.text(characters, min_size=1, max_size=6) | st.sampled_from([*SENTENCE, "NOUN", " "])
sentences = st.lists(words, max_size=8)


@settings(deadline=None)
@given(
    st.lists(st.tuples(sentences, st.randoms(use_true_random=False)), max_size=4),
    st.lists(st.sampled_from(EVERY_TEMPLATE), min_size=1, max_size=6, unique=True),
)
def test_equals_the_slow_twin(drawn: list[tuple[list[str], object]], templates: list[str]) -> None:
    vocab = TWIN_VOCAB
    docs = []
    for sentence, random in drawn:
        starts = [random.choice([True, False, None]) for _ in sentence]  # type: ignore[attr-defined]
        docs.append(Doc(vocab, words=sentence, sent_starts=starts))
    assert Featurizer(templates)(docs).hashes.tolist() == hash_docs(docs, templates)


TWIN_VOCAB = spacy.blank("en").vocab
