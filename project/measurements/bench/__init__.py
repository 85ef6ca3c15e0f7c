"""Benchmarks of the sparse CRF and of peers: `python -m bench NAME` in `project/measurements/`."""
