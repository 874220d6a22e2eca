"""A task as text that is read and text that is written.   T5 (arXiv 1910.10683), section 2.4"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from paribus.core.errors import UserError
from paribus.tasks.encode import head_part, tokens
from paribus.tasks.types.base import Pooler, TaskType
from paribus.tasks.verbalize import Fields, Parts
from paribus.tasks.written import Ragged, Written, no_room, sources, targets

if TYPE_CHECKING:
    from paribus.models.heads.head import Head
    from paribus.models.network import Batch


class TextTaskType(TaskType):
    """Learned by teacher forcing over the target, done by greedy decoding.

    `single` says that the model reads and writes one stream.
    """

    fields: Fields
    single: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", Fields(*self.fields))  # a saved form has lists
        for key in ("classes", "metrics"):
            object.__setattr__(self, key, tuple(getattr(self, key)))

    @abstractmethod
    def source(self, example: Any) -> Parts:
        """What is read."""

    @abstractmethod
    def target(self, example: Any) -> str:
        """What is to be written."""

    @abstractmethod
    def most(self, tokenizer: Any, settings: Any) -> int:
        """Tokens that are written at most when nobody says what."""

    @abstractmethod
    def read(self, texts: Sequence[str], tokenizer: Any) -> Any:
        """A prediction for each text that was written."""

    def check_words(self, tokenizer: Any, settings: Any) -> None:
        """See `TaskType.check_words`: there is room for what announces a text, and for what is written."""
        announced = self.fields.parts("")[0][0]
        if settings.length < len(tokens([announced], tokenizer)[0]) + 2:
            raise no_room(settings.length)
        if settings.target_length < 2:
            raise UserError(f"finetune.target_length={settings.target_length}", "give at least 2, the end included")

    def encode(self, examples: Sequence[Any], tokenizer: Any, vocabulary: Any, settings: Any) -> Written:
        """See `TaskType.encode`."""
        from paribus.corruption.collators.text_to_text import EncoderDecoderCollator, SingleStreamCollator

        head = head_part(settings.truncation)
        parts = [self.source(row) for row in examples]
        read = sources(parts, tokenizer, vocabulary, settings.length, head)
        write = targets([self.target(row) for row in examples], tokenizer, vocabulary, settings.target_length)
        collator = SingleStreamCollator() if self.single else EncoderDecoderCollator()
        most = self.most(tokenizer, settings)
        return Written(Ragged.of(read), Ragged.of(write), collator, vocabulary.pad, most, tokenizer)

    def head(self, settings: Any, model: Any, seed: int, pooler: Pooler | None = None) -> Head:
        """See `TaskType.head`: that of pre-training, whose weights may be given."""
        from paribus.models.heads.vocabulary import LanguageModelHead
        from paribus.models.network import initialize

        head = LanguageModelHead(model)
        initialize(head, seed, model.spec.initializer_range)
        if pooler:
            head.load_state_dict(pooler)
        return head

    def outputs(self, model: Any, head: Any, batch: Batch) -> Sequence[Any]:
        """See `TaskType.outputs`: token ids."""
        from paribus.models.greedy import greedy

        return greedy(model, head, batch, int(batch["most"]))

    def predictions(self, outputs_N: Sequence[Any], rows: Any, examples: Sequence[Any]) -> Any:
        """See `TaskType.predictions`: what the texts say."""
        tokenizer = cast(Written, rows).tokenizer
        return self.read(tokenizer.texts(outputs_N), tokenizer)
