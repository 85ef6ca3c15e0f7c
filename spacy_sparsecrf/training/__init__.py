"""Training runs: working sets, warm starts, stages, paths, checkpoints."""
