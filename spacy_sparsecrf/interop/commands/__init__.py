"""Commands that convert data and models."""
