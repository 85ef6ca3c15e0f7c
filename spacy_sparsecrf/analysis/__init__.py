"""Explain, calibrate, edit and compare trained models."""
