"""One of several options for a text, such as the answers to a question about it, or the best of many candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.core.settings import FineTuning
from paribus.tasks.baselines import choose_by_words
from paribus.tasks.examples import ChoiceExample
from paribus.tasks.prompts import Fields, Parts
from paribus.tasks.rows import GroupedRows, TaskRows, encode_options
from paribus.tasks.types.base import LOSSES, Pooler, TaskType
from paribus.tasks.types.classification import Classification, ClassNames

if TYPE_CHECKING:
    from paribus.data.sequences import Array
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Network


@dataclass(frozen=True)
class MultipleChoice(Classification):
    """A score for each option from the text with that option, by one head, and a softmax over the options (GPT-1,
    Radford et al. 2018, section 3.3; BERT, arXiv 1810.04805, section 4.4). `classes` name the places of the options.
    """

    known_metrics: ClassVar[tuple[str, ...]] = ("accuracy",)
    example_class: ClassVar[type] = ChoiceExample
    shortens: ClassVar[bool] = False

    def verbalize(self, fields: Fields, single: bool) -> OptionNames:
        return OptionNames(fields, single, self.classes, self.metrics)

    def find_unread(self, settings: FineTuning) -> list[str]:
        return [*super().find_unread(settings), "covers"]

    def check_fit(self, settings: FineTuning, examples: Sequence[Any]) -> None:
        """An example has a row for each option and no others."""
        TaskType.check_fit(self, settings, examples)

    def encode(
        self, examples: Sequence[Any], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> GroupedRows:
        return encode_options(examples, tokenizer, vocabulary, settings)

    def make_head(self, settings: FineTuning, model: Network, seed: int, pooler: Pooler | None = None) -> Head:
        from paribus.models.heads.choices import Options, RowAnswer

        pretrained = pooler if settings.head.pretrained_pooler else None
        answer = RowAnswer(1, self.make_loss(settings), None, pretrained)
        head: Head = replace(settings.head, windows=Options()).for_rows(model, answer, seed)
        return head

    def predict_baselines(self, train: Sequence[Any], validation: Sequence[Any]) -> Mapping[str, Any]:
        """The place that is right most often, and a linear model on the words of a text and an option."""
        most = np.bincount([row.label for row in train]).argmax()
        return {"majority": np.full(len(validation), most), "bag_of_words": choose_by_words(train, validation)}


@dataclass(frozen=True)
class OptionNames(ClassNames):
    """The name of the right option's place; the model reads all options, each after its name (T5, arXiv 1910.10683,
    appendix D.4: COPA).
    """

    known_metrics: ClassVar[tuple[str, ...]] = ("accuracy",)
    example_class: ClassVar[type] = ChoiceExample

    def source(self, example: Any) -> Parts:
        texts = {**dict(zip(self.classes, example.options, strict=True)), self.fields.text: example.text}
        if example.question is not None:
            texts[self.fields.pair or "question"] = example.question
        (first, said), *rest = sorted(texts.items())
        return [(f"{self.fields.name} {first}:", said), *((f"{name}:", text) for name, text in rest)]


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
        return {str(size): count for size, count in sorted(Counter(len(row.options) for row in rows).items())}

    def predict(self, outputs_N: Sequence[Any], rows: TaskRows, examples: Sequence[Any]) -> Array:
        """int64 [N]: the place of the candidate with the highest score."""
        return np.array([int(np.argmax(scores_K)) for scores_K in outputs_N], np.int64)

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[Any]) -> dict[str, float]:
        """The share of examples whose right candidate has the highest score."""
        return {"accuracy": float(self.find_right(predictions, examples).mean())}

    def find_right(self, predictions: Sequence[Any] | Array, examples: Sequence[Any]) -> Array:
        right_N: Array = np.asarray(predictions) == [row.label for row in examples]
        return right_N
