"""Training that is shared among processes: who asks whom for what."""
