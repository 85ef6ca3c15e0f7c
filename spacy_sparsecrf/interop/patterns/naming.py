"""Names of the features of patterns."""

from typing import Any

from spacy.vocab import Vocab

from ...corpus.readings import Readings
from ...features.attributes import Value
from ...features.featurizer import PlanFeaturizer
from ...features.naming import CellNames, TokenValues
from ...features.tokens import text_of
from ...model.names import Outside, write_pattern_name, write_shown
from .plan import PatternPlan


class PatternCellNames(CellNames):
    """Names features of patterns. plan: of the patterns; for other arguments see `CellNames`."""

    def __init__(
        self, features: PlanFeaturizer, vocab: Vocab, tokens: TokenValues, *, plan: PatternPlan
    ) -> None:
        super().__init__(features, vocab, tokens)
        self._plan = plan
        seen = self._plan.seen.items()
        self._seen = [(column, see) for column, of_column in seen for see in of_column]

    def _form(self, readings: Readings, p: int) -> str:
        literals = [text.replace("%", "%%") for text in self._plan.patterns[p].literals]
        return write_pattern_name(literals, ["%s"] * (len(literals) - 1))

    def _write(self, value: Value | Outside) -> str:
        assert isinstance(value, str)
        return write_shown(value)

    def _outside(self, p: int, part: int, distance: int) -> str:
        texts = self._plan.dialect.before if distance < 0 else self._plan.dialect.behind
        see = self._plan.patterns[p].macros[part].view.compile()
        return see(texts[abs(distance) - 1])

    def _inside(self, readings: Readings, at: int, column: int) -> str:
        return text_of(super()._inside(readings, at, column))

    def _text(self, reader: Any, text: str) -> Value:
        value: Value = reader.text(text)
        return value

    def _stored(self, readings: Readings, at: int, column: int) -> Value:
        stored = len(self._annotations) + len(self._token_columns)
        column, see = self._seen[column - stored]
        return see(text_of(super()._stored(readings, at, column)))
