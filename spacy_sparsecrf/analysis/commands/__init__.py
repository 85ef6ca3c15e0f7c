"""Commands that analyse trained models."""
