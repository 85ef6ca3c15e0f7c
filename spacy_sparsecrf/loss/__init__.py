"""What a solver minimises: value, gradient and screening of a likelihood."""
