"""Read the beginning, write the rest.   T5 (arXiv 1910.10683), section 3.3.1; its `random_prefix_noise_mask`"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise, integers
from paribus.data.schedule import Dynamic, Schedule
from paribus.data.text import Marks, Text


@dataclass(frozen=True)
class Prefix:
    """All free tokens behind a prefix of uniform length in [1, length - 1] are noise."""

    schedule: Schedule = field(default_factory=Dynamic)
    semantics: ClassVar[int] = 1
    rate: ClassVar[float] = 0.5
    predict: ClassVar[None] = None
    by_words: ClassVar[bool] = False
    single: ClassVar[bool] = True
    row: ClassVar[str] = "prefix"

    def check(self, length: int) -> None:
        """Raise UserError where there is no room for a prefix and a rest."""
        if length < 2:
            raise UserError(f"rows of {length} tokens have no prefix", "raise input.length")

    def expected(self, raw: int) -> tuple[float, float]:
        """(noise tokens, spans) of a row of `raw` tokens on average."""
        return raw / 2, 1.0

    def __call__(self, text: Text, noise: Noise) -> Marks:
        place_BL = np.cumsum(text.free_BL, axis=1)
        prefix_B = 1 + integers(noise.bits("masking", 1)[:, 0], np.maximum(place_BL[:, -1] - 1, 1))
        return Marks(((place_BL > prefix_B[:, None]) & text.free_BL).astype(np.int16))
