"""A class, or a value, for a text or a pair of texts."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.tasks.encode import Rows, encode
from paribus.tasks.example import Example
from paribus.tasks.groups import apart, windows
from paribus.tasks.metrics import METRICS, score
from paribus.tasks.types.base import Pooler, TaskType
from paribus.tasks.verbalize import Fields

if TYPE_CHECKING:
    from paribus.models.heads.head import Head
    from paribus.models.heads.loss import RowLoss
    from paribus.models.network import Batch


class RowTaskType(TaskType):
    """One row for each example, and scores that a classifier gives to what stands for the row."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers that the classifier gives."""

    @property
    def span(self) -> tuple[float, float] | None:
        """Least and most of the labels where they are values."""
        return None

    def fits(self, settings: Any, examples: Sequence[Example]) -> None:
        """See `TaskType.fits`: windows need single texts, a siamese network needs pairs, a cosine needs values."""
        paired = examples[0].pair is not None
        if settings.head.windows.several and paired:
            raise UserError("finetune/head/windows is set, but the task has pairs", "set finetune/head/windows=none")
        if settings.head.pairs and not paired:
            raise UserError("finetune/head=siamese, but the task has single texts", "set finetune/head=classifier")
        if settings.head.by_cosine and self.span is None:
            raise UserError("finetune.head.parts=cosine is for tasks with values", "use [u, v, difference]")

    def encode(self, examples: Sequence[Example], tokenizer: Any, vocabulary: Any, settings: Any) -> Rows:
        """See `TaskType.encode` and `tasks.encode.encode`; `tasks.groups` where an example has several rows."""
        if settings.head.windows.several:
            return windows(examples, tokenizer, vocabulary, settings, settings.batch_size)
        if settings.head.pairs:
            return apart(examples, tokenizer, vocabulary, settings, 2 * settings.batch_size)
        return encode(examples, tokenizer, vocabulary, settings.length, settings.truncation)

    def head(self, settings: Any, model: Any, seed: int, pooler: Pooler | None = None) -> Head:
        head: Head = settings.head.for_rows(model, self.width, self.loss(settings), seed, self.span, pooler)
        return head

    def loss(self, settings: Any) -> RowLoss:
        """What a wrong output costs."""
        from paribus.models.heads.loss import loss_of

        return loss_of(settings)

    def outputs(self, model: Any, head: Any, batch: Batch) -> Sequence[Any]:
        """See `TaskType.outputs`: [B, width], in full precision."""
        logits: Sequence[Any] = head.logits(model(batch), batch).float().cpu().numpy()
        return logits

    def predictions(self, outputs_N: Sequence[Any], rows: Any, examples: Sequence[Any]) -> Any:
        """See `TaskType.predictions`: the outputs themselves, [N, width]."""
        return np.stack(outputs_N)

    def score(self, predictions: Any, examples: Sequence[Example]) -> dict[str, float]:
        """See `TaskType.score`; classes or values [N] are as good as outputs [N, width]."""
        return score(self.metrics, predictions, np.array([row.label for row in examples]), self.width)


@dataclass(frozen=True)
class Classification(RowTaskType):
    """One of several classes."""

    classes: tuple[str, ...]
    metrics: tuple[str, ...] = ("accuracy",)
    known: ClassVar[tuple[str, ...]] = METRICS

    def __post_init__(self) -> None:
        for key in ("classes", "metrics"):  # a saved form has lists
            object.__setattr__(self, key, tuple(getattr(self, key)))

    @property
    def width(self) -> int:
        """One score a class."""
        return len(self.classes)

    def check(self, key: str) -> None:
        """See `TaskType.check`."""
        super().check(key)
        if len(set(self.classes)) != len(self.classes) or len(self.classes) < 2:
            raise UserError(f"{key}.classes: {list(self.classes)}", "name at least two different classes")

    def written(self, fields: Fields, single: bool) -> TaskType:
        """See `TaskType.written`: the name of the class."""
        from paribus.tasks.types.labels import Labels

        return Labels(fields, single, self.classes, self.metrics)

    def check_examples(self, rows: Sequence[Example], key: str) -> None:
        """See `TaskType.check_examples`."""
        if len({row.label for row in rows}) < 2:
            raise UserError(f"{key}: all training examples have the same label", "give a train split with every class")

    def counts(self, rows: Sequence[Example]) -> dict[str, int]:
        """See `TaskType.counts`."""
        counts = Counter(row.label for row in rows)
        return {name: counts[label] for label, name in enumerate(self.classes)}

    def baselines(self, train: Sequence[Example], validation: Sequence[Example]) -> Mapping[str, Any]:
        """See `TaskType.baselines`: the most frequent class, and a linear model on a bag of words."""
        from paribus.tasks.baselines import bag_of_words

        most = np.bincount(np.array([row.label for row in train])).argmax()
        return {"majority": np.full(len(validation), most), "bag_of_words": bag_of_words(train, validation)}
