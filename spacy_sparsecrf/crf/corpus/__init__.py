"""Sequences as arrays: hashed features, contexts, labels."""
