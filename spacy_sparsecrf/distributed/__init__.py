"""Train on a corpus that is partitioned among workers."""
