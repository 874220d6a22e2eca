"""A class for each of several texts that belong together, such as all answers to one question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.tasks.examples import Grouped
from paribus.tasks.metrics import OF_CLASSES
from paribus.tasks.prompts import Fields
from paribus.tasks.types.classification import Classification, ClassNames

if TYPE_CHECKING:
    from paribus.data.text import Array

WHOLE = "em"  # share of the groups in which every answer is right


@dataclass(frozen=True)
class GroupedClassification(Classification):
    """A classification whose metric `em` counts groups that are right as a whole (MultiRC, Khashabi et al. 2018)."""

    known_metrics: ClassVar[tuple[str, ...]] = (*OF_CLASSES, WHOLE)
    example_class: ClassVar[type] = Grouped

    def verbalize(self, fields: Fields, single: bool) -> GroupedNames:
        return GroupedNames(fields, single, self.classes, self.metrics)

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[Any]) -> dict[str, float]:
        found_N = np.asarray(predictions)
        found_N = found_N.argmax(-1) if found_N.ndim == 2 else found_N
        wrong = {row.group for row, found in zip(examples, found_N, strict=True) if found != row.label}
        plain = Classification(self.classes, tuple(name for name in self.metrics if name != WHOLE))
        share = 1 - len(wrong) / len({row.group for row in examples})
        values = {**plain.score(found_N, examples), WHOLE: share}
        return {name: values[name] for name in self.metrics}


@dataclass(frozen=True)
class GroupedNames(ClassNames):
    """The same in words."""

    known_metrics: ClassVar[tuple[str, ...]] = GroupedClassification.known_metrics
    example_class: ClassVar[type] = Grouped

    @property
    def plain(self) -> GroupedClassification:
        return GroupedClassification(self.classes, self.metrics)
