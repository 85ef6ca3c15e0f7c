"""What was learnt: active weights by hash, their names, what they say, and their files."""
