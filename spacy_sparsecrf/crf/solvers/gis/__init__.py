"""Generalised iterative scaling (GIS, SCGIS), with its kernels."""
