"""Each token by itself.   T5 (arXiv 1910.10683), section 3.1.4; its `iid_noise_mask`"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from paribus.core.noise import Noise, below
from paribus.corruption.masking.budget import check_rates, check_rounding
from paribus.corruption.masking.units import begins, number
from paribus.data.schedule import Dynamic, Schedule
from paribus.data.text import Marks, Text


@dataclass(frozen=True)
class Iid:
    """Each free token is noise with probability `rate`; noise tokens side by side are one span.

    Counts vary from row to row, and a row may have none. Raises UserError for a rate outside (0, 1).
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
        """T5's name of the pattern, such as iid_15."""
        return f"iid_{100 * self.rate:g}"

    def check(self, length: int) -> None:
        """Raise UserError where a full row of `length` tokens has less than one noise token on average."""
        check_rounding(self.rate, None, length)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        chosen_BL = (noise.bits("masking", text.ids_BL.shape[1]) < below(self.rate)) & text.free_BL
        return Marks(number(chosen_BL, begins(chosen_BL)))
