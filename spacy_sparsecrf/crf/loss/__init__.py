"""Losses that solvers minimise: value, gradient and screening of a likelihood."""
