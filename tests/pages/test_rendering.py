"""Rendered pages: contents, escaped text, and no external resources."""

import html.parser
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc

from spacy_sparsecrf.pipeline.targets.matching import KINDS, Matches
from spacy_sparsecrf.tools.analysis import explanation
from spacy_sparsecrf.tools.analysis.calibration import Bin, Calibration, Reliability, Threshold
from spacy_sparsecrf.tools.analysis.error_analysis import Confusion, Mistake, Report
from spacy_sparsecrf.tools.analysis.explanation import (
    Contribution,
    DocExplanation,
    FeatureWeight,
    LabelExplanation,
    LabelledSpan,
    ModelExplanation,
    TokenExplanation,
)
from spacy_sparsecrf.tools.pages.rendering import Page, render

from ..support.html_pages import HOSTILE, Reader

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2


def contributions(label: str, n: int = 6) -> tuple[Contribution, ...]:
    names = [f"lower[{i}]={LONG if i == 2 else HOSTILE}" for i in range(n)]
    found = [
        Contribution("test", name, None, label, 0.5 * i - 1, 0.25) for i, name in enumerate(names)
    ]
    return (*reversed(found), Contribution("in", "always", "O", label, -2.0, 0.0))


def token(text: str, label: str, other: str | None = "O") -> TokenExplanation:
    return TokenExplanation(text, label, 0.75, other, 0.25, contributions(label))


def explained_doc() -> DocExplanation:
    tokens = [token("Dr.", "O", None), token(HOSTILE, "B-PER"), token(LONG, "L-PER")]
    tokens += [token("in", "O", "U-LOC"), token("\n", "O"), token("Ulm", "U-LOC")]
    spans = LabelledSpan(1, 3, "PER", 0.5), LabelledSpan(5, 6, "LOC", 0.9876)
    return DocExplanation(tuple(tokens), spans)


def explained_model(n_labels: int = 3) -> ModelExplanation:
    names = [HOSTILE, LONG, *(f"L{i}" for i in range(n_labels - 2))]
    weight = explanation.FeatureWeight
    labels = tuple(
        LabelExplanation(
            name,
            (weight(f"b{name}", None, name, 2.0), weight("a10", "", name, 0.5)),
            (weight("c", names[-1], name, -10.0),),
            7,
        )
        for name in names
    )
    pairs = [FeatureWeight("always", name, names[-1 - i], 1.0 - i) for i, name in enumerate(names)]
    return ModelExplanation((*pairs, FeatureWeight("always", "", names[0], -n_labels)), labels, 99)


def report() -> Report:
    matches = Matches()
    gold, predicted = [(0, 2, HOSTILE), (4, 5, "LOC")], [(1, 3, LONG), (4, 5, "LOC")]
    group = matches.add(gold, predicted)[0]
    mistake = Mistake(
        3,
        ("before", LONG),
        ("a", HOSTILE, "c"),
        ("after",),
        *(tuple(LabelledSpan(*span, 0.5) for span in side) for side in group),
        pair=group.labels,
        fault=group.fault,
        tokens=(token("a", "B-PER"), token(HOSTILE, "L-PER")),
    )
    missed = replace(
        mistake, predicted=(), pair=(HOSTILE, ""), fault="missed", words=("a", HOSTILE)
    )
    missed, pairs = replace(missed, tokens=()), {**matches.pairs, missed.pair: 2}
    found = [Confusion(*each.pair, each.fault, 2, ((HOSTILE, 2),)) for each in (mistake, missed)]
    found.append(Confusion("LOC", "", "missed", 1, ()))
    scores = tuple(matches.scores())
    return Report(KINDS, scores, pairs, tuple(found), (mistake, missed), 5)


def calibration() -> Calibration:
    before, after = (
        Reliability((Bin(0.1, 7, 0.15, share), Bin(0.9, 70, 0.97, 0.9)), 0.07)
        for share in (0.05, 0.12)
    )
    labels = (LONG, HOSTILE)
    thresholds = tuple(Threshold(label, 10, 9, 0.5, 1.0, n, 1.0) for n, label in enumerate(labels))
    return Calibration(0.9, None, 0.5, 77, 1.5, before, after, thresholds, 25)


PAGES: dict[str, Page] = {
    "doc": explained_doc(),
    "tags": DocExplanation(tuple(token(text, "NN") for text in ("a", HOSTILE, LONG))),
    "model": explained_model(),
    "mistakes": report(),
    "calibration": calibration(),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_whole_and_load_nothing(name):
    text = render(PAGES[name], HOSTILE)
    page = Reader(text)
    assert page.all("src") == []
    ids, links = page.all("id"), page.all("href")
    assert len(set(ids)) == len(ids) and {f"#{each}" for each in ids} >= set(links)
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 1
    assert HOSTILE in page.text and "<script>x" not in text
    n_tables = [tag for tag, _ in page.tags].count("table")
    assert n_tables == [tag for tag, _ in page.tags].count("caption") > 0
    assert all("scope" in attrs for tag, attrs in page.tags if tag == "th")
    assert "prefers-color-scheme: dark" in text


def test_spans_are_shown_as_spans():
    text = render(explained_doc())
    labels = re.findall(r'class="label"[^>]*>([^<]*)<', text)
    # Spans occur in the legend, above the sentence, and on the cards.
    assert labels == ["X", "PER", "LOC", "PER", "LOC"]
    assert "0.9876" in text and text.count("<section") == 3 + 2
    assert "first token" in text and "only token" in text
    # Words and cards are linked.
    page = Reader(render(PAGES["tags"]))
    assert {*page.all("href")} == {f"#{kind}{i}" for kind in "wt" for i in range(3)}


@pytest.mark.parametrize(("n", "squares"), [(59, 1), (60, 0)])
def test_transitions_of_many_labels_are_a_list(n, squares):
    text = render(explained_model(n))
    assert text.count('class="square"') == squares
    assert text.count("<tr") == (2 + n) + n * (1 + 3)
    assert ("+0.500" in text) and (f"-{n}.00" in text)
    empty = ModelExplanation((), (LabelExplanation("A", (), (), 0),), 0)
    assert "What the model has learnt: 0 weights" in render(empty)


def test_labels_have_the_colour_of_their_type_and_errors_that_of_the_gold_label():
    """Shades differ for B, I, L, U; no weight is shown as -0."""
    pairs = [
        FeatureWeight("always", "O", f"{kind}-{kinds}", -0.001)
        for kind in "BILU"
        for kinds in ("A", "C")
    ]
    labels = tuple(LabelExplanation(pair.label, (), (), 1234) for pair in pairs)
    text = render(ModelExplanation(tuple(pairs), (*labels, LabelExplanation("O", (), (), 0)), 9876))
    styles = dict(re.findall(r'style="([^"]*)" href="#l\d">([^<]*)<', text))
    assert len(styles) == 9 and styles["--s: 0%"] == "O"
    assert len({style.split(";")[0] for style in styles}) == 3
    assert "-0.0" not in text and "9,876 weights" in text and "1,234 weights" in text
    rows = re.findall(r'class="measure (\w+)" style="[^"]*" title="[^"]*">([+-])', render(report()))
    assert rows and all(kind == ("against" if sign == "+" else "for") for kind, sign in rows)


def test_bars_are_on_one_scale():
    (label,) = explained_model(2).labels[:1]
    text = render(ModelExplanation((), (label,), 3))
    bars = re.findall(r'measure (\w+)" style="--from: (\d+)%; --to: (\d+)%">([+-][\d.]+)', text)
    assert bars == [
        ("for", "83", "100", "+2.000"),
        ("for", "83", "88", "+0.500"),
        ("against", "0", "83", "-10.000"),
    ]


def test_entities_come_before_words_outside_and_frequent_labels_first():
    text = render(explained_doc())
    cards = re.findall(r'<section id="(\w+)"', text)
    assert cards == ["s1", "s5", "t0", "t3", "t4"]
    assert text.index("s5") < text.index("<summary>3 words outside") < text.index('id="t0"')
    counts = {"O": 99, "A": 1, "B": 5}
    labels = tuple(LabelExplanation(label, (), (), n) for label, n in counts.items())
    assert re.findall("<h2>(.*)</h2>", render(ModelExplanation((), labels, 0))) == ["B", "A", "O"]


def test_errors_are_collapsed_by_confusion_and_linked():
    text = render(report())
    page = Reader(text)
    groups = [attrs for tag, attrs in page.tags if tag == "details" and "group" in str(attrs)]
    assert len(groups) == 2 and not any("open" in attrs for attrs in groups)
    # From the matrix and from the table of confusions, which also has one without a card.
    [first, second] = [each for each in page.all("id") if re.fullmatch(r"g\d-\d", str(each))]
    assert [each for each in page.all("href") if each] == [f"#{first}", f"#{second}"] * 2
    assert text.count('class="cards"') == 2 and "1 of 2 errors" in page.text
    # A card is never empty.
    for card in text.split("<section")[1:]:
        assert "<td" in card or "The words have their gold labels" in card
    assert text.count("The words have their gold labels") == 1


def test_calibration_has_rows_of_all_and_no_precision_of_nothing():
    text = render(calibration())
    assert text.count('<th scope="row">all</th>') == 3
    [row] = re.findall(r'<th scope="row">all</th><td>25</td>(.*?)</tr>', text)
    cells = re.findall("<td>(.*?)</td>", row)
    # 18 predicted spans, of which 9 are right; a threshold keeps 1, which is right.
    assert cells == ["18", "50.00", "36.00", "41.86", "", "1", "100.00", "4.00", "7.69"]
    [first, _] = re.findall(r"<td>1\.0000</td>(.*?)</tr>", text)
    assert re.findall("<td>(.*?)</td>", first) == ["0", "–", "0.00", "0.00"]
    (overall, _) = (found.overall for found in (calibration().before, calibration().after))
    assert (overall.interval, overall.n) == ("all", 77)
    assert overall.right == pytest.approx((7 * 0.05 + 70 * 0.9) / 77)


def test_the_footer_is_shown_if_given():
    assert "<footer" not in render(report())
    page = Reader(render(report(), made={"data": HOSTILE, "command": "python x"}))
    assert page.text.index("data") < page.text.rindex(HOSTILE) < page.text.index("python x")


def test_long_docs_are_small_pages(trained_dir, corpus):
    pipe = spacy.load(trained_dir).get_pipe("sparse_crf")
    words = [word for words, _ in corpus.train for word in words][:300]
    page = render(pipe.explain_doc(Doc(pipe.vocab, words=words)))
    assert page.count("<section") == 300 and len(page.encode()) < 1_000_000


WIDTHS = 400, 1200
LOOK = Path(__file__).with_name("look.js").read_text(encoding="utf8")


def seen(shown: Sequence[Page], tmp_path: Path, *options: str) -> list[dict[str, Any]]:
    """Return a browser's measurements of pages in frames, as in notebooks, at both widths."""
    frames = [
        f"width: {width}px".join(page._repr_html_().rsplit("width: 100%", 1))
        for page in shown
        for width in WIDTHS
    ]
    path = tmp_path / "frames.html"
    body = f'{"".join(frames)}<pre id="out"></pre><script>onload = () => {{ {LOOK} }}</script>'
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8">{body}', encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [*options, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    told = re.search(r'<pre id="out">(.*?)</pre>', dom, flags=re.DOTALL)
    assert told is not None, dom[-500:]
    found: list[dict[str, Any]] = json.loads(html.unescape(told[1]))
    return found


@pytest.mark.skipif(not BROWSER, reason="no Chromium or Chrome is installed")
def test_pages_fit_and_work_in_a_browser(tmp_path):
    found = seen([*PAGES.values()], tmp_path)
    assert [each["width"] for each in found] == [*WIDTHS] * len(PAGES)
    assert [each["over"] for each in found] == [[]] * len(found)
    by_page = dict(zip(PAGES, found[::2], strict=True))
    n_cards = {"doc": 5, "tags": 3, "model": 3, "mistakes": 2, "calibration": 3}
    assert {name: each["all"] for name, each in by_page.items()} == n_cards
    assert [each.get("zzz") for each in found] == 8 * [0] + 2 * [None]
    # Number of cards in the first row, at the larger width; each error is of another group.
    assert [each["row"] for each in found[1::2]] == [2, 2, 2, 1, 2]
    assert by_page["mistakes"]["open"] == by_page["doc"]["open"] == 0
    assert by_page["model"]["a10"] == 3
    assert (by_page["doc"]["loc"], by_page["mistakes"]["loc"]) == (1, 0)
    assert by_page["model"]["falling"] == ["+2.000", "+0.500", "-10.000"]
    assert by_page["model"]["rising"] == ["-10.000", "+0.500", "+2.000"]
    assert by_page["doc"]["ground"] == "rgb(255, 255, 255)"
    dark = seen([PAGES["doc"]], tmp_path, "--blink-settings=preferredColorScheme=0")
    assert dark[0]["ground"] != by_page["doc"]["ground"]
