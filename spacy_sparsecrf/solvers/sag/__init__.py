"""Stochastic average gradient (SAG, SAGA), with its kernels and its memory of gradients."""

from ...old_paths import serve_old_names

serve_old_names(__name__)
