"""Trust-region Newton with conjugate gradients."""
