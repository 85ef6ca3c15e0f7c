"""Stages and parents of templates and their features."""

import itertools

import numpy as np
import pytest
from spacy.tokens import Doc

from spacy_sparsecrf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.corpus.schedule import REQUIRE, Stage
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.features.template_hierarchy import TemplateHierarchy, TemplateTreeRecord
from spacy_sparsecrf.features.templates import parse_templates

from ..toy import ENGLISH

TEMPLATES = ["b:", "u:lower[0]", "*:lower[-1]", "b:lower[0]", "u:ngrams(1,2)[0]"]
TEMPLATES += ["*:lower[-1]|lower[0]", "u:ngrams(1,2)[0]|lower[-1]", "u:lower[-1]|lower[0]|lower[1]"]
STAGES = [
    Stage(("b:", "u:lower[0]", "*:lower[-1]")),
    Stage(("b:lower[0]", "u:ngrams(1,2)[0]", "*:lower[-1]|lower[0]")),
    Stage(("*",)),
]


def lineage_of(templates: list[str], *stages: Stage) -> TemplateHierarchy:
    return TemplateHierarchy.of(parse_templates(templates), templates, stages)


def named(lineage: TemplateHierarchy, templates: list[str]) -> list[tuple[int, list[str]]]:
    """Return stages, and parents by their texts."""
    texts = [str(template) for template in parse_templates(templates)]
    both = zip(lineage.stages, lineage.parents, strict=True)
    return [(stage, sorted(texts[t] for t in parents)) for stage, parents in both]


def test_parents_are_the_largest_parts_in_stages_before():
    assert named(lineage_of(TEMPLATES, *STAGES), TEMPLATES) == [
        (0, []),
        (0, []),
        (0, []),
        (1, ["u:lower[0]"]),  # The same attribute, with another type.
        (1, []),
        (1, ["*:lower[-1]", "u:lower[0]"]),
        (2, ["*:lower[-1]", "u:ngrams(1,2)[0]"]),
        (2, ["*:lower[-1]|lower[0]"]),
    ]


def test_templates_of_one_stage_are_no_parents():
    stages = Stage(("u:lower[0]",)), Stage(("*",))
    templates = ["u:lower[0]", "u:lower[-1]|lower[0]", "u:lower[-1]|lower[0]|lower[1]"]
    parents = [parents for _, parents in named(lineage_of(templates, *stages), templates)]
    assert parents == [[], ["u:lower[0]"], ["u:lower[0]"]]


def test_families_name_their_windows_and_the_first_stage_counts():
    stages = [Stage((f"*:ngrm({n}, lower)",)) for n in (1, 3, 5)]
    templates = ["*:ngrm(5, lower)"]
    three = "*:lower[-1]|lower[0]|lower[1]"
    assert named(lineage_of(templates, *stages), templates) == [
        (0, []),
        (0, []),
        (1, ["*:lower[0]"]),
        (2, [three]),
    ]


def test_a_pattern_names_templates_however_they_are_written():
    templates = ["u: lower[0] | lower[-1]", "b:lower[0]", "u:suffix(3)[0]"]
    for pattern, expected in [
        ("u:lower[-1]|lower[0]", [0, 1, 1]),
        ("u:lower[0]|lower[-1]", [0, 1, 1]),
        ("*:lower[0]", [1, 0, 1]),
        ("u:*", [0, 1, 0]),
        ("*lower*", [0, 0, 1]),
        ("u: lower [0] |*", [0, 1, 1]),
    ]:
        lineage = lineage_of(templates, Stage((pattern,)), Stage(("*",)))
        assert list(lineage.stages) == expected, pattern


def test_declared_parents_take_the_place_of_derived_ones():
    both, three = "u:lower[-1]|lower[0]", "u:lower[-1]|lower[0]|lower[1]"
    templates = ["u:lower[0]", "u:lower[1]", both, three]
    parents = {three: ("u:lower[0]",), both: ()}
    stages = Stage(("u:lower[0]", "u:lower[1]")), Stage(("*",), parents=parents)
    found = named(lineage_of(templates, *stages), templates)
    assert found[2:] == [(1, []), (1, ["u:lower[0]"])]
    derived = named(lineage_of(templates, stages[0], Stage(("*",))), templates)
    assert derived[2:] == [(1, ["u:lower[0]"]), (1, ["u:lower[0]", "u:lower[1]"])]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([Stage(("u:lower[9]",))], r"SC330.*Stage 1 .*'u:lower\[9\]'.*: b:, u:lower\[0\]"),
        ([Stage(("*",), parents={"u:tag[0]": ()})], r"SC330.*Stage 1 .*u:tag"),
        ([Stage(("*",), parents={"b:": ("u:tag[0]",)})], r"SC330.*Stage 1 .*u:tag"),
        ([Stage(("b:",))], r"SC331.*templates u:lower\[0\], u:lower\[-1\]\|lower\[0\]\."),
        ([Stage(("*",)), Stage(("b:",))], "SC335.*Stage 2 "),
        ([Stage(()), Stage(("*",))], "SC335.*Stage 1 "),
        (
            [Stage(("b:",)), Stage(("*",), parents={"u:lower[-1]*": ("u:lower[0]",)})],
            r"SC332.*Stage 2 .*u:lower\[0\] cannot.*not of a stage before, but of stage 2",
        ),
        (
            [Stage(("b:",)), Stage(("*",), parents={"u:lower[0]": ("u:lower[0]",)})],
            r"SC332.*u:lower\[0\] cannot be a parent of u:lower\[0\]: it is not of a stage before",
        ),
        (
            [Stage(("u:lower[-1]*",)), Stage(("*",), parents={"b:": ("u:lower[-1]*",)})],
            r"SC332.*reads lower\[-1\], lower\[0\], which b: does not",
        ),
    ],
)
def test_schedules_that_cannot_be_followed_are_refused(stages, message):
    with pytest.raises(SparseCRFError, match=message):
        lineage_of(["b:", "u:lower[0]", "u:lower[-1]|lower[0]"], *stages)


def values(words: list[str], t: int, attribute: str) -> list[object]:
    """Return the values of an attribute at a position, which may be outside the sequence."""
    if not 0 <= t < len(words):
        return [t if t < 0 else t - len(words) + 1]
    if attribute == "lower":
        return [words[t]]
    word = words[t]
    return sorted({word[i : i + n] for n in (1, 2) for i in range(len(word) - n + 1)})


def spelt_out(template, words: list[str], t: int) -> list[frozenset[object]]:
    """Return the features of a template at a token, as explicit sets of values."""
    of_parts = [
        [(read.name, offset, value) for value in values(words, t + offset, read.name)]
        for offset, read in ((part.offset, part.read) for part in template.attributes)
    ]
    return [frozenset(chosen) for chosen in itertools.product(*of_parts)]


class Reference:
    """Reference for admission, with explicit feature values instead of hashes."""

    def __init__(self, templates, lineage, sequences):
        self.tests = {}  # (type, feature): stage, parents
        for words in sequences:
            for t, i in itertools.product(range(len(words)), range(len(templates))):
                parents = [templates[p] for p in lineage.parents[i]]
                for test in spelt_out(templates[i], words, t):
                    spelt = itertools.chain(*(spelt_out(parent, words, t) for parent in parents))
                    of_test = {found for found in spelt if found <= test}
                    for kind in templates[i].kinds:
                        self.tests[kind, test] = lineage.stages[i], of_test

    def admitted(self, stage, require, active):
        blocks = {test for _, test in active}
        enough = {"all": all, "any": lambda met: any(met) or not met, "none": lambda met: True}
        return {
            named
            for named, (own, parents) in self.tests.items()
            if own == stage and enough[require]([parent in blocks for parent in parents])
        }


def hashes_of(features, docs, templates) -> dict[tuple[str, frozenset], int]:
    """Return the hash of each feature, if it is the only unknown hash of its template there."""
    columns = features.plan.owners
    found = {}
    for doc in docs:
        words = [token.lower_ for token in doc]
        hashes = features([doc], "docs").hashes
        for t, (i, template) in itertools.product(range(len(words)), enumerate(templates)):
            here = sorted(set(hashes[t, columns == i].tolist()) - {0})
            tests = spelt_out(template, words, t)
            assert len(here) == len(tests)
            if len(tests) == 1:
                found.update({(kind, tests[0]): here[0] for kind in template.kinds})
    return found


def corpus_and_tree(features, lineage, parts):
    """Return the corpus of parts, which are lists of Docs, and the tree of its features."""
    record, builder = TemplateTreeRecord(features, lineage), CorpusBuilder()
    for docs in parts:
        found = features(docs, "docs")
        record.add(found)
        builder.add(found, np.zeros(found.n_tokens, np.int32))
    corpus = builder.build()
    return corpus, record.tree(corpus)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("start_label", [True, False])
def test_admission_is_that_of_the_reference(seed, start_label):
    rng = np.random.default_rng(seed)
    # A word has one n-gram or several; hashes of several n-grams are not distinguished here.
    words = np.array(["a", "b", "c", "ab", "ba"])
    sequences = [rng.choice(words, n).tolist() for n in rng.integers(2, 5, 12)]
    docs = [Doc(ENGLISH, words=words) for words in sequences]
    features = Featurizer(TEMPLATES, start_label=start_label)
    lineage = TemplateHierarchy.of(features.parsed, TEMPLATES, STAGES)
    corpus, kin = corpus_and_tree(features, lineage, [docs[i : i + 3] for i in range(0, 12, 3)])
    reference = Reference(features.parsed, lineage, sequences)
    n_unigram = len(corpus.unigram_keys)
    keys = [("u", key) for key in corpus.unigram_keys.tolist()]
    keys += [("b", key) for key in corpus.bigram_keys.tolist()]
    number = {key: i for i, key in enumerate(keys)}
    in_words = hashes_of(features, docs, features.parsed)
    test_of = {test: number.get((test[0], key)) for test, key in in_words.items()}
    known = {test: i for test, i in test_of.items() if i is not None}
    assert len(known) > 0.6 * len(keys) > 0.6 * n_unigram > 0
    for stage, require in itertools.product(range(3), REQUIRE):
        chosen = [test for test in known if rng.random() < 0.4]
        active = np.array(sorted(known[test] for test in chosen), np.int64)
        expected = reference.admitted(stage, require, chosen)
        admitted, more = kin.admitted(stage, require, active, 1)
        admitted[more] = True
        # Features with indistinguishable parents are skipped.
        for test, i in known.items():
            if all(any((k, p) in known for k in "ub") for p in reference.tests[test][1]):
                assert admitted[i] == (test in expected), (stage, require, test)
        if require == "none":
            assert (admitted == (kin.stage == stage)).all()


def test_of_an_ngram_the_parent_is_the_same_ngram():
    templates = ["u:ngrams(1,1)[0]", "u:ngrams(1,1)[0]|lower[1]"]
    lineage = lineage_of(templates, Stage((templates[0],)), Stage(("*",)))
    doc = Doc(ENGLISH, words=["ab", "ba", "c"])
    _, kin = corpus_and_tree(Featurizer(templates), lineage, [[doc]])
    # a and b occur in two words, c in one; each of these five is conjoined with the next word.
    n_parents = np.diff(kin.parent_ptr)
    assert (n_parents[kin.stage == 1] == 1).all() and (kin.stage == 1).sum() == 5
    assert (n_parents[kin.stage == 0] == 0).all() and (kin.stage == 0).sum() == 3
    n_children = np.bincount(kin.parents, minlength=len(kin.stage))
    assert sorted(n_children[kin.stage == 0]) == [1, 2, 2]
    own, more = kin.admitted(1, "all", np.argmax(n_children)[None], 1)
    assert not own.any() and len(more) == 2
