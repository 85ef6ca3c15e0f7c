"""Conversion between annotation and labels, one module for each type of annotation."""
