"""Optimisers, one file for each solver."""
