"""The engine with workers on one machine or several, by Ray, which only training imports."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens.underscore import Underscore
from spacy.training import Example

from ..errors import Errors, SparseCRFError
from ..features.naming import NameRecord
from ..parallel import Team
from ..pipeline.compiling import Compiled
from ..pipeline.engines import Job
from ..pipeline.settings import LearningSettings
from ..pipeline.shards import reader_block, shard_files
from ..pipeline.upstream import annotating
from ..registry import crf_engines

# What a solver may need that no one has where each worker has a part of the corpus.
_NEEDS_ALL = {"memory", "examples", "products", "single tokens"}
# Settings of the block `learning` that are about the whole corpus.
_UNSHARED = "observed_only", "constrained", "entity_ratio", "schedule", "stack"


@crf_engines("spacy_sparsecrf.Ray.v1")
@dataclass(frozen=True, kw_only=True)
class Ray:
    """Workers of a Ray cluster, each of which reads and holds a part of the corpus.

    num_workers: how many, of each of which cpus_per_worker cores are asked; address: of a cluster,
    "auto" for the one that this machine belongs to; None: one is started here, and stopped in the
    end; max_restarts: how often, in all, a worker may be lost and replaced.
    RAISES: SparseCRFError for a number out of range.
    """

    num_workers: int = 2
    address: str | None = None
    cpus_per_worker: int = 1
    max_restarts: int = 10

    def __post_init__(self) -> None:
        for key, low in (("num_workers", 1), ("cpus_per_worker", 1), ("max_restarts", 0)):
            value = getattr(self, key)
            if value < low:
                raise SparseCRFError(Errors.SC904.format(key=key, value=value, low=low))

    def compile(self, examples: Iterable[Example], job: Job) -> Compiled:
        """Let workers read the files of the corpus, and keep what they have read.

        RAISES: SparseCRFError where Ray is not installed, for settings that need the whole corpus
            in one place, and for files or examples that cannot be read.
        """
        check_shareable(job)
        from .gathering import gather
        from .member import Brief, Member

        nlp, setup, label_ids = job.nlp, job.setup, job.label_ids
        block = reader_block(setup.name, nlp)
        files = shard_files(setup.name, job.shards, block)
        own = replace(setup.settings, n_threads=self.cpus_per_worker)
        assert nlp is not None
        brief = Brief(
            language=type(nlp),
            vocab=nlp.vocab,
            tokenizer=nlp.tokenizer,
            setup=setup._replace(settings=own),
            block=block,
            files=[file.absolute() for file in files],
            labels=label_ids.names,
            fixed=label_ids.is_fixed,
            extensions=Underscore.get_state(),
            named=isinstance(job.read, NameRecord),
        )
        sizes = np.array([file.stat().st_size for file in files], np.int64)
        return gather(self.team(partial(Member, brief)), setup, sizes, job.coverage)

    def team(self, make: Callable[[], Any]) -> Team:
        """Start the workers. make: makes what each of them holds.

        RAISES: SparseCRFError where Ray is not installed, or no cluster can be reached.
        """
        if find_spec("ray") is None:
            raise SparseCRFError(Errors.SC905)
        from .ray_team import RayTeam, Resources

        return RayTeam(Resources(**vars(self)), make)


def check_shareable(job: Job) -> None:
    """Refuse what cannot be learnt where each worker has a part of the corpus.

    RAISES: SparseCRFError that names the setting.
    """
    setup = job.setup
    learning, defaults = setup.settings.learning, LearningSettings()
    block = f"components.{setup.name}"
    wrong = {
        f"[{block}] model": setup.settings.model != "chain",
        f"[{block}.target] overlap": getattr(setup.target, "overlap", None) is not None,
        f"[initialize.{block}] corpus_dir": job.store.on_disk,
        "[training] annotating_components": _is_annotated(setup.name, job.nlp),
        f"[{block}.solver] @crf_solvers": bool(setup.solver.requires & _NEEDS_ALL),
    }
    for key in _UNSHARED:
        is_set = getattr(learning, key) != getattr(defaults, key)
        wrong[f"[{block}.learning] {key}"] = is_set
    for setting, is_wrong in wrong.items():
        if is_wrong:
            raise SparseCRFError(Errors.SC906.format(setting=setting))


def _is_annotated(name: str, nlp: Language | None) -> bool:
    """Whether a component before this one annotates what it learns from."""
    if nlp is None or name not in nlp.component_names:
        return False
    return bool(annotating(nlp, dict(nlp.components)[name]))
