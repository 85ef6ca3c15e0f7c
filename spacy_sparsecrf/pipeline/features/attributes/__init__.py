"""Attributes of tokens, one file a family; `registry` lists them."""
