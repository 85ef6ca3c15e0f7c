"""The folder of a portable model, which is checked before it is written."""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from spacy.language import Language

from .. import portable
from ..errors import Errors, SparseCRFError
from ..pipeline.component import SparseCRFPipe
from ..pipeline.targets.spans import SpanTarget
from .portable_javascript import answers_of_node, javascript_files, node
from .portable_model import portable_model
from .text_files import read_lines

N_TEXTS = 1000
TOLERANCE = 5e-4  # of probabilities
_SIGNS = (
    *("\n", "\n\n", "\r\n", "\t", "  ", "\u00a0", "\u2003", "\u200b", "\ufeff", "\u00ad", "\x85"),
    *(
        "https://example.com/a?b=c",
        "ann@example.com",
        "10%",
        "$5",
        "1,000.50",
        "3/4",
        "2nd",
        "12:30",
    ),
    *("...", "\u2014", "-", "(", ")", "\u00ab", "\u201c", "\u2019", '"', "'", "!", "\u00bf", ":"),
    *(":)", "C++", "a/b", "\U0001f600", "e\u0301", "\u0130", "\ufb01", "U.S.A.", "x-y", "_", "#1"),
)
_README = """\
# {component}, from raw text, without spaCy

This folder is a model of spacy-sparsecrf and a program that labels texts with it:

    model.json    the model: tokenizer, templates and weights ({n_labels} labels, language {lang})
    crf.py        the program for Python 3.10 or newer, no packages
    crf.mjs       the same program for Node 20 or newer, browsers and workers
    index.html    a page to try the model: open it in a browser; it needs no other file

In Python and in JavaScript:

    from crf import Model
    Model("model.json")("A text.").{answer}

    import {{ Model }} from "./crf.mjs";
    new Model(readFileSync("model.json", "utf8")).label("A text.").{answer}

As commands, a line of JSON for each line of a file: `python crf.py texts.txt`, `node crf.mjs
texts.txt`.

check.jsonl has {n} texts with the pipeline's answers, for programs in other languages.
Made with {made_with}.
The pipeline and {checked} gave the same answers.
"""


def portable_folder(
    nlp: Language, pipe: SparseCRFPipe, texts: Iterable[str] | None = None
) -> dict[str, bytes]:
    """Return the files of a portable model by name.

    texts: to check the model; None: texts of words that it knows, special cases, signs and blanks.
    RAISES: SparseCRFError for what the reader lacks, and for a text with other answers.
    """
    data = portable_model(nlp, pipe)
    model = portable.Model(data)
    fields = model.fields
    texts = [*(drawn_texts(fields) if texts is None else texts)]
    expected = [*_expected(nlp, pipe, texts)]
    _compare(texts, expected, (model(text)._asdict() for text in texts))
    files = {"model.json": data, "crf.py": Path(portable.__file__).read_bytes()}
    files |= javascript_files(data, _example(texts, expected))
    program = node()
    if program is not None:
        _compare(texts, expected, answers_of_node(program, files, texts))
    lines = [
        json.dumps({"text": text, **answer}, ensure_ascii=False) + "\n"
        for text, answer in zip(texts, expected, strict=True)
    ]
    is_spans = isinstance(pipe.target, SpanTarget)
    shown = {"component": pipe.name, "n_labels": len(model.labels), "n": len(lines)}
    readme = _README.format(
        **shown,
        lang=nlp.lang,
        made_with=fields["made_with"],
        checked="crf.py" if program is None else "both programs",
        answer="spans" if is_spans else "tokens",
    )
    files |= {"README.md": readme.encode(), "check.jsonl": "".join(lines).encode()}
    return files


def texts_of(path: Path) -> list[str]:
    """Read texts: one a line, or the key "text" of lines of JSON (.jsonl)."""
    lines = [*read_lines(path)]
    return [json.loads(x)["text"] for x in lines] if path.suffix == ".jsonl" else lines


def drawn_texts(fields: dict[str, Any], n: int = N_TEXTS) -> Iterator[str]:
    """Yield texts of words that a model knows; a third have special cases, signs and blanks."""
    words = [
        word
        for _, [(number, *_)], weights in fields["near"]
        if fields["attributes"][number][0] in ("orth", "lower")
        for word in weights
        if word[0] != " "  # outside of a text
    ]
    words = sorted({*words}) or ["word"]
    rng = random.Random(0)
    cases = [*fields["tokenizer"]["rules"], *_SIGNS]
    for i in range(n):
        drawn = rng.choices(words, k=rng.randint(1, 20))
        if i % 3 == 0:
            drawn = [rng.choice((word, *rng.choices(cases, k=2))) for word in drawn]
        separators = ("", " ", " ", " ") if i % 3 == 0 else (" ",)
        yield "".join(word + rng.choice(separators) for word in drawn)


def _example(texts: Sequence[str], answers: Sequence[dict[str, list[list[Any]]]]) -> str:
    """Return the text with most labels among the texts without signs that are drawn."""
    pairs = [*zip(texts, answers, strict=True)]
    plain = pairs if len(pairs) != N_TEXTS else pairs[1::3]
    return max(plain[:50], key=lambda pair: len({row[2] for row in pair[1]["tokens"]}))[0]


def _compare(
    texts: Sequence[str],
    expected: Sequence[dict[str, list[list[Any]]]],
    answers: Iterable[dict[str, Any]],
) -> None:
    """Compare answers of the pipeline and a program. RAISES: SparseCRFError if they differ."""
    for text, of_pipeline, answer in zip(texts, expected, answers, strict=True):
        actual = {
            "tokens": [[*x[1:]] for x in answer["tokens"]],
            "spans": [[*x[:3], x[4]] for x in answer["spans"]],
        }
        rows = [[row for of_kind in x.values() for row in of_kind] for x in (of_pipeline, actual)]
        same = [x[:3] for x in rows[0]] == [x[:3] for x in rows[1]]
        if not same or any(abs(a[3] - b[3]) > TOLERANCE for a, b in zip(*rows, strict=True)):
            message = Errors.SC639.format(text=text, expected=of_pipeline, actual=actual)
            raise SparseCRFError(message)


def _expected(
    nlp: Language, pipe: SparseCRFPipe, texts: Sequence[str]
) -> Iterator[dict[str, list[list[Any]]]]:
    """Yield the tokens and spans of the pipeline in texts: start, end, label, probability."""
    unlabelled = [*map(nlp.make_doc, texts)]
    labels = (*pipe.label_data, "")
    shares, predictions = pipe.marginals(unlabelled), pipe.predict(unlabelled)
    for k, doc in enumerate(nlp.pipe(texts)):
        tokens = [
            [x.idx, x.idx + len(x), labels[y], round(float(p[y]), 6) if p.any() else 1.0]
            for x, y, p in zip(doc, predictions[k].tolist(), shares[k], strict=True)
        ]
        spans: list[list[Any]] = []
        if isinstance(pipe.target, SpanTarget) and (present := pipe.target.present(doc)):
            confidences = pipe.confidences(unlabelled[k]).spans
            scores = {(x.start, x.end, x.label): x.probability for x in confidences}
            for start, end, label in present.spans:
                span = doc[start:end]
                score = round(scores.get((start, end, label), 0.0), 6)
                spans.append([span.start_char, span.end_char, label, score])
        yield {"tokens": tokens, "spans": spans}
