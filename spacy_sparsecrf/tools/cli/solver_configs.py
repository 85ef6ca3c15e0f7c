"""Configs of solvers: a tagger's config with another solver and suitable penalties."""

import re
from typing import NamedTuple

TAGGER, MAXENT = "tagger", "maxent"


class Variant(NamedTuple):
    """A config with another solver.

    about: first line of the config; settings: lines of the solver's block other than its defaults;
    penalty: l1 and l2 as text; patience: evaluations without a better score that end training;
    base: name of the config to change; polish: lines of the block `polish`.
    """

    about: str
    penalty: tuple[str, str] = ("0.5", "0.00001")
    settings: tuple[str, ...] = ()
    patience: int = 5
    base: str = TAGGER
    polish: tuple[str, ...] = ()


_L2_ONLY = "0.0", "1.0"
_OF_TOKENS = "0.5", "0.1"
_AVERAGED = (
    "# The mean of the iterates from this pass on; 0 for the last iterate.",
    "average_from = 2",
)
_POLISH = (
    "# L-BFGS iterations without l1 on the final non-zero weights.",
    "iterations = 5",
)
_APART = "A tagger whose labels do not depend on each other, trained by"

VARIANTS = {
    "AdaGrad": Variant("A tagger trained by AdaGrad, with a proximal step for l1."),
    "BCD": Variant(
        "A tagger trained by block coordinate descent: all weights of a feature at once.",
        polish=_POLISH,
    ),
    "GIS": Variant(f"{_APART} GIS.", _OF_TOKENS, patience=10, base=MAXENT),
    "Hybrid": Variant("A tagger trained by OWL-QN on a growing sample of the corpus."),
    "NewtonCG": Variant(
        "A tagger trained by Newton's method with conjugate gradients, without l1.", _L2_ONLY
    ),
    "OEG": Variant("A tagger trained by online exponentiated gradient, without l1.", _L2_ONLY),
    "Perceptron": Variant(
        "A tagger trained by the averaged perceptron; it has no probabilities.", ("0.0", "0.0")
    ),
    "RPROP": Variant("A tagger trained by RPROP+, on the whole corpus at a time.", patience=10),
    "SAG": Variant("A tagger trained by stochastic average gradient with non-uniform sampling."),
    "SCGIS": Variant(f"{_APART} SCGIS.", _OF_TOKENS, base=MAXENT),
    "SGD": Variant(
        "A tagger trained by stochastic gradient descent, with averaged weights and without l1.",
        _L2_ONLY,
        _AVERAGED,
    ),
    "SGDL1": Variant("A tagger trained by SGD with the cumulative l1 penalty."),
    "SMD": Variant(
        "A tagger trained by stochastic meta-descent, without l1.",
        _L2_ONLY,
        ("# Lower it if training reports divergence.", "eta0 = 0.02"),
    ),
}


def with_solver(text: str, solver: str) -> str:
    """Return the text of a config with another solver. text: of the variant's base config."""
    variant = VARIANTS[solver]
    header = [
        variant.about,
        "",
        f"  python -m spacy_sparsecrf config {variant.base} --solver {solver} > config.cfg",
        "  python -m spacy train config.cfg --output training",
        "      --paths.train train.spacy --paths.dev dev.spacy",
        "",
        "Settings that are left out have their defaults.",
    ]
    block = [f'@crf_solvers = "spacy_sparsecrf.{solver}.v1"', *variant.settings]
    l1, l2 = variant.penalty
    for pattern, lines in (
        (r"\A(#.*\n)+", [f"# {line}".rstrip() for line in header]),
        (r"(?<=\.solver\]\n)(.+\n)+", block),
        (r"(?<=\.polish\]\n)", list(variant.polish)),
        (r"^l1 = .*\n", [f"l1 = {l1}"]),
        (r"^l2 = .*\n", [f"l2 = {l2}"]),
        (r"^patience = .*\n", [f"patience = {variant.patience}"]),
    ):
        new = "".join(f"{line}\n" for line in lines)
        match = re.search(pattern, text, re.MULTILINE)
        assert match is not None
        text = text[: match.start()] + new + text[match.end() :]
    return text
