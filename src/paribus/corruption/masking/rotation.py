"""Document rotation.   BART (arXiv 1910.13461), section 2.2; fairseq's `add_rolling_noise`"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise, integers
from paribus.corruption.masking.everything import Everything
from paribus.data.text import Marks, Text


@dataclass(frozen=True)
class Rotation(Everything):
    """Each row starts at a uniform token other than its first and goes on with its beginning."""

    reorders: ClassVar[bool] = True
    row: ClassVar[str] = "rotation"

    def __call__(self, text: Text, noise: Noise) -> Marks:
        return replace(super().__call__(text, noise), order_BL=rotated(text, noise))


def rotated(text: Text, noise: Noise) -> NDArray[np.int64]:
    """[B, L]: the column to read at each place; padding stays."""
    length_B = text.length_B[:, None]
    offset_B = 1 + integers(noise.bits("rotation", 1), np.maximum(length_B - 1, 1))
    column_L = np.arange(text.ids_BL.shape[1])
    order_BL: NDArray[np.int64] = np.where(column_L < length_B, (column_L + offset_B) % length_B, column_L)
    return order_BL
