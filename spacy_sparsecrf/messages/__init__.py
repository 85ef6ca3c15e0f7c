"""The messages of errors, by what they are about."""
