"""Explain, calibrate and edit trained models, and search for their settings."""
