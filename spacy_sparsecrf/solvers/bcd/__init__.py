"""Block coordinate descent, with its kernels and its block-wise view of the loss."""
