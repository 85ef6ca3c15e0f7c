"""Decoding: labels and probabilities by a model and the features of tokens."""
