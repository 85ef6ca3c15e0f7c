"""Sentences that the tests of the benchmarks share, a row a token."""

SENTENCES = [
    [["the", "DT", "B"], ["cat", "NN", "I"], ["sat", "VB", "O"]],
    [["dogs", "NN", "B"]],
    [["the", "DT", "B"], ["The", "DT", "I"], ["dog", "NN", "I"], ["5", "CD", "O"]],
]
LETTERS = [[[letter, letter.upper()] for letter in word] for word in ("abba", "cab", "a", "bac")]
# Tokens have different numbers of these tests.
FLAGS = "b:", "u:lower[0]", "u:is_title[0]", "u:is_digit[0]"
