"""Errors of training that is shared among processes, and of files that share a corpus."""


class ClusterErrors:
    """Messages, see `errors.Errors`."""

    SC900 = (
        "[initialize.components.{name}] shards: there is no .spacy file {pattern!r}. Correct the "
        "path, which is relative to the directory that the command runs in, or write the files."
    )
    SC901 = (
        "[initialize.components.{name}] shards: files are read as [training] train_corpus is, "
        "which has to name a block of [corpora] with a path, such as that of spacy.Corpus.v1."
    )
    SC902 = (
        "[corpora] {key} is about all files together, but component '{name}' reads its training "
        "files one by one. Remove it from the block of the training corpus."
    )
