"""Block coordinate descent, with its kernels and its view of the loss."""

from ...old_paths import serve_old_names

serve_old_names(__name__)
