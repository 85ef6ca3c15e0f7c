"""Crafted files and inputs, which must be refused or do no harm."""
