"""Decoding: labels and probabilities from a model and the features of tokens."""
