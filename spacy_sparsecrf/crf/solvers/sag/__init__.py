"""Stochastic average gradient (SAG, SAGA), with its kernels and its memory of gradients."""
