"""From a model and the tests of tokens to labels and probabilities."""
