"""Read and write the formats, models and interfaces of other programs."""
