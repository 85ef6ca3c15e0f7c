"""Optimisers; a file a solver."""
