"""The conditional random field: corpora, losses, solvers, models and decoding, on arrays."""
