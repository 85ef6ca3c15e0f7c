"""Doc -> observation features."""
