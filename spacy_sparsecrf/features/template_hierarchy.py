"""Stages and parents of templates, by a schedule, and of the features that they hash."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..corpus.encoded import EncodedCorpus, Observations
from ..corpus.numbering import Hashes, RowIndex
from ..corpus.schedule import FeatureAncestry, Stage, TemplateTree
from ..errors import Errors, SparseCRFError
from .featurizer import Featurizer
from .plan import TemplatePlan
from .templates import Template, parse_family

# Column of a plan, its template, columns of its parents.
Relation = tuple[int, int, list[int]]


class TemplateHierarchy(NamedTuple):
    """Stages of P templates, by position, and positions of the parents of each template."""

    stages: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, templates: Sequence[Template], texts: Sequence[str], schedule: Sequence[Stage]
    ) -> "TemplateHierarchy":
        """Return the stages and parents of templates under a schedule.

        A template belongs to the first stage that names it. The stage may declare its parents. If
        not, candidates are the templates of earlier stages that read at least one of its attributes
        (or the same attributes with another kind) and no other attributes. A candidate is a parent
        unless another candidate reads all of its attributes and more.

        texts: the templates as they were written, by `Template.number` from 1.
        RAISES: SparseCRFError for patterns that match no template, stages without new templates,
            templates in no stage, and declared parents that cannot be parents.
        """
        naming = _Naming(templates, texts)
        stages = naming.stages(schedule)
        declared: dict[int, tuple[int, ...]] = {}
        for s, stage in enumerate(schedule):
            for pattern, own in stage.parents.items():
                parents = [t for name in own for t in naming.named(name, s)]
                for child in naming.named(pattern, s):
                    if stages[child] == s:
                        for parent in parents:
                            _check_parent(templates, stages, child, parent, s)
                        declared[child] = tuple(dict.fromkeys(parents))
        derived = (_derived(templates, stages, t) for t in range(len(templates)))
        return cls(tuple(stages), tuple(declared.get(t, own) for t, own in enumerate(derived)))


class _Naming:
    """Finds the templates that patterns name: see `TemplateHierarchy.of`."""

    def __init__(self, templates: Sequence[Template], texts: Sequence[str]) -> None:
        self._templates = templates
        self._names = [(str(t), "".join(texts[t.number - 1].split())) for t in templates]

    def named(self, pattern: str, stage: int) -> list[int]:
        """Return the positions, at least one, of the templates that a pattern of a stage names."""
        glob = re.compile(".*".join(map(re.escape, "".join(pattern.split()).split("*"))))
        written = _keys(pattern)
        found = [
            t
            for t, (names, own) in enumerate(zip(self._names, self._templates, strict=True))
            if any(map(glob.fullmatch, names)) or written & {(own.kind, own.key), ("*", own.key)}
        ]
        if not found:
            known = ", ".join(name for name, _ in self._names[:40])
            raise SparseCRFError(Errors.SC330.format(stage=stage + 1, pattern=pattern, known=known))
        return found

    def stages(self, schedule: Sequence[Stage]) -> list[int]:
        """Return the first stage that names each template."""
        stages = [-1] * len(self._names)
        for s, stage in enumerate(schedule):
            named = {t for pattern in stage.templates for t in self.named(pattern, s)}
            new = [t for t in named if stages[t] < 0]
            if not new:
                raise SparseCRFError(Errors.SC335.format(stage=s + 1))
            for t in new:
                stages[t] = s
        left = [name for (name, _), s in zip(self._names, stages, strict=True) if s < 0]
        if left:
            raise SparseCRFError(Errors.SC331.format(templates=", ".join(left)))
        return stages


def _keys(pattern: str) -> set[tuple[str, str]]:
    """Parse a pattern as templates. RETURNS: their kinds (* for any) and keys; empty if invalid."""
    try:
        return {(template.kind, template.key) for template in parse_family(pattern, 1)}
    except SparseCRFError:
        return set()


def _check_parent(
    templates: Sequence[Template], stages: Sequence[int], child: int, parent: int, stage: int
) -> None:
    """Raise SparseCRFError for a parent of no earlier stage, or with attributes its child lacks."""
    more = [str(t) for t in templates[parent].attributes if t not in templates[child].attributes]
    if stages[parent] >= stage:
        reason = f"it is not of a stage before, but of stage {stages[parent] + 1}"
    elif more:
        reason = f"it reads {', '.join(more)}, which {templates[child]} does not"
    else:
        return
    names = {"parent": templates[parent], "child": templates[child]}
    raise SparseCRFError(Errors.SC332.format(stage=stage + 1, **names, reason=reason))


def _derived(templates: Sequence[Template], stages: Sequence[int], child: int) -> tuple[int, ...]:
    """Return the parents of a template without declared parents."""
    attributes = set(templates[child].attributes)
    by_attributes: dict[frozenset[object], int] = {}
    for t, template in enumerate(templates):
        own = frozenset(template.attributes)
        if own and own <= attributes and stages[t] < stages[child]:
            by_attributes.setdefault(own, t)
    return tuple(
        t for own, t in by_attributes.items() if not any(own < other for other in by_attributes)
    )


class TemplateTreeRecord:
    """Record of the parents of features.

    features: the featurizer; hierarchy: of its templates. Stores about 40 bytes for each feature of
    later stages, and 12 for each of its parents.
    """

    def __init__(self, features: Featurizer, hierarchy: TemplateHierarchy) -> None:
        self._features, self._hierarchy = features, hierarchy
        self._plan: TemplatePlan | None = None
        self._relations: list[Relation] = []
        self._of_values: list[Relation] = []
        # Rows of a feature and its parents, by template.
        self._found: dict[int, RowIndex] = {}

    def add(self, found: Observations) -> None:
        """Record the observations of some Docs."""
        # The first Docs may change the plan, by the width of vectors.
        if self._features.plan is not self._plan:
            self._plan = self._features.plan
            args = self._plan, self._features, self._hierarchy
            self._relations, self._of_values = _relations(*args)
        for column, template, parents in self._relations:
            rows = found.hashes[:, [column, *parents]]
            self._add(template, rows[rows[:, 0] != 0])
        if found.n_tokens:
            # Real values and templates without attributes have the same hashes at each token.
            for number, template, parents in self._of_values:
                row = found.value_keys[number], *found.hashes[0, parents]
                self._add(template, np.array([row], np.uint64))
            self._of_values = []

    def _add(self, template: int, rows: Hashes) -> None:
        """Record features of a template, each with its parents: [n, 1 + k] uint64."""
        self._found.setdefault(template, RowIndex(rows.shape[1])).add(rows)

    def tree(self, corpus: EncodedCorpus) -> TemplateTree:
        """Return the stages and parents of the features of a corpus built from the same Docs."""
        templates = self._features.parsed
        descents = [
            FeatureAncestry(
                self._hierarchy.stages[t], templates[t].kinds, found.rows[:, 0], found.rows[:, 1:]
            )
            for t, found in self._found.items()
        ]
        return TemplateTree.of(corpus, descents)


def _relations(
    plan: TemplatePlan, features: Featurizer, hierarchy: TemplateHierarchy
) -> tuple[list[Relation], list[Relation]]:
    """Return the columns of templates of later stages with the columns of their parents.

    A parent reads a subset of the same columns, hence the same value of a multi-valued attribute.
    RETURNS: relations of hashed features, and of real values; parents of real values read nothing.
    """
    hashed = [t for t, template in enumerate(features.parsed) if not template.is_real]
    columns: defaultdict[int, list[int]] = defaultdict(list)
    for p, owner in enumerate(plan.owners.tolist()):
        columns[hashed[owner]].append(p)
    every = plan.templates.conjunctions
    parts = [
        frozenset(
            (int(every.columns[k]), int(every.part_offsets[k]), int(every.part_anchors[k]))
            for k in range(every.part_ptr[p], every.part_ptr[p + 1])
        )
        for p in range(len(every.seeds))
    ]
    later = {
        t: [q for parent in hierarchy.parents[t] for q in columns[parent]]
        for t, stage in enumerate(hierarchy.stages)
        if stage > 0
    }
    of_features = [
        (p, t, [q for q in parents if parts[q] <= parts[p]])
        for t, parents in later.items()
        for p in columns[t]
    ]
    of_values = [(v, t, later[t]) for v, t in enumerate(plan.value_owners) if t in later]
    return of_features, of_values
