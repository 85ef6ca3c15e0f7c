"""Models: active weights by hash, their names, and their files."""
