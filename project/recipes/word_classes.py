"""Learn word classes from text: counts of neighbours, singular vectors, k-means.

python word_classes.py text.txt classes.txt --classes 200

The text has a sentence per line and blanks between words. Read the classes with
`own = {"path": "classes.txt", "format": "word2vec"}` in [components.NAME.features.clusters].
"""

import argparse
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def count(lines: Sequence[list[str]], min_count: int, n: int) -> tuple[list[str], Floats]:
    """Count the words to the left and to the right of each word.

    min_count: rarer words have no row; n: number of neighbours with columns of their own, the most
    frequent ones; one column stands for the ends of lines, and one for all other words.
    RETURNS: V words, the most frequent first, and counts [V, 2 (n + 2)].
    """
    found = Counter(word for line in lines for word in line)
    words = [word for word, k in found.most_common() if k >= min_count]
    row = {word: i for i, word in enumerate(words)}
    column = dict(zip(words[:n], range(2, n + 2), strict=False))
    counts = np.zeros((len(words), 2, len(column) + 2), np.float32)
    for line in lines:
        around = [0, *(column.get(word, 1) for word in line), 0]
        for t, word in enumerate(line):
            if word in row:
                counts[row[word], 0, around[t]] += 1
                counts[row[word], 1, around[t + 2]] += 1
    return words, counts.reshape(len(words), -1)


def embed(counts: Floats, n_dimensions: int) -> Floats:
    """Project square roots of frequencies to their leading singular vectors: [V, n_dimensions]."""
    scaled = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
    scaled /= np.maximum(counts.sum(axis=0) ** 0.25, 1)
    vectors = np.linalg.eigh(scaled.T @ scaled)[1][:, -n_dimensions:]
    return np.asarray(scaled @ vectors)


def group(vectors: Floats, weights: Floats, n_classes: int, n_iterations: int) -> NDArray[np.int64]:
    """Assign vectors [V, D] to classes by direction, by k-means with weights [V].

    The first vectors, those of the most frequent words, are the first centres.
    """
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    centres = unit[:n_classes]
    for _ in range(n_iterations):
        nearest = (unit @ centres.T).argmax(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, unit * weights[:, None])
        centres = np.where(sums.any(axis=1, keepdims=True), sums, centres)
        centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    return nearest


def main() -> None:
    """Read a text, and write a word and the number of its class per line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text")
    parser.add_argument("output")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--min-count", type=int, default=3)
    given = parser.parse_args()
    with open(given.text, encoding="utf8") as file:
        words, counts = count([line.split() for line in file], given.min_count, 1000)
    classes = group(embed(counts, 100), np.sqrt(counts.sum(1)), given.classes, 30)
    with open(given.output, "w", encoding="utf8", newline="\n") as file:
        file.writelines(f"{word} {k}\n" for word, k in zip(words, classes, strict=True))


if __name__ == "__main__":
    main()
