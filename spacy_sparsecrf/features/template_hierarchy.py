"""Stages and parents of templates, by a schedule; and of their features, as they are hashed."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Doc

from ..corpus.encoded import EncodedCorpus, Observations
from ..corpus.schedule import FeatureAncestry, Keys, Stage, TemplateTree
from ..errors import Errors, SparseCRFError
from .featurizer import Featurizer
from .plan import TemplatePlan
from .templates import Template, parse_family

# Column of a plan, the template of it, columns of the parents.
Relation = tuple[int, int, list[int]]


@dataclass(frozen=True)
class TemplateHierarchy:
    """Stages of P templates, by their position, and their parents, positions of templates."""

    stages: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, templates: Sequence[Template], texts: Sequence[str], schedule: Sequence[Stage]
    ) -> "TemplateHierarchy":
        """Find which stage and which parents a schedule gives to templates.

        A template belongs to the first stage that names it. Its parents are those that the stage
        declares; else the templates of stages before that read some of what it reads, or the
        same with another kind, and most of it: of two of which one reads all that the other does,
        only the larger is a parent.

        texts: the templates as they were written, by `Template.number` from 1.
        RAISES: SparseCRFError for patterns that name no template, stages that name none of their
            own, templates that are in no stage, and declared parents that cannot be parents.
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
    """Tells which templates a pattern names: see `TemplateHierarchy.of`."""

    def __init__(self, templates: Sequence[Template], texts: Sequence[str]) -> None:
        self._templates = templates
        self._names = [(str(t), "".join(texts[t.number - 1].split())) for t in templates]

    def named(self, pattern: str, stage: int) -> list[int]:
        """Positions of the templates that a pattern of a stage (from 0) names, at least one."""
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
        """The first stage that names each template."""
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
    """Kinds and keys of the templates that a pattern is, if it is one; * stands for every kind."""
    try:
        return {(template.kind, template.key) for template in parse_family(pattern, 1)}
    except SparseCRFError:
        return set()


def _check_parent(
    templates: Sequence[Template], stages: Sequence[int], child: int, parent: int, stage: int
) -> None:
    """Refuse a parent that is not known before its child, or not by it."""
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
    """The parents of a template where none are declared."""
    attributes = set(templates[child].attributes)
    by_attributes: dict[frozenset[object], int] = {}
    for t, template in enumerate(templates):
        if (
            stages[t] < stages[child]
            and template.attributes
            and attributes.issuperset(template.attributes)
        ):
            by_attributes.setdefault(frozenset(template.attributes), t)
    return tuple(
        t for own, t in by_attributes.items() if not any(own < other for other in by_attributes)
    )


class TemplateTreeRecord:
    """Remembers the parents of features. Called like the featurizer, it gives the same result.

    read: what is called, for a featurizer's observations; features: the featurizer; hierarchy: of
    its templates. It keeps 8 bytes for each feature of later stages, and 8 for each of its parents.
    """

    def __init__(
        self,
        read: Callable[[Sequence[Doc], str], Observations],
        features: Featurizer,
        hierarchy: TemplateHierarchy,
    ) -> None:
        self._read, self._features, self._hierarchy = read, features, hierarchy
        self._plan: TemplatePlan | None = None
        self._relations: list[Relation] = []
        self._of_values: list[Relation] = []
        self._found: defaultdict[int, _Pairs] = defaultdict(_Pairs)

    def __call__(self, docs: Sequence[Doc], sequences: str = "sents") -> Observations:
        """Hash the features of Docs; see `Featurizer`."""
        found = self._read(docs, sequences)
        # The first Docs may tell how many features there are.
        if self._features.plan is not self._plan:
            self._plan = self._features.plan
            args = self._plan, self._features, self._hierarchy
            self._relations, self._of_values = _relations(*args)
        for column, template, parents in self._relations:
            hashes, first = np.unique(found.hashes[:, column], return_index=True)
            kept = hashes != 0
            self._found[template].add(hashes[kept], found.hashes[first[kept]][:, parents])
        if found.n_tokens:
            # Real values, and what is always true, are the same at each token.
            for number, template, parents in self._of_values:
                key = found.value_keys[number : number + 1]
                self._found[template].add(key, found.hashes[:1, parents])
            self._of_values = []
        return found

    def tree(self, corpus: EncodedCorpus) -> TemplateTree:
        """Stages and parents of the features of a corpus that was built of what was read."""
        templates = self._features.parsed
        descents = [
            FeatureAncestry(self._hierarchy.stages[t], templates[t].kinds, *pairs.merged())
            for t, pairs in self._found.items()
        ]
        return TemplateTree.of(corpus, descents)


class _Pairs:
    """Distinct features of a template, each with its parents."""

    def __init__(self) -> None:
        self._added: list[tuple[Keys, Keys]] = []
        self._n_merged = 0

    def add(self, hashes: Keys, parents: Keys) -> None:
        """Add features [n] and their parents [n, k]."""
        self._added.append((hashes, parents))
        if sum(len(features) for features, _ in self._added[1:]) > max(self._n_merged, 1 << 16):
            self._n_merged = len(self.merged()[0])

    def merged(self) -> tuple[Keys, Keys]:
        """All features [n], distinct, and their parents [n, k]."""
        hashes, parents = (np.concatenate(arrays) for arrays in zip(*self._added, strict=True))
        distinct, first = np.unique(hashes, return_index=True)
        self._added = [(distinct, parents[first])]
        return self._added[0]


def _relations(
    plan: TemplatePlan, features: Featurizer, hierarchy: TemplateHierarchy
) -> tuple[list[Relation], list[Relation]]:
    """The columns of templates of later stages, each with those of its parents; real values alike.

    A parent of a feature reads the same columns of values: of an attribute that has several values,
    the same value. Only templates without attributes, always true, are parents of real values.
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
