"""Sparse conditional random fields for spaCy: `nlp.add_pipe("sparse_crf")`."""

__version__ = "0.1.0"
