"""Sequences as arrays: hashed tests, contexts, labels; in memory or in files."""
