"""What users start: commands, analysis of models, pages and example data."""
