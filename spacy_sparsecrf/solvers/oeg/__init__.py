"""Online exponentiated gradient, with its kernels and its dual variables."""

from ...old_paths import serve_old_names

serve_old_names(__name__)
