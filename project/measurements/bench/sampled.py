"""Processor seconds of a module's run by group of functions, from samples of the main thread.

    python -m bench.sampled spacy train ...

runs `python -m spacy train ...`, and writes the seconds as JSON in the last line.
"""

import json
import re
import runpy
import sys
import time
from collections import Counter
from functools import cache
from threading import Event, Thread, main_thread
from traceback import walk_stack
from types import CodeType

# Patterns of FILE:FUNCTION. A sample belongs to the first group with a function on the stack.
GROUPS = {
    "start, imports": "importlib|numba_support/",
    "evaluations": "spacy/training/loop.py:evaluate",
    "saving": "spacy/language.py:to_disk",
    "screening, working sets": "loss/chain_loss.py:restrict|run.py:_restrict|run.py:_regrow",
    "warm start": "training/run.py:_warm_up",
    "inference, gradients": "loss/working.py:",
    "Docs, features": "training/corpus.py:|loop.py:create_train_batches|example_reader.py:|"
    "pipeline/encoding.py:|data_checks.py:|pipeline/features/|crf/corpus/",
    "rest": "",
}


@cache
def group_of(codes: tuple[CodeType, ...]) -> str:
    """Return the group of the functions on a stack."""
    names = "\n".join(f"{code.co_filename}:{code.co_name}" for code in codes)
    return next(group for group, pattern in GROUPS.items() if re.search(pattern, names))


def _sample(seconds: Counter[str], ended: Event) -> None:
    """Add the seconds since the previous sample, or the start, to the main thread's group."""
    before = 0.0
    while not ended.wait(0.004):
        frame = sys._current_frames()[main_thread().ident or 0]
        codes, now = tuple(f.f_code for f, _ in walk_stack(frame)), time.process_time()
        seconds[group_of(codes)] += now - before  # type: ignore[assignment]
        before = now


def main() -> None:
    """Run a module with its arguments."""
    seconds, ended = Counter[str](), Event()
    thread = Thread(target=_sample, args=(seconds, ended), daemon=True)
    thread.start()
    del sys.argv[0]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    finally:
        ended.set()
        thread.join()
        sys.stdout.write(f"{json.dumps(seconds)}\n")


if __name__ == "__main__":
    main()
