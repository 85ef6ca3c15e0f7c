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

This folder is a model of spacy-sparsecrf and a program that labels texts with it. Copy both files:

    model.json    the model: tokenizer, templates and weights ({n_labels} labels, language {lang})
    crf.py        the program: Python 3.10 or newer, no packages

In Python:

    from crf import Model
    model = Model("model.json")
    model("{example}").{answer}

As a command, a line of JSON for each line of a file:

    python crf.py texts.txt

check.jsonl has {n} texts with the pipeline's answers, for a program in another language. Made with
{made_with}. The pipeline and this program gave the same answers.
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
    expected = _expected(nlp, pipe, texts)
    lines = [_checked(model, text, answer) for text, answer in zip(texts, expected, strict=True)]
    is_spans = isinstance(pipe.target, SpanTarget)
    shown = {"component": pipe.name, "n_labels": len(model.labels), "n": len(lines)}
    readme = _README.format(
        **shown,
        lang=nlp.lang,
        made_with=fields["made_with"],
        example="A text.",
        answer="spans" if is_spans else "tokens",
    )
    return {
        "model.json": data,
        "crf.py": Path(portable.__file__).read_bytes(),
        "README.md": readme.encode(),
        "check.jsonl": "".join(lines).encode(),
    }


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


def _checked(model: portable.Model, text: str, expected: dict[str, list[list[Any]]]) -> str:
    """Return a line of check.jsonl. RAISES: SparseCRFError if the answers differ."""
    labelled = model(text)
    actual = {
        "tokens": [[x.start, x.end, x.label, x.probability] for x in labelled.tokens],
        "spans": [[x.start, x.end, x.label, x.score] for x in labelled.spans],
    }
    rows = [[row for of_kind in x.values() for row in of_kind] for x in (expected, actual)]
    same = [x[:3] for x in rows[0]] == [x[:3] for x in rows[1]]
    if not same or any(abs(a[3] - b[3]) > TOLERANCE for a, b in zip(*rows, strict=True)):
        message = Errors.SC639.format(text=text, expected=expected, actual=actual)
        raise SparseCRFError(message)
    return json.dumps({"text": text, **expected}, ensure_ascii=False) + "\n"


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
