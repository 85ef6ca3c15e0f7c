"""Training runs: working sets, warm starts, stages, streams, paths, checkpoints."""
