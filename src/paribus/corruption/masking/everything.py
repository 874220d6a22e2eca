"""All tokens are noise: a language model's objective, and those that only change the order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paribus.core.noise import Noise
from paribus.data.schedule import Dynamic, Schedule
from paribus.data.text import Marks, Text


@dataclass(frozen=True)
class Everything:
    """The whole row as one span."""

    schedule: Schedule = field(default_factory=Dynamic)
    semantics: ClassVar[int] = 1
    rate: ClassVar[float] = 1.0
    predict: ClassVar[None] = None
    by_words: ClassVar[bool] = False
    single: ClassVar[bool] = True
    whole: ClassVar[bool] = True
    row: ClassVar[str] = "all"

    def check(self, length: int) -> None:
        """Every row has noise."""

    def fixed(self, raw: int) -> tuple[int, int]:
        """(noise tokens, spans) of every row of `raw` tokens."""
        return raw, 1

    def __call__(self, text: Text, noise: Noise) -> Marks:
        return Marks(text.free_BL.astype(np.int16))
