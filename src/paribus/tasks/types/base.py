"""What a form is: everything that fine-tuning must know of a kind of task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, cast

from paribus.core.errors import UserError
from paribus.tasks.example import Example
from paribus.tasks.verbalize import Fields

if TYPE_CHECKING:
    from torch import Tensor

    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Batch
    from paribus.tasks.encode import Rows

Pooler = dict[str, "Tensor"]


class TaskType(ABC):
    """A light spec, written with the settings of the task; what needs torch imports it when it is called.

    `known` are the metrics that the form can compute, `example` is the kind of its examples.
    """

    known: ClassVar[tuple[str, ...]]
    example: ClassVar[type] = Example
    classes: tuple[str, ...] = ()
    metrics: tuple[str, ...]  # the first is the main one

    def check(self, key: str) -> None:
        """Raise UserError, under the config key of the task, for settings that make no task."""
        unknown = [metric for metric in self.metrics if metric not in self.known]
        if unknown or not self.metrics:
            raise UserError(f"{key}.metrics: {unknown or 'empty'}", f"choose from {', '.join(self.known)}")

    def config(self) -> dict[str, Any]:
        """The form as a config node, by which `components.build` makes it again."""
        kind = type(self)
        return {"_target_": f"{kind.__module__}.{kind.__qualname__}", **asdict(cast(Any, self))}

    def written(self, fields: Fields, single: bool) -> TaskType:
        """The same as text to be written by a model, of one stream or of two; the texts are called by `fields`.

        Raises UserError where there is no such form.
        """
        raise UserError(f"tasks.{fields.name} has no text-to-text form, but the model writes", "take model=bert_tiny")

    def check_words(self, tokenizer: Tokenizer, settings: Any) -> None:  # noqa: B027 (most forms write nothing)
        """Raise UserError for what this tokenizer and the settings of fine-tuning do not allow to be written."""

    def fits(self, settings: Any, examples: Sequence[Any]) -> None:
        """Raise UserError where the settings of fine-tuning ask for more rows an example than the form has."""
        if settings.head.windows.several:
            raise UserError("finetune/head/windows is for tasks on whole texts", "set finetune/head/windows=none")
        if settings.head.pairs:
            raise UserError("finetune/head=siamese is for tasks on pairs of texts", "set finetune/head=classifier")

    def check_ensemble(self, key: str) -> None:  # noqa: B027 (most forms have scores)
        """Raise UserError, under the config key of the task, where the outputs of several models have no mean."""

    @abstractmethod
    def check_examples(self, rows: Sequence[Any], key: str) -> None:
        """Raise UserError for training examples from which nothing can be learned."""

    @abstractmethod
    def counts(self, rows: Sequence[Any]) -> dict[str, int]:
        """How often each label is there."""

    @abstractmethod
    def encode(self, examples: Sequence[Any], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: Any) -> Rows:
        """Rows for the model by the settings of fine-tuning; an example may have several. Numpy only."""

    @abstractmethod
    def head(self, settings: Any, model: Any, seed: int, pooler: Pooler | None = None) -> Head:
        """A new head on a model; its initial weights depend on seed, name and shape alone."""

    @abstractmethod
    def outputs(self, model: Any, head: Any, batch: Batch) -> Sequence[Any]:
        """What the model says about each row of a batch, as plain data or arrays."""

    @abstractmethod
    def predictions(self, outputs_N: Sequence[Any], rows: Any, examples: Sequence[Any]) -> Sequence[Any]:
        """A prediction for each example, from the outputs for all rows that `encode` made of them."""

    @abstractmethod
    def score(self, predictions: Any, examples: Sequence[Any]) -> dict[str, float]:
        """The metrics by name, of a prediction for each example."""

    @abstractmethod
    def baselines(self, train: Sequence[Any], validation: Sequence[Any]) -> Mapping[str, Any]:
        """{name: predictions for validation} without a neural model."""
