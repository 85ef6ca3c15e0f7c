"""Benchmarks of the sparse CRF and of peers; run `python -m bench NAME` in `project/`."""
