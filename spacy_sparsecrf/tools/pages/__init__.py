"""Explanations as pages of HTML."""
