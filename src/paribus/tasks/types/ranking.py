"""The best of several candidates for a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from paribus.core.settings import FineTuning
from paribus.tasks.prompts import Fields
from paribus.tasks.rows import Rows
from paribus.tasks.types.base import LOSSES, TaskType
from paribus.tasks.types.multiple_choice import MultipleChoice

if TYPE_CHECKING:
    from paribus.data.text import Array


@dataclass(frozen=True)
class Ranking(MultipleChoice):
    """A choice among as many candidates as a text has; the loss is the cross-entropy over them (MT-DNN, arXiv
    1901.11504, section 3). `classes`: of the rows of its table.
    """

    def verbalize(self, fields: Fields, single: bool) -> Any:
        return TaskType.verbalize(self, fields, single)

    def find_unread(self, settings: FineTuning) -> list[str]:
        """The loss is over candidates, not classes."""
        return [*super().find_unread(settings), *LOSSES]

    def check_examples(self, rows: Sequence[Any], key: str) -> None:
        """Every example has a wrong candidate beside the right one."""

    def count_labels(self, rows: Sequence[Any]) -> dict[str, int]:
        """{number of candidates: examples}."""
        return {str(count): found for count, found in sorted(Counter(len(row.options) for row in rows).items())}

    def predict(self, outputs_N: Sequence[Any], rows: Rows, examples: Sequence[Any]) -> Array:
        """int64 [N]: the place of the candidate with the highest score."""
        return np.array([int(np.argmax(scores_K)) for scores_K in outputs_N], np.int64)

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[Any]) -> dict[str, float]:
        """The share of examples whose right candidate has the highest score."""
        return {"accuracy": float(self.find_right(predictions, examples).mean())}

    def find_right(self, predictions: Sequence[Any] | Array, examples: Sequence[Any]) -> Array:
        right_N: Array = np.asarray(predictions) == [row.label for row in examples]
        return right_N
