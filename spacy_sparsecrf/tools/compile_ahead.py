"""A second process that compiles kernels while the first training, or `warmup`, does.

It trains entities of the default config on three Docs, with kernels as plain Python, which tells
what the training will call, and compiles it from the end, where the other process comes last. With
the argument `warmup`, it then trains what this command does, from the end too.
"""

import pkgutil
import sys
import warnings
from importlib import import_module

import numpy as np

from .. import crf
from ..crf.compilation import watch_compilation
from ..crf.kernels.numba_support.recording import Compilation, recorded
from .cli.warmup import all_kinds, train_and_predict, train_entities

# It takes a quarter of all the time, and is needed early.
_LONGEST = "minibatch_pass"


def main() -> None:
    """Compile what a training compiles, in another order."""
    # A helper has no helper, also where nothing is cached when it begins.
    watch_compilation().has_begun = True
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        compilations = compilations_of_training()
        for compile in compilations:
            compile()
        if sys.argv[1:] == ["warmup"]:
            for config in reversed(list(all_kinds())):
                train_and_predict(config)


def compilations_of_training() -> list[Compilation]:
    """Return what compiles the kernels of a training: the longest, then from the last one on."""
    for module in pkgutil.walk_packages(crf.__path__, f"{crf.__name__}."):
        import_module(module.name)
    with recorded(crf.__name__) as compilations:
        train_entities()
    backwards = reversed(compilations.items())
    ordered = sorted(backwards, key=lambda item: item[0][0] != _LONGEST)
    return [compile for _, compile in ordered]


if __name__ == "__main__":
    main()
