"""Annotation <-> labels; a file a kind of annotation."""
