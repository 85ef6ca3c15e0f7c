"""Exported models label as the pipeline does, opened by the other programs.

python-crfsuite opens those of CRFsuite. For Wapiti and CRF++ there is a reference here, and the
programs themselves if they are on the PATH.
"""

import random
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, Token
from spacy.training import Example
from spacy.util import load_config

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.exporters import EXPORTERS
from spacy_sparsecrf.interop.exporting import export, sequences
from spacy_sparsecrf.interop.external_features import names_of
from spacy_sparsecrf.interop.external_models import TrainedModel, read_model
from spacy_sparsecrf.interop.importing import import_model, set_weights

from ..conftest import CONFIGS
from ..support.commands import run
from ..support.peers import PEERS, TESTS, crfsuite
from ..support.reference_patterns import crfpp_outside, expand, wapiti_outside
from ..support.sequences import make_xy
from ..support.toy import blank_with, make_sentences, train

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
PROGRAMS = ["CRFsuite", "Wapiti", "CRF++"]
Found = tuple[list[str], np.ndarray]  # labels of tokens, and probabilities of all labels
# Texts that separate columns, begin comments, patterns, values or escapes somewhere.
ODD = ["a b", "a\u00a0b", "a\tb", "a\nb", "x:y", "a\\b", "\\u0020", "#", "%x[0,0]", "_", "1,2"]
ODD += ["|=", "é\u2028", "\x1b", "__BOS__", "a\u3000{}", "u:_", "'\""]


def columns_of(path: Path) -> list[list[list[str]]]:
    blocks = Path(f"{path}.data").read_text(encoding="utf8").removesuffix("\n\n").split("\n\n")
    return [[line.split("\t") for line in block.split("\n")] for block in blocks]


def attribute(field: str) -> tuple[str, float]:
    """Return the name and the value in a field of CRFsuite."""
    name, value = re.fullmatch(r"((?:\\.|[^\\:])*):?(.*)", field).groups()
    return re.sub(r"\\(.)", r"\1", name), float(value or 1)


def by_crfsuite(path: Path) -> Found:
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    tagger, labels, shares = pycrfsuite.Tagger(), [], []
    tagger.open(str(path))
    for rows in columns_of(path):
        items = [dict(attribute(field) for field in row[1:]) for row in rows]
        tagger.set(pycrfsuite.ItemSequence(items))
        labels += tagger.tag()
        shares += [[tagger.marginal(y, t) for y in tagger.labels()] for t in range(len(rows))]
    return labels, np.array(shares)


def by_reference(path: Path) -> Found:
    """Label as Wapiti and CRF++ do: expand patterns, sum weights, find the best labels."""
    model, labels, shares = read_model(path), list[str](), []
    outside = crfpp_outside if model.program == "CRF++" else wapiti_outside
    n, number = len(model.labels), {x[0].lower() + x[1:]: i for i, x in enumerate(model.features)}
    found, before, label, values = model.weights
    states, pairs = np.zeros((len(number), n)), {i: np.zeros((n, n)) for i in {*found[before >= 0]}}
    states[found[before < 0], label[before < 0]] = values[before < 0]
    for i, a, y, value in zip(found, before, label, values, strict=True):
        if a >= 0:
            pairs[i][a, y] = value
    for rows in columns_of(path):
        steps = np.zeros((len(rows), n, n))
        for t in range(len(rows)):
            texts = [expand(x, rows, t, outside) for x in model.patterns.split("\n")]
            known = [number[text] for text in texts if text in number]
            steps[t] += states[known].sum(axis=0)
            steps[t] += sum((pairs[i] for i in known if t and i in pairs), np.zeros((n, n)))
            if model.kind == "memm":
                steps[t] -= np.logaddexp.reduce(steps[t], axis=1, keepdims=True)
        best, ahead, back = steps[0, :1], [steps[0, 0]], [np.zeros(n)]
        pointers = []
        for step in steps[1:]:
            scores = best.T + step
            pointers.append(scores.argmax(axis=0))
            best = scores.max(axis=0, keepdims=True)
            ahead.append(np.logaddexp.reduce(ahead[-1][:, None] + step, axis=0))
        for step in steps[:0:-1]:
            back.insert(0, np.logaddexp.reduce(step + back[0], axis=1))
        path_found = [int(best.argmax())]
        for pointer in reversed(pointers):
            path_found.insert(0, int(pointer[path_found[0]]))
        labels += [model.labels[y] for y in path_found]
        scores = np.array(ahead) + np.array(back)
        shares += [*np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))]
    return labels, np.array(shares)


def by_wapiti(path: Path) -> Found:
    """Its labels, and the probabilities of the most probable labels."""
    shown = [
        subprocess.run(
            ["wapiti", "label", "-m", path, *options, f"{path}.data"],
            check=True,
            capture_output=True,
            encoding="utf8",
        ).stdout
        for options in ((), ("-p", "-s"))
    ]
    best, scored = (
        [x.split("\t")[-1] for x in text.split("\n") if x[:2] not in ("", "# ")] for text in shown
    )
    return best, np.array([float(text.rpartition("/")[2]) for text in scored])


def by_crfpp(path: Path) -> Found:
    binary = f"{path}.binary"
    subprocess.run(["crf_learn", "-C", path, binary], check=True, capture_output=True)
    command = ["crf_test", "-v2", "-m", binary, f"{path}.data"]
    text = subprocess.run(command, check=True, capture_output=True, encoding="utf8").stdout
    rows = [x.split("\t") for x in text.split("\n") if x[:2] not in ("", "# ")]
    n = len(read_model(path).labels)
    shares = [[float(field.rpartition("/")[2]) for field in row[-n:]] for row in rows]
    return [row[-n - 1].rpartition("/")[0] for row in rows], np.array(shares)


def have(*names: str) -> pytest.MarkDecorator:
    missing = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{missing} is not on the PATH")


BY: dict[str, Callable[[Path], Found]] = {
    "CRFsuite": by_crfsuite,
    "Wapiti": by_reference,
    "CRF++": by_reference,
}


def entities_of(tags: Sequence[str]) -> list[str]:
    """Return labels of entities: nouns, with the adjective before them, and verbs."""
    of = {"JJ": "B-THING", "VB": "B-ACT", "IN": "O", "DT": "O"}
    pairs = zip(["", *tags], tags, strict=False)
    return [of.get(tag, f"{'I' if last == 'JJ' else 'B'}-THING") for last, tag in pairs]


def trained(gold: str = "tags", n: int = 20, **config: Any) -> tuple[Any, list[Example]]:
    """Train a component on made-up sentences; return it, and other Examples.

    Lemmas stand for annotation of an earlier pipe.
    """
    nlp = blank_with(**{"n_threads": 1, **config})
    examples = []
    for words, tags in (*make_sentences(60, seed=1), *make_sentences(40, seed=2)):
        own = {"ents": entities_of(tags)} if gold == "ents" else {"tags": tags}
        reference = Doc(nlp.vocab, words=words, **own)
        if gold == "spans":
            spans = [Span(reference, t, t + 1, "X") for t, tag in enumerate(tags) if tag == "NN"]
            reference.spans["sc"] = spans
        examples.append(Example(Doc(nlp.vocab, words=words, lemmas=tags), reference))
    train(nlp, examples[:60], n)
    return nlp.get_pipe(nlp.pipe_names[0]), examples[60:]


def check(
    pipe: Any, examples: Sequence[Example], program: str, path: Path, by: Any = None
) -> TrainedModel:
    """Export a component; compare all labels and probabilities. by: opens the model."""
    found = export(pipe, program)
    path.write_bytes(EXPORTERS[found.program].write(found))
    shown = "".join(sequences(pipe, found, examples))
    Path(f"{path}.data").write_text(shown, encoding="utf8", newline="\n")
    labels, shares = (by or BY[program])(path)
    docs = [each.predicted for each in examples if len(each.predicted)]
    words = [[not token.is_space for token in doc] for doc in docs]
    ids = [ids[own] for ids, own in zip(pipe.predict(docs, forced=False), words, strict=True)]
    is_outside = [label == "O" for label in pipe.label_data]
    order = [*np.flatnonzero(is_outside), *np.flatnonzero(~np.array(is_outside))]  # "O" wins ties
    assert labels == [found.labels[order.index(y)] for y in np.concatenate(ids)]
    expected = np.concatenate([x[own] for x, own in zip(pipe.marginals(docs), words, strict=True)])
    expected = expected[:, order]
    if shares.ndim == 1:  # of the most probable label of each token
        expected = expected.max(axis=1)
    if pipe.settings.decoding.outside_weight == 0.0:
        assert shares == pytest.approx(expected, abs=1e-5)
    return found


def shipped(name: str, component: str) -> dict[str, Any]:
    return load_config(CONFIGS / f"{name}.cfg").interpolate()["components"][component]


COLUMNS = {"columns": ["orth", "lemma"]}
OF_WAPITI = {
    "@crf_features": "spacy_sparsecrf.WapitiPatterns.v1",
    "text": 'U1:%x[0,0] # word\n*2:%X[-1,0]/%x[0,1]\nu3:%t[@1,0,"^t"]%m[0,0,".$"]\nb\nb4:%x[1,1]',
}
OF_CRFPP = {
    "@crf_features": "spacy_sparsecrf.CRFPPTemplates.v1",
    "text": "# words\nU1:%x[0,0]\nU2 of:%x[-1,0] %x[0,1]\n\nB\nB4:%x[1,1]",
}
OF_CRFPP_ALONE = {**OF_CRFPP, "text": "U1:%x[0,0]\nU2:%x[-1,0]/%x[0,1]\nB"}
OWN = {
    "Wapiti": 'u1:%x[0,0]\n*2:%X[-1,0]/%x[0,1]\nu3:%t[@1,0,"^t"]%m[0,0,".$"]\nb\nb4:%x[1,1]\n',
    "CRF++": "U1:%x[0,0]\nU2\\u0020of:%x[-1,0]\\u0020%x[0,1]\nB\n",
}
BIO = {"@crf_targets": "spacy_sparsecrf.Entities.v1", "scheme": "IOB2"}
ENTITIES: dict[str, Any] = {"gold": "ents", "factory": "sparse_crf_ner"}
REAL = ["u:suffix(2)[0]", "b:", "u:value(lemma_)[0]"]
PAIRS = ["u:lower[0]", "b:", "b:suffix(1)[0]", "*:suffix(2)[-1]", "b:ngrams(1,2)[1]"]
CASES: dict[str, dict[str, Any]] = {
    "tagger": shipped("tagger", "crf"),
    "ner": {**ENTITIES, **shipped("ner", "ner")},
    "BILUO": ENTITIES,
    "ties": {**ENTITIES, "templates": ["u:lower[0]"], "start_label": False},
    "spans": {"gold": "spans", "factory": "sparse_crf_spans", "templates": ["u:lower[0]", "b:"]},
    "n-grams": {"templates": ["u:ngrams(1,3)[0]", "u:", "b:"]},
    "pairs": {"templates": PAIRS},
    "pairs, no start": {"templates": PAIRS, "start_label": False},
    "temperature": {"templates": ["u:suffix(2)[0]", "b:"], "decoding": {"temperature": 2.5}},
    "outside": {**ENTITIES, "decoding": {"outside_weight": -1.5, "temperature": 0.5}},
    "forbidden": {
        "templates": ["u:suffix(1)[0]", "b:"],
        "decoding": {"forbidden": [["DT", "NN"], ["", "DT"], ["NN", ""]]},
    },
    "maxent": {"templates": ["u:lower[0]", "u:suffix(2)[-1]"], "model": "maxent"},
    "memm": {"templates": ["u:suffix(2)[0]", "b:", "u:lower[-1]"], "model": "memm"},
    "own patterns of Wapiti": {"features": OF_WAPITI | COLUMNS},
    "own patterns of CRF++": {"features": OF_CRFPP | COLUMNS},
    "own patterns, start": {"features": {**OF_CRFPP, **COLUMNS, "start_label": True}},
    "own patterns, twice": {
        "features": {**OF_CRFPP, **COLUMNS, "text": "U1:%x[0,0]\nB\nB2", "start_label": True},
    },
    "own patterns, entities": {**ENTITIES, "features": OF_CRFPP_ALONE | COLUMNS, "target": BIO},
}
WITHOUT_CRFSUITE = {"pairs", "pairs, no start", "own patterns of Wapiti"}
WITHOUT_CRFSUITE |= {"own patterns of CRF++", "own patterns, start", "own patterns, twice"}


@pytest.mark.parametrize("case", CASES)
def test_labels_and_probabilities_are_equal(case, tmp_path):
    pipe, examples = trained(**CASES[case])
    for program in PROGRAMS:
        if program == "CRFsuite" and case in WITHOUT_CRFSUITE:
            with pytest.raises(SparseCRFError, match="SC614.*(pairs and obs|several features)"):
                export(pipe, program)
        elif case == "memm" and program != "Wapiti":
            with pytest.raises(SparseCRFError, match="SC614.*memm"):
                export(pipe, program)
        else:
            check(pipe, examples, program, tmp_path / "model")
            if program in case:
                assert (read_model(tmp_path / "model").patterns + "\n").startswith(OWN[program])


@pytest.mark.parametrize("case", ["tagger", "ner", "pairs", "own patterns, entities"])
@pytest.mark.parametrize(
    ("program", "by"),
    [
        pytest.param("Wapiti", by_wapiti, marks=have("wapiti")),
        pytest.param("CRF++", by_crfpp, marks=have("crf_learn", "crf_test")),
    ],
)
def test_the_programs_label_like_the_pipeline(program, by, case, tmp_path):
    pipe, examples = trained(**CASES[case])
    check(pipe, examples, program, tmp_path / "model", by)


def odd_examples(nlp: Any) -> list[Example]:
    """Words and labels of which each text is one; also blanks, and words behind empty lines."""
    rng, examples = random.Random(3), []
    for _ in range(60):
        words = [*rng.choices(ODD, k=6), rng.choice([" ", "\n\n", "x", "\u00a0"]), rng.choice(ODD)]
        doc = Doc(nlp.vocab, words=words)
        reference = Doc(nlp.vocab, words=words, tags=[word.strip() or "blank" for word in words])
        examples.append(Example(doc, reference))
    return examples


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore:.*SCW220")
@pytest.mark.parametrize("own", [False, True])
def test_names_of_any_characters_survive(program, own, tmp_path):
    config: dict[str, Any] = {"templates": ["u:orth[0]", "u:orth[-1]|orth[1]", "b:", "u:"]}
    if own and program != "CRFsuite":
        of = OF_WAPITI if program == "Wapiti" else OF_CRFPP
        config = {
            "features": {**of, "text": "U1:%x[0,0]\nU2:%x[-1,0]%x[1,0]\nB", "columns": ["orth"]}
        }
    nlp = blank_with(n_threads=1, **config)
    examples = odd_examples(nlp)
    train(nlp, examples, 20)
    check(nlp.get_pipe("sparse_crf"), examples, program, tmp_path / "model")


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_entity_goes_on_behind_an_empty_line(program, tmp_path):
    pipe, examples = trained(**CASES["ner"])
    for each in examples:
        words = [token.text for token in each.predicted]
        at = len(words) // 2
        each.predicted = Doc(pipe.vocab, words=[*words[:at], "\n\n", *words[at:], " "])
    check(pipe, examples, program, tmp_path / "model")


def test_real_values_are_for_crfsuite(own_extensions, tmp_path):
    Token.set_extension("size", getter=lambda token: len(token.text) / 7 - 1)
    pipe, examples = trained(templates=["u:suffix(1)[0]", "u:value(_.size)[0]", "b:"])
    check(pipe, examples, "CRFsuite", tmp_path / "model")
    assert re.search(
        r"\tvalue\(_.size\)\[0\]=d0:-0\.\d+", Path(tmp_path / "model.data").read_text()
    )
    with pytest.raises(SparseCRFError, match="SC614.*'wapiti'.*real-valued"):
        export(pipe, "Wapiti")


def weights_of(model: TrainedModel) -> dict[tuple[str, str, str], float]:
    places = zip(*(column.tolist() for column in model.weights[:3]), strict=True)
    values = zip(places, model.weights.values.tolist(), strict=True)
    names = {-1: "", **dict(enumerate(model.labels))}
    return {(model.features[i], names[a], names[y]): value for (i, a, y), value in values}


MODELS = ["crf.wapiti", "memm.wapiti", "maxent.wapiti", "crfpp.txt", "crfsuite"]


@pytest.mark.parametrize("name", MODELS)
def test_import_and_export_keep_all_bits(name, own_extensions, tmp_path):
    source, again = PEERS / name, tmp_path / "again"
    if name == "crfsuite":
        crfsuite(*make_xy(40), source := tmp_path / name)
    given = read_model(source)
    again.write_bytes(EXPORTERS[given.program].write(given))
    read = read_model(again)
    assert weights_of(read) == weights_of(given)
    assert (read.labels, read.patterns, read.features) == (
        given.labels,
        given.patterns,
        given.features,
    )
    imported = import_model(source, ["orth", "tag"], TESTS, "float64")
    target = {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", "attr": "_.made"}
    config = {"features": imported.features, "model": imported.model.kind, "target": target}
    pipe = blank_with(learning={"dtype": "float64"}, **config).get_pipe("sparse_crf")
    set_weights(pipe, imported.model, imported.names, name)
    again.write_bytes(EXPORTERS[given.program].write(export(pipe, given.program)))
    called = dict(zip(given.features, given.features, strict=True))
    if name == "crfsuite":
        called |= dict(zip(given.features[:-1], names_of(given.features[:-1], TESTS), strict=True))
    expected = {(called[text], *rest): x for (text, *rest), x in weights_of(given).items()}
    assert weights_of(read_model(again)) == expected


def test_the_command_writes_a_model_and_columns(trained_dir, corpus, tmp_path):
    for program in PROGRAMS:
        path = tmp_path / "new" / f"model.{program}"
        options = "--format", program.lower(), "--data", corpus.dev_path
        result = run("export", trained_dir, path, *options)
        assert f"model.{program}.data" in result.output and "weights" in result.output
        labels, _ = BY[program](path)
        gold = [
            row[0 if program == "CRFsuite" else -1] for rows in columns_of(path) for row in rows
        ]
        assert sum(map(str.__eq__, labels, gold)) > 0.9 * len(gold)
    run("export", trained_dir, tmp_path / "alone", "--format", "wapiti")
    assert not (tmp_path / "alone.data").exists()
    assert (
        "crf++"
        in run("export", trained_dir, tmp_path / "x", "--format", "svm", code=2).output.lower()
    )


@pytest.mark.parametrize("program", ["Wapiti", "CRF++"])
def test_exported_models_can_be_imported(program, own_extensions, tmp_path):
    """Each of many columns may have any feature."""
    pipe, examples = trained(**CASES["tagger"])
    model = check(pipe, examples, program, tmp_path / "model")
    imported = import_model(tmp_path / "model", ["orth"], {}, "float64")
    target = {"@crf_targets": "spacy_sparsecrf.TokenAttribute.v1", "attr": "_.made"}
    nlp = blank_with(features=imported.features, target=target, learning={"dtype": "float64"})
    set_weights(nlp.get_pipe("sparse_crf"), imported.model, imported.names, "here")
    again = export(nlp.get_pipe("sparse_crf"), program)
    assert weights_of(again) == weights_of(model) and again.patterns == model.patterns


@pytest.mark.filterwarnings("ignore:.*SCW218")  # no weights
@pytest.mark.parametrize(
    ("config", "program", "message"),
    [
        ({"templates": ["u:"], "learning": {"store_feature_names": False}}, "Wapiti", "names"),
        ({**ENTITIES, "threshold": 0.5}, "CRFsuite", "a threshold"),
        ({**ENTITIES, "decoding": {"thresholds": {"ACT": 0.5}}}, "CRF++", "a threshold"),
        ({"templates": ["u:"], "decoding": {"once": ["NN"]}}, "CRFsuite", "a setting `once`"),
        ({"templates": ["u:"], "decoding": {"method": "posterior"}}, "Wapiti", "posterior"),
        ({"templates": ["u:"], "model": "maxent", "learning": {"clusters": 2}}, "CRF++", "clust"),
        ({"templates": ["u:"], "l1": 1e9}, "CRFsuite", "no weights"),
        ({**ENTITIES, "templates": ["u:", "b:"], "model": "memm"}, "Wapiti", "memm.*transitions"),
        (
            {"templates": ["u:", "u:first[0]"], "learning": {"stack": {"folds": 2}}},
            "CRF++",
            "stages",
        ),
    ],
)
def test_what_programs_lack_is_refused_by_name(config, program, message):
    pipe, _ = trained(n=2, **config)
    option = re.escape(f"--format '{program.lower()}'")
    with pytest.raises(SparseCRFError, match=rf"SC614\].*{option}.*{message}"):
        export(pipe, program)


def test_lines_that_crfpp_would_cut_are_refused(trained_dir, nlp, tmp_path):
    data = tmp_path / "long.spacy"
    DocBin(docs=[Doc(nlp.vocab, words=["the", "x" * 9000])], attrs=["ORTH"]).to_disk(data)
    options = "--format", "crf++", "--data", data
    run("export", trained_dir, tmp_path / "model", *options)
    nlp = spacy.load(trained_dir)
    nlp.get_pipe("sparse_crf").patch([f"u\torth[0]={'x' * 9000}\t#\tDT\t1"])
    nlp.to_disk(tmp_path / "changed")
    result = run("export", tmp_path / "changed", tmp_path / "long", *options, code=1)
    assert re.search("SC614.*8191 bytes", result.output)
    assert not (tmp_path / "long").exists()


@pytest.mark.filterwarnings("ignore:.*SCW220")
def test_features_that_patterns_write_alike_are_refused():
    of = {**OF_WAPITI, **COLUMNS, "text": "u:%x[0,0]/%x[0,1]"}
    nlp, examples = blank_with(n_threads=1, features=of), []
    for word, lemma, tag in [("a/b", "c", "X"), ("a", "b/c", "Y")]:
        gold = Doc(nlp.vocab, words=[word], tags=[tag])
        examples.append(Example(Doc(nlp.vocab, words=[word], lemmas=[lemma]), gold))
    train(nlp, examples * 9, 5)
    with pytest.raises(SparseCRFError, match=r"SC614\].*several features.*'u:a/b/c'"):
        export(nlp.get_pipe("sparse_crf"), "Wapiti")
    export(nlp.get_pipe("sparse_crf"), "CRF++")
