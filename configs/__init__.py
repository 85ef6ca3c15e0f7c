"""Configs that come with the package, installed as `spacy_sparsecrf.configs`."""
