"""Block coordinate descent, with its kernels and its view of the loss."""
