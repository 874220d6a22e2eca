"""Tasks as text to read and text to write.   T5 (arXiv 1910.10683), section 2.4"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator, SingleStreamCollator
from paribus.tasks.baselines import retrieve_targets
from paribus.tasks.examples import GenerationExample
from paribus.tasks.metrics import TEXT_METRICS, score_texts
from paribus.tasks.prompts import Fields, Parts, Ragged, TextRows, encode_sources, encode_targets
from paribus.tasks.rows import TaskRows, head_tokens, no_room, tokenize
from paribus.tasks.types.base import LOSSES, Pooler, TaskType

if TYPE_CHECKING:
    from paribus.data.sequences import Array
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.ensemble import Ensemble
    from paribus.models.heads.head import Head, TokenHead
    from paribus.models.network import Batch, Network


class TextTaskType(TaskType):
    """Trained by teacher forcing on the target; answers come from greedy decoding.

    Attributes:
        fields: the names that announce the texts.
        single: whether the model reads and writes one stream.
    """

    writes_text = True
    fields: Fields
    single: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "fields", Fields(*self.fields))  # a saved task type has a list

    def find_unread(self, settings: FineTuning) -> list[str]:
        """Settings of a head on an encoder, which a text-to-text model does not have."""
        return ["head", "head_lr", "format", "covers", "target_masking", *LOSSES]

    @abstractmethod
    def source(self, example: Any) -> Parts:
        """What the model reads."""

    @abstractmethod
    def target(self, example: Any) -> str:
        """What the model must write."""

    def most_tokens(self, tokenizer: Tokenizer, settings: FineTuning) -> int:
        """How many tokens the model may write by itself."""
        return int(settings.target_length)

    @abstractmethod
    def parse(self, texts: Sequence[str], tokenizer: Tokenizer) -> Sequence[Any] | Array:
        """The prediction that each written text is."""

    def check_tokenizer(self, tokenizer: Tokenizer, settings: FineTuning) -> None:
        """There must be room for a text after its prefix, and for an answer."""
        announced = self.fields.announce("")[0][0]
        if settings.length < len(tokenize([announced], tokenizer)[0]) + 2:
            raise no_room(settings.length)
        if settings.target_length < 2:
            raise UserError(
                f"finetune.target_length={settings.target_length} is too short", "set at least 2, the end included"
            )

    def encode(
        self, examples: Sequence[Any], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> TextRows:
        parts, texts = [self.source(row) for row in examples], [self.target(row) for row in examples]
        head = head_tokens(settings.truncation)
        read = encode_sources(parts, tokenizer, vocabulary, settings.length, head)
        write = encode_targets(texts, tokenizer, vocabulary, settings.target_length)
        collator = SingleStreamCollator() if self.single else EncoderDecoderCollator()
        most = self.most_tokens(tokenizer, settings)
        return TextRows(Ragged.of(read), Ragged.of(write), collator, vocabulary.pad, most, tokenizer)

    def make_head(self, settings: FineTuning, model: Network, seed: int, pooler: Pooler | None = None) -> Head:
        """The language-model head of pre-training; `pooler` holds its weights, if it has its own."""
        from paribus.models.heads.vocabulary import LanguageModelHead, start_head

        return start_head(LanguageModelHead(model), model, seed, pooler)

    def infer(self, model: Network | Ensemble, head: Head | Ensemble, batch: Batch) -> Sequence[list[int]]:
        """The token ids that the model writes."""
        from paribus.models.generation import greedy

        return greedy(model, cast("TokenHead", head), batch, int(batch["most"]))

    def predict(self, outputs_N: Sequence[Any], rows: TaskRows, examples: Sequence[Any]) -> Sequence[Any] | Array:
        tokenizer: Tokenizer = cast(Any, rows).tokenizer
        return self.parse(tokenizer.texts(outputs_N), tokenizer)


class Verbalized(TextTaskType):
    """A task as text that a head on an encoder can do as well, as `plain`."""

    @property
    @abstractmethod
    def plain(self) -> TaskType: ...

    def check_examples(self, rows: Sequence[Any], key: str) -> None:
        self.plain.check_examples(rows, key)

    def count_labels(self, rows: Sequence[Any]) -> dict[str, int]:
        return self.plain.count_labels(rows)

    def predict_baselines(self, train: Sequence[Any], validation: Sequence[Any]) -> Mapping[str, Any]:
        return self.plain.predict_baselines(train, validation)


@dataclass(frozen=True)
class TransferType(TextTaskType):
    """Any text for a text, scored against the one target."""

    fields: Fields
    single: bool = False
    metrics: tuple[str, ...] = ("rougeL", "exact_match")
    known_metrics: ClassVar[tuple[str, ...]] = TEXT_METRICS
    example_class: ClassVar[type] = GenerationExample

    def check_examples(self, rows: Sequence[GenerationExample], key: str) -> None:
        if len({row.target for row in rows}) < 2:
            raise UserError(f"{key}: all training examples have the same target", "use a train split with others")

    def count_labels(self, rows: Sequence[GenerationExample]) -> dict[str, int]:
        """The words of all targets, and the number of different targets."""
        return {"words": sum(len(row.target.split()) for row in rows), "different": len({row.target for row in rows})}

    def source(self, example: GenerationExample) -> Parts:
        return self.fields.announce(example.text, example.pair)

    def target(self, example: GenerationExample) -> str:
        return example.target

    def parse(self, texts: Sequence[str], tokenizer: Tokenizer) -> Sequence[str]:
        return texts

    def score(self, predictions: Sequence[str] | Array, examples: Sequence[GenerationExample]) -> dict[str, float]:
        return score_texts(self.metrics, list(predictions), [row.target for row in examples])

    def predict_baselines(
        self, train: Sequence[GenerationExample], validation: Sequence[GenerationExample]
    ) -> Mapping[str, Any]:
        """The most frequent target, and that of the most similar training text."""
        most = Counter(row.target for row in train).most_common(1)[0][0]
        return {"majority": [most] * len(validation), "bag_of_words": retrieve_targets(train, validation)}
