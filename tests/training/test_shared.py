"""What a member of a run tells of its part."""

from dataclasses import replace

import numpy as np

from spacy_sparsecrf.distributed.training import WorkerShard

from ..reference import random_problem


def test_digests_do_not_depend_on_the_numbers_of_sets() -> None:
    problem, _ = random_problem(3, 3, [4, 3, 2])
    corpus = problem.corpus
    corpus.labels[[1, 5]], corpus.labels[7] = [-2, -3], -1
    sets = np.array([[True, True, False], [False, True, True]])
    one, other, third = WorkerShard(), WorkerShard(), WorkerShard()
    one.corpus = replace(corpus, sets=sets)
    swapped = corpus.labels.copy()
    swapped[[1, 5]] = [-4, -2]
    other.corpus = replace(corpus, labels=swapped, sets=np.array([sets[1], ~sets[1], sets[0]]))
    third.corpus = replace(corpus, sets=sets[::-1])
    for share in (one, other, third):
        share.shard_ptr = np.array([0, 1, 1, 3])
    assert one.digests() == other.digests()
    assert one.digests()[1:] != third.digests()[1:] and one.digests()[0] != third.digests()[0]
