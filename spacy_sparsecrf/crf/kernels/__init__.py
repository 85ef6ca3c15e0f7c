"""numba kernels; this package imports only numba and numpy."""
