"""Benchmarks of the sparse CRF and of other toolkits: `python -m bench NAME` in the project."""
