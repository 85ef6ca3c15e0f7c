"""Training runs: working sets, polishing, stages, checkpoints."""
