"""`warmup`: compile all kernels ahead, for images and CI."""

import time

import spacy
from spacy.tokens import Doc
from spacy.training import Example
from wasabi import msg

from ..features.defaults import DEFAULT_TEMPLATES
from ..progress import task, watch_compilation

N_KERNELS = 50  # about as many as are compiled


def warmup() -> None:
    """Compile everything that training and prediction need, into numba's cache.

    The cache is beside the package, or where the environment variable NUMBA_CACHE_DIR says.
    """
    start = time.perf_counter()
    with task("Warming up"):
        watch_compilation(N_KERNELS, with_notice=False)
        _train_and_predict()
    msg.good(f"Kernels are compiled ({time.perf_counter() - start:.1f} s)")


def _train_and_predict() -> None:
    """Train on a corpus that is just large enough to call every kernel, and predict."""
    nlp = spacy.blank("en")
    # Pairs of labels that depend on a word have kernels of their own.
    templates = [*DEFAULT_TEMPLATES, "b:lower[0]"]
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": templates}
    nlp.add_pipe("sparse_crf", config={"features": features})
    words, tags = ["a", "b", "c"], ["X", "Y", "X"]
    docs = [Doc(nlp.vocab, words=words[i:] + words[:i]) for i in range(3)]
    examples = [Example.from_dict(doc, {"tags": tags}) for doc in docs]
    nlp.initialize(lambda: examples)
    nlp.update(examples)
    # A loaded model is decoded by the same compiled kernels.
    nlp.from_bytes(nlp.to_bytes())
    doc = nlp("a b c")
    pipe = nlp.get_pipe("sparse_crf")
    pipe.marginals([doc])  # type: ignore[attr-defined]
    pipe.nbest(doc, 2)  # type: ignore[attr-defined]
    pipe.log_probability(doc, tags)  # type: ignore[attr-defined]
    pipe.span_probabilities(doc, [(0, ["X"])])  # type: ignore[attr-defined]
