"""Generalised iterative scaling (GIS, SCGIS), with its kernels."""

from ...old_paths import serve_old_names

serve_old_names(__name__)
