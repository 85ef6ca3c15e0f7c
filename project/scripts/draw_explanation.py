"""Draw why a token has its label: the picture of README.md."""

from html import escape
from pathlib import Path
from typing import Annotated

import spacy
import typer

from spacy_sparsecrf.analysis.explanation import Contribution, TokenExplanation

WIDTH, LINE, MARGIN = 720, 24, 16
COLOURS = {"for": "#2f7d5b", "against": "#b4532a"}
STYLE = """<style>
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.small { font-size: 12px; fill: #59636e }
.mono { font: 13px ui-monospace, monospace }
.box { fill: #eef1f4 } .chosen { fill: #cfe6da }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 } .box { fill: #262c34 } .chosen { fill: #214536 }
}
</style>"""


def main(
    model: Annotated[Path, typer.Argument(help="Trained pipeline")],
    text: Annotated[str, typer.Argument(help="Text to label")],
    token: Annotated[int, typer.Argument(help="Number of the token to explain, from 0")],
    output: Annotated[Path, typer.Argument(help="SVG file")],
    n: Annotated[int, typer.Option(help="Reasons for the label, and against it")] = 4,
) -> None:
    """Write a picture of a text's labels, and of what speaks for and against one of them."""
    nlp = spacy.load(model)
    pipe = nlp.get_pipe("sparse_crf")
    tokens = pipe.explain_doc(nlp.make_doc(text)).tokens
    reasons = [*tokens[token].supporting[:n], *reversed(tokens[token].opposing[:n])]
    height = 150 + LINE * len(reasons) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>Why {escape(tokens[token].text)} is {escape(tokens[token].label)}</title>",
        STYLE,
        *sentence(tokens, token),
        *headline(tokens[token]),
        *bars(reasons),
        "</svg>",
    ]
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def sentence(tokens: tuple[TokenExplanation, ...], chosen: int) -> list[str]:
    """The tokens with their labels and probabilities, a box each."""
    width = (WIDTH - 2 * MARGIN) / len(tokens)
    lines = []
    for i, token in enumerate(tokens):
        left, middle = MARGIN + i * width, MARGIN + (i + 0.5) * width
        kind = "chosen" if i == chosen else "box"
        lines += [
            f'<rect class="{kind}" x="{left + 3:.0f}" y="{MARGIN}" width="{width - 6:.0f}" '
            'height="68" rx="6"/>',
            _text(middle, 38, token.text, "", "middle"),
            _text(middle, 58, token.label, "mono", "middle"),
            _text(middle, 76, f"{token.probability:.1%}", "small", "middle"),
        ]
    return lines


def headline(token: TokenExplanation) -> list[str]:
    """What the bars are about."""
    text = f"{token.text}: {token.label} {token.probability:.1%}, "
    text += f"not {token.runner_up} {token.runner_up_probability:.1%}"
    return [_text(MARGIN, 116, text)]


def bars(reasons: list[Contribution]) -> list[str]:
    """A bar for each test or pair of labels, by how much it speaks for the label."""
    zero = WIDTH * 0.62
    longest = max(abs(reason.difference) for reason in reasons)
    scale = (WIDTH - MARGIN - 52 - zero) / longest
    lines = []
    for i, reason in enumerate(reasons):
        y, long = 150 + LINE * i, abs(reason.difference) * scale
        is_for = reason.difference > 0
        left = zero if is_for else zero - long
        name = reason.test if reason.previous is None else f"{reason.previous} → {reason.label}"
        end = zero + long + 6 if is_for else zero + 6
        lines += [
            _text(MARGIN, y + 12, name, "mono"),
            f'<rect x="{left:.1f}" y="{y}" width="{long:.1f}" height="15" rx="2" '
            f'fill="{COLOURS["for" if is_for else "against"]}"/>',
            _text(end, y + 12, f"{reason.difference:+.2f}", "small"),
        ]
    return lines


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'
    )


if __name__ == "__main__":
    typer.run(main)
