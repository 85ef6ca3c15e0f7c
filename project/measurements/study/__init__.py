"""A comparison of the solvers by passes over the data and by processor time."""
