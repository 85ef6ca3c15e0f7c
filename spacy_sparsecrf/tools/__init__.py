"""Tools of users: commands, analysis of models, pages and example data."""
