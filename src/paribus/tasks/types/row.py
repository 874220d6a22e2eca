"""Tasks with one label per example, which a classifier reads off one vector of a row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.models.heads.choices import TextCNN
from paribus.tasks.examples import Example
from paribus.tasks.key_sentences import KINDS
from paribus.tasks.metrics import score_labels
from paribus.tasks.rows import (
    GPT,
    TaskRows,
    encode,
    encode_apart,
    encode_both_orders,
    encode_stretches,
    encode_windows,
    frame_of,
)
from paribus.tasks.types.base import Pooler, ProbeItems, TaskType

if TYPE_CHECKING:
    from torch import Tensor

    from paribus.data.sequences import Array
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.ensemble import Ensemble
    from paribus.models.heads.head import Head, RowLoss
    from paribus.models.network import Batch, Network


class RowTaskType(TaskType):
    """One row per example, of which a classifier reads one vector. With `finetune/head/windows` or
    `finetune/head=siamese` an example has several rows; so has a pair of a `symmetric` task, whose texts have no order,
    with `finetune.format=gpt`.
    """

    symmetric: bool = False
    shortens: ClassVar[bool] = True

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of outputs of the classifier."""

    @property
    def label_range(self) -> tuple[float, float] | None:
        """Least and greatest label, if labels are values."""
        return None

    def answer_range(self, settings: FineTuning) -> tuple[float, float] | None:
        """The range of values that a cosine of two texts stands for; None if the classifier's output is the answer."""
        return self.label_range if settings.head.by_cosine else None

    def find_unread(self, settings: FineTuning) -> list[str]:
        """Windows and texts that are read separately are not cut; the classifier on separately read texts has no
        dropout, and a cosine of their pooled states has no weights.
        """
        apart, several = settings.head.pairs, settings.head.windows.several
        unread = (["truncation", "covers"] if apart or several else []) + (["head.dropout"] if apart else [])
        if settings.head.by_cosine and not isinstance(settings.head.pooling, TextCNN):
            unread.append("head_lr")
        return [*(name for name in super().find_unread(settings) if name != "covers"), *unread]

    def check_settings(self, settings: FineTuning, key: str) -> None:
        """Rows in GPT-1's format hold one text or pair each, which no head reads separately."""
        super().check_settings(settings, key)
        if settings.format == GPT and (settings.head.windows.several or settings.head.pairs or settings.head.paired):
            cause = "finetune.format=gpt reads a text or a pair as one row, but finetune/head asks for others"
            raise UserError(cause, "set finetune/head=linear, or finetune.format=bert")

    def check_tokenizer(self, tokenizer: Tokenizer, settings: FineTuning) -> None:
        """The vocabulary must have the tokens of the format."""
        frame_of(tokenizer.vocabulary, settings.format)

    def reads_both(self, settings: FineTuning) -> bool:
        """Whether pairs are read in both orders."""
        return self.symmetric and settings.format == GPT

    def check_fit(self, settings: FineTuning, examples: Sequence[Example]) -> None:
        """Windows and key sentences need single texts, a siamese network needs pairs, and a cosine needs values."""
        paired = examples[0].pair is not None
        if settings.head.windows.several and paired:
            raise UserError("finetune/head/windows is set, but the task has pairs", "set finetune/head/windows=none")
        if settings.truncation in KINDS and paired:
            cause = f"finetune.truncation={settings.truncation} is set, but the task has pairs"
            raise UserError(cause, "set finetune.truncation=head")
        if settings.head.pairs and not paired:
            raise UserError("finetune/head=siamese, but the task has single texts", "set finetune/head=classifier")
        if settings.head.paired and not paired:
            raise UserError("finetune/head=san, but the task has single texts", "set finetune/head=classifier")
        if settings.head.paired and self.label_range is not None:
            raise UserError("finetune/head=san gives classes, but the task has values", "set finetune/head=classifier")
        if settings.head.by_cosine and self.label_range is None:
            raise UserError("finetune.head.parts=cosine is for tasks with values", "use [u, v, difference]")

    def encode(
        self, examples: Sequence[Example], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> TaskRows:
        length, windows = settings.length, settings.head.windows
        if windows.in_order:
            return encode_stretches(examples, tokenizer, vocabulary, length, windows.most, settings.batch_size)
        if windows.several:
            return encode_windows(
                examples, tokenizer, vocabulary, length, windows.stride, windows.most, settings.batch_size
            )
        if settings.head.pairs:
            return encode_apart(examples, tokenizer, vocabulary, length, 2 * settings.batch_size)
        if self.reads_both(settings):
            return encode_both_orders(examples, tokenizer, vocabulary, settings)
        return encode(examples, tokenizer, vocabulary, length, settings.truncation, settings.format)

    def fit_length(
        self, train: Sequence[Any], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> FineTuning:
        if settings.covers is None:
            return settings
        length_N = self.encode(train, tokenizer, vocabulary, settings).length_N
        return replace(settings, length=int(np.quantile(length_N, settings.covers, method="higher")))

    def make_head(self, settings: FineTuning, model: Network, seed: int, pooler: Pooler | None = None) -> Head:
        from paribus.models.heads.choices import BothOrders, RowAnswer

        form = replace(settings.head, windows=BothOrders()) if self.reads_both(settings) else settings.head
        pretrained = pooler if settings.head.pretrained_pooler else None
        answer = RowAnswer(self.width, self.make_loss(settings), self.answer_range(settings), pretrained)
        head: Head = form.for_rows(model, answer, seed)
        return head

    def make_loss(self, settings: FineTuning) -> RowLoss:
        from paribus.models.heads.head import loss_of

        return loss_of(settings)

    def infer(self, model: Network | Ensemble, head: Head | Ensemble, batch: Batch) -> Array:
        """[B, width], in full precision."""
        from paribus.models.heads.head import name_places

        logits: Array = head.logits(model(name_places([head], batch)), batch).float().cpu().numpy()
        return logits

    def list_probed(self, rows: TaskRows, examples: Sequence[Example]) -> ProbeItems:
        """One item for each example."""
        label_N = np.array([row.label for row in examples], np.int64 if self.classes else np.float32)
        return ProbeItems(label_N, ["\t".join(row.texts) for row in examples], np.ones(len(examples), np.int64))

    def read_probed(self, state_BLD: Tensor, batch: Batch, summarize: Callable[[Tensor], Tensor]) -> Tensor:
        """The summary of the row, or the mean over the windows of a text."""
        from paribus.models.heads.wrappers import gather_rows

        row_BD = summarize(state_BLD)
        if "place_BK" not in batch:
            return row_BD
        row_BKD, real_BK1 = gather_rows(row_BD, batch["place_BK"])
        return (row_BKD * real_BK1).sum(1) / real_BK1.sum(1)

    def check_examples(self, rows: Sequence[Any], key: str) -> None:
        if len({row.label for row in rows}) < 2:
            needed = "every class" if self.classes else "other labels"
            raise UserError(f"{key}: all training examples have the same label", f"use a train split with {needed}")

    def predict(self, outputs_N: Sequence[Any], rows: TaskRows, examples: Sequence[Example]) -> Array:
        """The outputs themselves, [N, width]."""
        return np.stack(outputs_N)

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[Example]) -> dict[str, float]:
        """Predictions are outputs [N, width], or classes or values [N]."""
        labels_N = np.array([row.label for row in examples])
        return score_labels(self.metrics, np.asarray(predictions), labels_N, self.width)
