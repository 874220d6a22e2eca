"""Tasks as text to read and text to write.   T5 (arXiv 1910.10683), section 2.4"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator, SingleStreamCollator
from paribus.tasks.examples import Example, normalize
from paribus.tasks.prompts import Fields, Parts, Ragged, TextRows, encode_sources, encode_targets, index_texts
from paribus.tasks.rows import TaskRows, count_tokens, head_tokens, no_room, tokenize
from paribus.tasks.types.base import LOSSES, Pooler, TaskType

if TYPE_CHECKING:
    from paribus.data.sequences import Array
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.ensemble import Ensemble
    from paribus.models.heads.head import Head, TokenHead
    from paribus.models.network import Batch, Network

SPARE = 2  # tokens that the model may write beyond the longest word and its end
UNKNOWN = "unknown_rate"  # share of answers that are none of the task's words


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


class WordTaskType(Verbalized):
    """The label in words, one of `words`. Any other answer is wrong, and is counted."""

    @property
    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """Every right answer that there is."""

    def source(self, example: Example) -> Parts:
        return self.fields.announce(example.text, example.pair)

    def most_tokens(self, tokenizer: Tokenizer, settings: FineTuning) -> int:
        return int(count_tokens(tokenize(self.words, tokenizer)).max()) + 1 + SPARE

    def check_tokenizer(self, tokenizer: Tokenizer, settings: FineTuning) -> None:
        """Also checks that every word fits, and that the tokenizer spells no two words alike."""
        super().check_tokenizer(tokenizer, settings)
        ids = tokenize(self.words, tokenizer)
        length_N, room, name = count_tokens(ids), settings.target_length, self.fields.name
        longest = int(length_N.max()) + 1
        if longest > room:
            word = self.words[int(length_N.argmax())]
            raise UserError(
                f"finetune.target_length={room} cuts the label {word!r} of {name}", f"raise it to {longest}"
            )
        spelled = self._spell(tokenizer)
        first = index_texts(spelled)
        for place, text in enumerate(spelled):
            if (other := first[normalize(text)]) != place:
                raise UserError(
                    f"the tokenizer reads the labels {self.words[other]!r} and {self.words[place]!r} of {name} alike",
                    "raise tokenizer.vocab_size, or train the tokenizer on text that has their letters",
                )

    def _spell(self, tokenizer: Tokenizer) -> list[str]:
        """The words as the tokenizer reads them."""
        return tokenizer.texts([ids.tolist() for ids in tokenize(self.words, tokenizer)])

    def find_words(self, texts: Sequence[str], tokenizer: Tokenizer) -> Array:
        """Int64 [N]: which word each text is, as the tokenizer spells it; -1 if it is none."""
        known = index_texts(self._spell(tokenizer))
        return np.array([known.get(normalize(text), -1) for text in texts], np.int64)
