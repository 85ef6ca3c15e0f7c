"""Doc -> observation tests."""
