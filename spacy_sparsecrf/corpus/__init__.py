"""Sequences as arrays: hashed features, contexts, labels; in memory or in files."""
