"""numba kernels; they import numba and numpy and nothing else."""
