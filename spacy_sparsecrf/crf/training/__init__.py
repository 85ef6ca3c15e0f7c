"""Training runs: working sets, polishing, checkpoints."""
