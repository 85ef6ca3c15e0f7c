"""Bad input gives a coded error with a remedy, or correct results."""

from typing import Any

import pytest
import spacy
from confection import ConfigValidationError
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as loop
from spacy.util import load_config

from spacy_sparsecrf.errors import Errors, SparseCRFError, SparseCRFWarning, Warnings

from ..conftest import SHIPPED_CONFIG
from ..support.toy import accuracy, docs_of, examples_of, tags_of, train


def trained_on(nlp: Language, examples: list[Example]) -> Any:
    """Initialize and update three times; return the component."""
    train(nlp, examples, 3)
    return nlp.get_pipe("sparse_crf")


def test_one_label(nlp):
    examples = examples_of(nlp, [(["a", "b", "c"], ["X", "X", "X"])] * 3)
    pipe = trained_on(nlp, examples)
    assert pipe.update(examples)["sparse_crf"] == pytest.approx(0.0, abs=1e-9)
    assert tags_of([nlp("never seen before")]) == [["X", "X", "X"]]
    assert pipe.model.n_active == 0


def test_labels_that_occur_in_the_development_set_only(corpus, tmp_path):
    nlp = spacy.blank("xx")
    other = [Doc(nlp.vocab, words=["the", "new"], tags=["DT", "UNSEEN"])]
    DocBin(docs=other, attrs=["TAG"]).to_disk(tmp_path / "dev.spacy")
    config = load_config(SHIPPED_CONFIG, overrides=corpus.overrides)
    config["paths"]["dev"] = str(tmp_path / "dev.spacy")
    config["training"]["max_steps"] = 1
    with pytest.warns(SparseCRFWarning, match=r"SCW239.*UNSEEN \(1\)"):
        trained, _ = loop(init_nlp(config), tmp_path)
    assert "UNSEEN" not in trained.get_pipe("sparse_crf").labels
    assert spacy.load(tmp_path / "model-best").meta["performance"]["tag_acc"] == 0.5


def test_a_gold_label_outside_the_labels_given(nlp, corpus):
    pipe = nlp.get_pipe("sparse_crf")
    with pytest.raises(SparseCRFError, match=r"SC206.*'(IN|JJ)'.*DT, NN, VB.*The text begins"):
        pipe.initialize(lambda: examples_of(nlp, corpus.train), labels=["DT", "NN", "VB"])


def test_own_targets_and_features_of_another_length(nlp, corpus, monkeypatch):
    examples = examples_of(nlp, corpus.train)
    pipe = trained_on(nlp, examples)
    doc = examples[0].predicted
    monkeypatch.setattr(type(pipe.target), "gold", lambda self, example: ["DT", "DT"])
    with pytest.raises(SparseCRFError, match=f"SC226.*2 labels for a Doc of {len(doc)} tokens"):
        nlp.initialize(lambda: examples)
    monkeypatch.undo()
    full: Any = pipe.features

    class Doubled:
        start_label = full.start_label

        def __call__(self, docs: list[Doc], sequences: str) -> Any:
            return full([*docs, *docs], sequences)

    monkeypatch.setattr(pipe, "features", Doubled())
    for use in (lambda: pipe.predict([doc]), lambda: nlp.initialize(lambda: examples)):
        with pytest.raises(SparseCRFError, match="SC227.*rows for Docs of"):
            use()


@pytest.mark.parametrize("label", ["-", "a b", "naïve", "标签", "x" * 1000, "\n", "NOUN", "ORTH"])
def test_any_string_is_a_label(nlp, label, tmp_path):
    trained_on(nlp, examples_of(nlp, [(["a", "b"], [label, "X"])] * 5))
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert tags_of([loaded(Doc(loaded.vocab, words=["a", "b"]))]) == [[label, "X"]]


@pytest.mark.parametrize(
    "words", [[], [" "], ["\n", "\n\n", "\t"], ["a" * 100_000], ["\x00", "🦜"]]
)
def test_odd_docs_train_and_predict(nlp, corpus, words):
    odd = Doc(nlp.vocab, words=words, tags=["DT"] * len(words))
    plain = Doc(nlp.vocab, words=words)
    examples = [*examples_of(nlp, corpus.train), Example(plain.copy(), odd)]
    trained_on(nlp, examples)
    assert accuracy(nlp, corpus.dev) > 0.9
    docs = [Doc(nlp.vocab), plain, *docs_of(nlp, corpus.dev), Doc(nlp.vocab)]
    annotated = list(nlp.pipe(docs))
    assert [len(doc) for doc in annotated] == [len(doc) for doc in docs]
    assert all(bool(token.tag_) != token.is_space for doc in annotated for token in doc)


def test_updates_without_initialize_or_tokens_are_refused(nlp, corpus):
    with pytest.raises(SparseCRFError, match=r"SC202.*nlp\.initialize"):
        nlp.update(examples_of(nlp, corpus.dev))
    examples = [Example(Doc(nlp.vocab), Doc(nlp.vocab))] * 2
    with pytest.raises(SparseCRFError, match="SC203"):
        nlp.initialize(lambda: examples)
    assert len(nlp(Doc(nlp.vocab))) == 0
    assert list(nlp.pipe([])) == []


@pytest.mark.filterwarnings("ignore:.*SCW220")
def test_gold_words_without_spaces_between_them_are_warned_of(nlp, corpus):
    """Such words come from a DocBin written with `spaces=[False] * n`."""
    examples = examples_of(nlp, corpus.train[:2])
    for words, tags in corpus.train[5:30]:
        joined = Doc(nlp.vocab, words=["".join(words)])
        spaceless = Doc(nlp.vocab, words=words, tags=tags, spaces=[False] * len(words))
        examples.append(Example(joined, spaceless))
    n_missing, n_tokens = 25, 25 + sum(len(words) for words, _ in corpus.train[:2])
    with pytest.warns(SparseCRFWarning, match=f"SCW201.*{n_missing} of {n_tokens} training"):
        nlp.initialize(lambda: examples)
    assert nlp.update(examples[:1])["sparse_crf"] > 0


def test_partly_missing_gold_is_summed_over(nlp, corpus):
    sentences = [
        (words, [tag if (i + t) % 3 else "" for t, tag in enumerate(tags)])
        for i, (words, tags) in enumerate(corpus.train)
    ]
    pipe = trained_on(nlp, examples_of(nlp, sentences))
    assert pipe.labels == ("DT", "IN", "JJ", "NN", "VB")
    assert accuracy(nlp, corpus.dev) > 0.9


@pytest.mark.parametrize(
    ("key", "value", "where"),
    [
        ("l3", 1.0, "sparse_crf -> l3"),
        ("solver.histroy", 3, "sparse_crf.solver -> histroy"),
        ("features.template", [], "sparse_crf.features -> template"),
        ("target.attribute", "tag", "sparse_crf.target -> attribute"),
        ("l1", "much", "sparse_crf -> l1"),
    ],
)
def test_wrong_keys_and_types_in_the_config_are_located(key, value, where):
    config = load_config(SHIPPED_CONFIG, overrides={f"components.sparse_crf.{key}": value})
    with pytest.raises(ConfigValidationError, match=where):
        spacy.util.load_model_from_config(config, auto_fill=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nan", r"SC205\] \[components\.sparse_crf\] l1 = 'nan'"),
        ("-0.5", r"SC205\] \[components\.sparse_crf\] l1 = -0\.5"),
        # spaCy itself refuses non-JSON numbers, before the factory is called.
        ("NaN", "E961.*'l1': nan"),
        ("Infinity", "E961.*'l1': inf"),
        ("1e999", "E961.*'l1': inf"),
    ],
)
def test_penalties_in_a_config_file(tmp_path, value, message):
    text = SHIPPED_CONFIG.read_text(encoding="utf8").replace("l1 = 0.1", f"l1 = {value}")
    (tmp_path / "bad.cfg").write_text(text, encoding="utf8")
    with pytest.raises(ValueError, match=f"(?s){message}"):
        spacy.util.load_model_from_config(load_config(tmp_path / "bad.cfg"), auto_fill=True)


NO_EXAMPLES = [(list, "SC217"), (lambda: iter(()), "SC217")]
NO_EXAMPLES += [(lambda: ["text"], "SC216"), ([], "SC216"), (None, "SC216")]


@pytest.mark.parametrize(("get_examples", "code"), NO_EXAMPLES)
def test_examples_that_are_none(nlp, get_examples, code):
    with pytest.raises(SparseCRFError, match=code):
        nlp.get_pipe("sparse_crf").initialize(get_examples, nlp=nlp)


@pytest.mark.parametrize("messages", [Errors, Warnings])
def test_every_message_has_its_own_code_in_front(messages):
    codes = [code for code in dir(messages) if not code.startswith("_")]
    assert codes
    for code in codes:
        assert getattr(messages, code).startswith(f"[{code}] ")
