"""A class for a text or a pair of texts, or for each of several texts that belong together: by a head, or in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.tasks.baselines import classify_by_words
from paribus.tasks.examples import Example, GroupedExample
from paribus.tasks.metrics import OF_CLASSES
from paribus.tasks.prompts import Fields
from paribus.tasks.types.base import Probable
from paribus.tasks.types.row import RowTaskType
from paribus.tasks.types.text_to_text import UNKNOWN, WordTaskType

if TYPE_CHECKING:
    from paribus.data.sequences import Array
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.models.ensemble import Ensemble
    from paribus.models.heads.head import Head
    from paribus.models.network import Batch, Network

WHOLE = "em"  # share of the groups in which every answer is right


@dataclass(frozen=True)
class Classification(RowTaskType, Probable):
    """One of several classes, by a score for each. `symmetric`: the two texts of a pair have no order."""

    classes: tuple[str, ...]
    metrics: tuple[str, ...] = ("accuracy",)
    symmetric: bool = False
    known_metrics: ClassVar[tuple[str, ...]] = OF_CLASSES
    probed: ClassVar[bool] = True

    @property
    def width(self) -> int:
        return len(self.classes)

    def check(self, key: str) -> None:
        super().check(key)
        self.check_classes(key)

    def verbalize(self, fields: Fields, single: bool) -> ClassNames:
        return ClassNames(fields, single, self.classes, self.metrics)

    def count_labels(self, rows: Sequence[Example]) -> dict[str, int]:
        counts = Counter(row.label for row in rows)
        return {name: counts[label] for label, name in enumerate(self.classes)}

    def find_gold(self, model: Network | Ensemble, head: Head | Ensemble, batch: Batch, outputs: Array) -> Array:
        from scipy.special import softmax

        share_BC = softmax(np.asarray(outputs, np.float64), axis=-1)
        gold_B: Array = share_BC[np.arange(len(share_BC)), batch["label_B"].cpu().numpy()]
        return gold_B

    def find_right(self, predictions: Sequence[Any] | Array, examples: Sequence[Example]) -> Array:
        right_N: Array = np.asarray(predictions).argmax(-1) == [row.label for row in examples]
        return right_N

    def predict_baselines(self, train: Sequence[Example], validation: Sequence[Example]) -> Mapping[str, Any]:
        """The most frequent class, and a linear model on a bag of words."""
        most = np.bincount(np.array([row.label for row in train])).argmax()
        return {"majority": np.full(len(validation), most), "bag_of_words": classify_by_words(train, validation)}


@dataclass(frozen=True)
class ClassNames(WordTaskType, Probable):
    """A class by its name."""

    fields: Fields
    single: bool
    classes: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("accuracy",)
    known_metrics: ClassVar[tuple[str, ...]] = OF_CLASSES

    @property
    def words(self) -> tuple[str, ...]:
        return self.classes

    @property
    def plain(self) -> Classification:
        return Classification(self.classes, self.metrics)

    def target(self, example: Example) -> str:
        return self.classes[int(example.label)]

    def parse(self, texts: Sequence[str], tokenizer: Tokenizer) -> Array:
        """Class numbers, -1 for an unknown answer."""
        return self.find_words(texts, tokenizer)

    def find_gold(self, model: Network | Ensemble, head: Head | Ensemble, batch: Batch, outputs: object) -> Array:
        """The probability that the model writes the name of the right class and its end; it is asked again, as in
        training.
        """
        from torch.nn.functional import cross_entropy

        loss_P = cross_entropy(head.logits(model(batch), batch).float(), batch["target_P"], reduction="none")
        label_BT = batch["label_BT" if "label_BT" in batch else "label_BL"]
        row_P = batch["slot_P"] // label_BT.shape[1]
        total_B = loss_P.new_zeros(len(label_BT)).index_add(0, row_P, loss_P)
        gold_B: Array = total_B.neg().exp().cpu().numpy()
        return gold_B

    def find_right(self, predictions: Sequence[Any] | Array, examples: Sequence[Example]) -> Array:
        right_N: Array = np.asarray(predictions) == [row.label for row in examples]
        return right_N

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[Example]) -> dict[str, float]:
        """An unknown answer counts as the class after the right one, so that it is wrong."""
        class_N = np.asarray(predictions)
        wrong_N = (np.array([row.label for row in examples]) + 1) % len(self.classes)
        values = self.plain.score(np.where(class_N < 0, wrong_N, class_N), examples)
        return {**values, UNKNOWN: float((class_N < 0).mean())}


@dataclass(frozen=True)
class GroupedClassification(Classification):
    """A classification whose metric `em` counts groups that are right as a whole (MultiRC, Khashabi et al. 2018)."""

    known_metrics: ClassVar[tuple[str, ...]] = (*OF_CLASSES, WHOLE)
    example_class: ClassVar[type] = GroupedExample

    def verbalize(self, fields: Fields, single: bool) -> GroupedNames:
        return GroupedNames(fields, single, self.classes, self.metrics)

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[Any]) -> dict[str, float]:
        class_N = np.asarray(predictions)
        class_N = class_N.argmax(-1) if class_N.ndim == 2 else class_N
        wrong = {row.group for row, predicted in zip(examples, class_N, strict=True) if predicted != row.label}
        plain = Classification(self.classes, tuple(name for name in self.metrics if name != WHOLE))
        share = 1 - len(wrong) / len({row.group for row in examples})
        values = {**plain.score(class_N, examples), WHOLE: share}
        return {name: values[name] for name in self.metrics}


@dataclass(frozen=True)
class GroupedNames(ClassNames):
    """The same in words."""

    known_metrics: ClassVar[tuple[str, ...]] = GroupedClassification.known_metrics
    example_class: ClassVar[type] = GroupedExample

    @property
    def plain(self) -> GroupedClassification:
        return GroupedClassification(self.classes, self.metrics)
