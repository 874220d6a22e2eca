"""Single tokens to leave out.   BART (arXiv 1910.13461), section 2.2; fairseq's `denoising_dataset.py`"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paribus.core.noise import Noise
from paribus.corruption.masking.bernoulli import lowest
from paribus.corruption.masking.budget import check_rates, spanbert_budget
from paribus.corruption.masking.units import begins, number
from paribus.data.schedule import Dynamic, Schedule
from paribus.data.text import Marks, Text


@dataclass(frozen=True)
class Deletion:
    """ceil(rate * length) free tokens of a row, each as likely as any other; those side by side are one span.

    Raises UserError for a rate outside (0, 1).
    """

    rate: float
    schedule: Schedule = field(default_factory=Dynamic)
    semantics: ClassVar[int] = 1
    predict: ClassVar[None] = None
    by_words: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_rates(self.rate, None)

    @property
    def row(self) -> str:
        """The name of the pattern, such as deletion_15."""
        return f"deletion_{100 * self.rate:g}"

    def check(self, length: int) -> None:
        """The budget is rounded up, so that every row has noise."""

    def __call__(self, text: Text, noise: Noise) -> Marks:
        wanted_B = spanbert_budget(np.count_nonzero(text.free_BL, axis=1), self.rate)
        chosen_BL = lowest(noise.bits("masking", text.ids_BL.shape[1]), text.free_BL, wanted_B)
        return Marks(number(chosen_BL, begins(chosen_BL)))
