"""Sequences of features, without Docs: reading, training and prediction."""
