"""No noise: the text is read as it is and all of it is predicted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paribus.core.noise import Noise
from paribus.data.schedule import Dynamic, Schedule
from paribus.data.text import Marks, Text


@dataclass(frozen=True)
class NoNoise:
    """Every free token is predicted and none is noise: for objectives that hide the text by their attention.

    `schedule` says when pairs are drawn anew, where the input has such.
    """

    schedule: Schedule = field(default_factory=Dynamic)
    semantics: ClassVar[int] = 1
    rate: ClassVar[float] = 0.0
    predict: ClassVar[None] = None
    by_words: ClassVar[bool] = False
    spans: ClassVar[bool] = False

    def check(self, length: int) -> None:
        """Every row with a free token holds a prediction."""

    def __call__(self, text: Text, noise: Noise) -> Marks:
        return Marks(np.zeros(text.free_BL.shape, np.int16), predicted_BL=text.free_BL)
