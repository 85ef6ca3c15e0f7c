"""Annotated text in columns <-> spaCy Docs; a file a format."""
