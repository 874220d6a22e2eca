"""One run of consecutive tokens.   MASS (arXiv 1905.02450), section 3.1 and its code"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise, below, integers
from paribus.corruption.masking.budget import check_rounding
from paribus.data.schedule import Dynamic, Schedule
from paribus.data.text import Marks, Text

FIRST, LAST = 0.2, 0.2  # shares of rows whose fragment stands at the start, at the end


@dataclass(frozen=True)
class Fragment:
    """round(rate * length) consecutive free tokens: in a fifth of the rows the first ones, in a fifth the last ones,
    elsewhere they start anywhere with equal probability. One token is predicted as BERT does; at a rate of 1 it is the
    whole row, as a language model does (section 3.2).

    Raises UserError for a rate outside (0, 1].
    """

    rate: float = 0.5
    schedule: Schedule = field(default_factory=Dynamic)
    semantics: ClassVar[int] = 1
    predict: ClassVar[None] = None
    by_words: ClassVar[bool] = False
    single: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.rate, int | float) or not 0 < self.rate <= 1:
            raise UserError(f"masking.rate={self.rate}", "give a share above 0, at most 1 for whole rows, such as 0.5")

    @property
    def row(self) -> str:
        """The name of the pattern, such as fragment_50."""
        return f"fragment_{100 * self.rate:g}"

    def check(self, length: int) -> None:
        """Raise UserError where a fragment of `length` tokens would be empty."""
        check_rounding(self.rate, None, length)

    def fixed(self, raw: int) -> tuple[int, int]:
        """(noise tokens, spans) of every row of `raw` tokens."""
        return max(1, round(self.rate * raw)), 1

    def __call__(self, text: Text, noise: Noise) -> Marks:
        place_BL = np.cumsum(text.free_BL, axis=1) - 1
        free_B = place_BL[:, -1] + 1
        size_B = np.maximum(np.rint(self.rate * free_B), 1).astype(np.int64)
        draw_B2 = noise.bits("masking", 2)
        start_B = integers(draw_B2[:, 1], free_B - size_B + 1)
        start_B[draw_B2[:, 0] < below(FIRST)] = 0
        last_B = draw_B2[:, 0] >= below(1 - LAST)
        start_B[last_B] = (free_B - size_B)[last_B]
        inside_BL = (place_BL >= start_B[:, None]) & (place_BL < (start_B + size_B)[:, None])
        return Marks((inside_BL & text.free_BL).astype(np.int16))
