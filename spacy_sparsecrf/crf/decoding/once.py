"""Names that form at most one run in a sequence of labels, in the standard library alone.

The steps of a chain depend on one label before, but this constraint on all of them. A chain whose
states are (label, subset of names begun) expresses it, with Y 2^K states for K names. So only names
that a best path repeats are tracked: decremental state space relaxation (Boland, Dethridge &
Dumitrescu 2006; Righini & Salani 2008). The best path of a relaxation is the best of all if it
repeats no name.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from ...errors import Errors, SparseCRFError, Warnings, nearest, warn

MOST_STATES = 2048
"""Maximum of Y 2^K: a matrix of pairs of states takes 32 MB, in each context."""

Names: TypeAlias = Iterable[str] | None


class Once:
    """Names of labels or types that form at most one run each in a sequence.

    A run is consecutive tokens with a label. In IOB2, BILUO or BIOES, a name that is no label is a
    type, and a run is one span, as `Scheme.decode` finds them: B-X begins another.

    labels: [Y]; names: a list of them, or None; only_types: whether names are types, also if they
    are labels; where: setting, for messages. RAISES: SparseCRFError for an unknown name.
    """

    def __init__(
        self, labels: Sequence[str], names: Names, only_types: bool = False, where: str = "once"
    ) -> None:
        chosen = {*(names or ())}
        parts = [label.partition("-") for label in labels]
        types = [kind if letter in (*"BILUES",) else "" for letter, _, kind in parts]
        label_names = set[str]() if only_types else {*labels}
        names_of_all = {*types, *label_names} - {""}
        for name in sorted(chosen - names_of_all):
            message = Errors.SC419.format(
                where=where,
                name=name,
                nearest=nearest(name, names_of_all),
                known=", ".join(sorted(names_of_all)),
            )
            raise SparseCRFError(message)
        listed = {*types} & chosen - label_names
        # A label of a type that is listed belongs to it: a span has one run of the label at most.
        name_of = [
            kind if kind in listed else label if label in chosen & label_names else ""
            for label, kind in zip(labels, types, strict=True)
        ]

        def begun(previous: int, y: int) -> str:
            name = name_of[y]
            is_inside = labels[previous].startswith(("B", "I")) and labels[y].startswith(
                ("I", "L", "E")
            )
            goes_on = name_of[previous] == name and (is_inside if name in listed else previous == y)
            return "" if goes_on else name

        ids = range(len(labels))
        # The last row, also with index -1, is of the first token: [Y + 1, Y].
        self.begun = [*([begun(previous, y) for y in ids] for previous in ids), name_of]

    def repeats(self, path: Sequence[int]) -> list[str]:
        """Return the names that a path begins again, once for each time."""
        steps = pairwise((-1, *path))
        begun = [name for previous, y in steps if (name := self.begun[previous][y])]
        return [name for k, name in enumerate(begun) if name in begun[:k]]

    def best(self, chain: Any) -> list[int]:
        """Return the best labels of a `PlainSequence`, or of a `Posterior` of one sequence."""
        return self.relax(chain, [chain.labels()])[0]

    def relax(self, chain: Any, paths: list[list[int]], **n: int) -> list[list[int]]:
        """Find the best paths that repeat no name; if there is none, repetitions are fewest.

        chain: see `best`; paths: the best of all; n: their number, of a `Posterior`.
        """
        tracked = list[str]()
        n_labels = len(self.begun[-1])
        while untracked := [x for path in paths for x in self.repeats(path) if x not in tracked]:
            m = 2 << len(tracked)
            if chain.n_contexts * (n_labels * m) ** 2 > MOST_STATES**2:
                warn(Warnings.SCW404.format(name=untracked[0], n=len(paths[0]), most=len(tracked)))
                break
            # One at a time: without its repetitions, others may vanish.
            tracked.append(untracked[0])
            bit_of = {name: 1 << k for k, name in enumerate(tracked)}
            bits = [[bit_of.get(name, 0) for name in row] for row in self.begun]
            paths = chain.relaxed_paths(bits, m, **n)
        for name in tracked:
            if name in self.repeats(paths[0]):
                warn(Warnings.SCW403.format(name=name, n=len(paths[0])))
        return paths
