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
    SC903 = (
        "A corpus that is divided does not go together with {setting}. Remove them, or do not "
        "divide it: remove [initialize.components.NAME] shards, and set [components.NAME.engine] "
        '@crf_engines = "spacy_sparsecrf.Threads.v1".'
    )
    SC904 = "[components.NAME.engine] {key} = {value} must be a whole number of at least {low}."
    SC905 = (
        "The engine spacy_sparsecrf.Ray.v1 needs Ray, which is not installed. Install it by "
        "`pip install 'spacy-sparsecrf[ray]'`, here and on each machine of the cluster."
    )
    SC906 = (
        "Component '{name}' cannot learn from a corpus that is divided, with {setting} as it is "
        "set. Set it to its default (of solvers: OWLQN.v1, RPROP.v1, Hybrid.v1, "
        "SGDL1.v1 or Perceptron.v1), or do not divide the corpus: remove "
        "[initialize.components.{name}] shards, and set [components.{name}.engine] @crf_engines = "
        '"spacy_sparsecrf.Threads.v1".'
    )
    SC907 = (
        "Workers were lost {n} times, the last time because: {reason} Look for what ends them, "
        "such as a lack of memory, or raise [components.NAME.engine] max_restarts. Training goes "
        "on from its last step by the same command, if [initialize.components.NAME] checkpoint is "
        "set."
    )
    SC908 = (
        "The Ray cluster failed: {reason} Training goes on from its last step by the same command, "
        "if [initialize.components.NAME] checkpoint is set."
    )
    SC909 = (
        "[components.NAME.engine] address = {address!r}: no Ray cluster can be reached or started "
        "there: {reason} Start one by `ray start --head`, or set address = null for one of its own."
    )
    SC910 = (
        "The Ray cluster has no free cores for [components.NAME.engine] num_workers = "
        "{num_workers} with cpus_per_worker = {cpus_per_worker}. Change these, add machines, or "
        "wait until others have ended."
    )
    SC911 = (
        "A path of l1 is not learnt from a corpus that is divided. Do not divide it: remove "
        "[initialize.components.NAME] shards, and set [components.NAME.engine] "
        '@crf_engines = "spacy_sparsecrf.Threads.v1".'
    )
    SC920 = (
        "{path} is no file that can be annotated. Name .spacy files, .txt files with a Doc a line, "
        "or folders of these."
    )
    SC921 = (
        "{path} and {other} would both be written to one file of the folder --output. Rename one "
        "of them, or annotate them by two commands."
    )
