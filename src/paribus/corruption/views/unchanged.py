"""The text as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.core.noise import Noise
from paribus.data.text import Marks, Text

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Unchanged:
    """Nothing is replaced."""

    semantics: ClassVar[int] = 1

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Text:
        return text
