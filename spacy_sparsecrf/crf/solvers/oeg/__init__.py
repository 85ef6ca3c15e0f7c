"""Online exponentiated gradient, with its kernels and its dual variables."""
