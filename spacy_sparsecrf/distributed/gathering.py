"""Reading of a corpus by a pool of workers, and merging of their indices."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, cast

import numpy as np
from spacy.tokens.underscore import Underscore

from ..crf.corpus import index
from ..crf.corpus.numbering import Ints, Longs
from ..crf.parallel import WorkerPool, cut
from ..pipeline.corpus_files import reader_block, shard_files
from ..pipeline.data_checks import DataChecks
from ..pipeline.encoding import EncodedExamples, Job, reads_word_labels
from ..pipeline.features.featurizer import Featurizer
from ..pipeline.features.word_labels import learn_word_labels
from ..pipeline.settings import Setup
from ..progress import Task
from .partition import BEGINNING
from .partitioned_loss import Partition
from .tree import count_leaves, cut_leaves
from .worker import Brief, EncodingPlan, Survey, Worker

# Features that are merged at a time, on average at most.
_MERGED = 1 << 24
# Tokens of a shard, on average at most: fewer shards cost less.
_SHARD_TOKENS = 1 << 17


def divide(
    job: Job, n_threads: int, pool_of: Callable[[Callable[[], Any]], WorkerPool]
) -> EncodedExamples:
    """Read the files of a corpus with a pool of workers, which keep the sequences.

    n_threads: of each worker; pool_of: creates a pool from a factory of workers.
    RAISES: SparseCRFError for settings that need the whole corpus in one place, and for files or
        examples that cannot be read.
    """
    nlp, setup = job.nlp, job.setup
    block = reader_block(setup.name, nlp)
    files = shard_files(setup.name, job.shards, block)
    settings = setup.settings.model_copy(update={"n_threads": n_threads})
    assert nlp is not None
    brief = Brief(
        language=type(nlp),
        vocab=nlp.vocab,
        tokenizer=nlp.tokenizer,
        setup=setup._replace(settings=settings),
        upstream=job.upstream,
        block=block,
        files=[file.absolute() for file in files],
        label_ids=job.label_ids,
        extensions=Underscore.get_state(),
    )
    sizes = np.array([file.stat().st_size for file in files], np.int64)
    return gather(pool_of(partial(Worker, brief)), setup, sizes, job.checks)


def gather(pool: WorkerPool, setup: Setup, sizes: Longs, checks: DataChecks) -> EncodedExamples:
    """Read a corpus with a pool, number its features, and encode it.

    sizes: [F] int64, bytes of its files; checks: counts its examples.
    RAISES: SparseCRFError for examples that cannot be used for training.
    """
    n = len(pool)
    with Task("Reading corpus"):
        runs = [*cut(sizes, n), *[(0, 0)] * n][:n]
        if reads_word_labels(setup):
            _learn_word_labels(pool, runs, cast("Featurizer", setup.features))
        surveys: list[Survey] = pool.ask("survey", runs)
    for survey in surveys:
        checks.join(survey.checks)
    labels = list(dict.fromkeys(label for survey in surveys for label in survey.labels))
    lengths = [of_file for survey in surveys for of_file in survey.lengths]
    whole = np.concatenate([np.zeros(0, np.int64), *lengths])
    if not len(whole):
        return EncodedExamples()
    with Task("Merging features"):
        merged, contexts = _index(pool, runs, surveys, setup.settings.learning.min_freq)
    starts = np.append(0, np.cumsum([len(of_file) for of_file in lengths]))
    n_shards = count_leaves(int(whole.sum()), _SHARD_TOKENS)
    shard_ptr = cut_leaves(whole, n_shards)
    plan = pool.share(EncodingPlan(labels, merged, contexts, starts, shard_ptr))
    n_first = 1 + int(np.searchsorted(np.cumsum(whole)[:-1], BEGINNING))
    bounds = list(pairwise(n_shards * i // n for i in range(n + 1)))
    with Task("Encoding corpus"):
        args = [(plan, *shards, 0 if i else n_first) for i, shards in enumerate(bounds)]
        loaded = pool.ask("load", args, keep=True)
    final = loaded[0][0]
    checks.n["missing"] = sum(n_missing for _, n_missing in loaded)
    if checks.n["missing"] == checks.n["tokens"]:
        return EncodedExamples(final)
    corpus = index.joined(merged, (), all(survey.start_label for survey in surveys))
    return EncodedExamples(final, corpus, Partition(pool, shard_ptr, bounds))


def _learn_word_labels(pool: WorkerPool, runs: list[tuple[int, int]], features: Featurizer) -> None:
    """Learn the labels of words in all files, and send them to the workers.

    runs: files of each worker. Folds depend on the order of files, not on the workers.
    """
    sizes = np.cumsum(np.concatenate(pool.ask("sizes", runs)), axis=0)
    starts = np.concatenate((np.zeros((1, 2), np.int64), sizes))
    table = learn_word_labels(pool.ask("word_counts", [(*run, starts) for run in runs]))
    features.take_word_labels(table.classes)
    args = pool.share(table), starts
    pool.ask("take_word_labels", [args] * len(pool), keep=True)


def _index(
    pool: WorkerPool, runs: list[tuple[int, int]], surveys: list[Survey], min_freq: int
) -> tuple[index.Index, list[Ints]]:
    """Return the index of the whole corpus, and the contexts of the rows of each file.

    runs: files surveyed by each worker.
    Features are merged by ranges of hashes, so that few that are too rare are in memory at once.
    """
    n_features = sum(survey.n_features for survey in surveys)
    n_ranges = 1 + n_features // _MERGED
    bounds = [2**64 * i // n_ranges for i in range(n_ranges + 1)]
    ranges: list[index.FeatureCounts] = []
    for low, high in pairwise(bounds):
        of_workers = pool.ask("features", [(*run, low, high - 1) for run in runs])
        ranges.append(index.merged_features(of_workers, min_freq))
    features = index.FeatureCounts(*map(np.concatenate, zip(*ranges, strict=True)))
    whole, numbers = index.merged_rows([of_file for survey in surveys for of_file in survey.rows])
    merged, _, context = index.build_index(features, whole, min_freq)
    return merged, [context[own] for own in numbers]
