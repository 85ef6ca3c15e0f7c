"""The command line: `python -m spacy_sparsecrf`."""
