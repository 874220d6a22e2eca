"""T5's models as plain settings; torch is imported when one is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.corruption.collators.text_to_text import EncoderDecoderCollator, SingleStreamCollator
from paribus.models.spec import ModelSpec
from paribus.models.t5_shape import T5Shape

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.text_to_text import TextToText


@dataclass(frozen=True)
class T5(T5Shape, ModelSpec):
    """A text-to-text model in the shape of T5 (arXiv 1910.10683, sections 2.1 and 3.2), with initial weights."""

    semantics: ClassVar[int] = 1

    @property
    def collator(self) -> EncoderDecoderCollator:
        return SingleStreamCollator() if self.single else EncoderDecoderCollator()

    def build(self, vocabulary: Vocabulary, seed: int) -> TextToText:
        from paribus.models.network import initialize
        from paribus.models.text_to_text import TextToText

        model = TextToText(self, vocabulary)
        initialize(model, seed, self.std)
        return model
