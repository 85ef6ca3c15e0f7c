"""A record of results before the redesign, and a comparison with it; its last stage removes this."""
