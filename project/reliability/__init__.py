"""Reliability of the package: crafted files, system faults, interrupted runs."""
