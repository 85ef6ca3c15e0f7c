"""Configs of solvers: a tagger's config with another solver and suitable penalties."""

import re
from textwrap import wrap
from typing import NamedTuple

TAGGER, MAXENT = "tagger", "maxent"


class Variant(NamedTuple):
    """A config with another solver.

    about: first line of the config; note: on the solver; settings: lines of the solver's block;
    penalty: l1 and l2 as text; patience: evaluations without a better score that end training;
    base: name of the config to change; learning: lines of the block `learning`.
    """

    about: str
    note: str = ""
    settings: tuple[str, ...] = ()
    penalty: tuple[str, str] = ("0.5", "0.00001")
    patience: int = 5
    base: str = TAGGER
    learning: tuple[str, ...] = ()


_L2_ONLY = "0.0", "1.0"
_NO_L1 = "It supports l1 = 0 only; weights of all labels are kept."
_PER_TOKEN = 'It trains per-token models only: set model = "maxent" or "memm".'
_PASS = "An evaluation follows each pass over the corpus."
_ETA0 = ("# 0: found on a sample of the corpus.", "eta0 = 0.0")

VARIANTS = {
    "AdaGrad": Variant(
        "A tagger trained by AdaGrad, with a proximal step for l1.",
        f"Each weight has its own step size. {_PASS}",
        _ETA0,
    ),
    "BCD": Variant(
        "A tagger trained by block coordinate descent: all weights of a feature at once.",
        "For hundreds of labels and few sequences: a sweep visits each sequence once for each of "
        "its features.",
        learning=(
            "# L-BFGS iterations without l1 on the final non-zero weights.",
            'polish = {"iterations": 5}',
        ),
    ),
    "GIS": Variant(
        "A tagger whose labels do not depend on each other, trained by GIS.",
        _PER_TOKEN,
        penalty=("0.5", "0.1"),
        patience=10,
        base=MAXENT,
    ),
    "Hybrid": Variant(
        "A tagger trained by OWL-QN on a growing sample of the corpus.",
        "The first iterations cost less; the last ones are those of OWL-QN.",
        ("# Factor of the sample size from iteration to iteration.", "growth = 1.5"),
    ),
    "NewtonCG": Variant(
        "A tagger trained by Newton's method with conjugate gradients.",
        f"{_NO_L1} It reaches the minimum in few steps, each of several products with the Hessian.",
        (
            "# Sequences whose marginals are stored for the products; -1: all, 0: least memory.",
            "stored = -1",
        ),
        _L2_ONLY,
    ),
    "OEG": Variant(
        "A tagger trained by online exponentiated gradient.",
        f"{_NO_L1} A baseline, slow for a small l2. All tokens need a gold label. It stores "
        "potentials and marginals of all tokens. An evaluation follows each ten passes.",
        ("# The first step size of each sequence; the solver adapts it.", "first_step = 0.5"),
        _L2_ONLY,
    ),
    "Perceptron": Variant(
        "A tagger trained by the averaged perceptron.",
        "It is fast and has no hyperparameter, but its probabilities are meaningless.",
        penalty=("0.0", "0.0"),
    ),
    "RPROP": Variant(
        "A tagger trained by RPROP+, on the whole corpus at a time.",
        "Steps follow only the signs of the gradient. It needs more passes than OWL-QN and has no "
        "hyperparameter to tune.",
        (
            "# false for RPROP-, which does not step back where a sign changes.",
            "backtracking = true",
        ),
        patience=10,
    ),
    "SAG": Variant(
        "A tagger trained by stochastic average gradient with non-uniform sampling.",
        "It converges to the minimum and has no hyperparameter to tune; it stores marginals of all "
        "tokens. An evaluation follows each ten passes.",
        (
            '# "nus*" (half of the draws by curvature), "nus" or "uniform".',
            'sampling = "nus*"',
            '# Or "saga".',
            'method = "sag"',
            '# Or "memory", the criterion of the paper: the sum of the stored gradients.',
            'stopping = "gradient"',
        ),
    ),
    "SCGIS": Variant(
        "A tagger whose labels do not depend on each other, trained by SCGIS.",
        _PER_TOKEN,
        ("# Updates the weights of a feature at once, which is faster.", "by_test = true"),
        penalty=("0.5", "0.1"),
        base=MAXENT,
    ),
    "SGD": Variant(
        "A tagger trained by stochastic gradient descent, with averaged weights.",
        f"{_NO_L1} {_PASS}",
        (
            'schedule = "annealed"',
            *_ETA0,
            "# Weights are the mean of the iterates from this pass on; 0 for the last iterate.",
            "average_from = 2",
        ),
        _L2_ONLY,
    ),
    "SGDL1": Variant(
        "A tagger trained by SGD with the cumulative l1 penalty.",
        f"It is accurate after a few passes, but does not reach the exact minimum. {_PASS}",
        (*_ETA0, "# Factor of the step size over a pass.", "decay = 0.85"),
    ),
    "SMD": Variant(
        "A tagger trained by stochastic meta-descent.",
        f"{_NO_L1} Each weight has an adaptive gain. Lower eta0 if training reports divergence.",
        ("eta0 = 0.02", "mu = 0.1", "batch = 8"),
        _L2_ONLY,
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
        *wrap(variant.note, 97),
        "Settings that are left out have their defaults.",
    ]
    block = [f'@crf_solvers = "spacy_sparsecrf.{solver}.v1"', *variant.settings]
    l1, l2 = variant.penalty
    for pattern, lines in (
        (r"\A(#.*\n)+", [f"# {line}".rstrip() for line in header]),
        (r"(?<=\.solver\]\n)(.+\n)+", block),
        (r"(?<=\[components\.crf\.learning\]\n)", list(variant.learning)),
        (r"^l1 = .*\n", [f"l1 = {l1}"]),
        (r"^l2 = .*\n", [f"l2 = {l2}"]),
        (r"^patience = .*\n", [f"patience = {variant.patience}"]),
    ):
        new = "".join(f"{line}\n" for line in lines)
        found = re.search(pattern, text, re.MULTILINE)
        assert found is not None
        text = text[: found.start()] + new + text[found.end() :]
    return text
