"""Deshuffling: tokens in random order.   T5 (arXiv 1910.10683), section 3.3.1, its `all_permute`"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from paribus.core.noise import Noise
from paribus.corruption.masking.everything import Everything
from paribus.data.text import Marks, Text


@dataclass(frozen=True)
class Permute(Everything):
    """Every order of a row's tokens equally likely."""

    reorders: ClassVar[bool] = True

    def __call__(self, text: Text, noise: Noise) -> Marks:
        width = text.ids_BL.shape[1]
        key_BL = noise.bits("order", width).astype(np.uint64)
        key_BL[np.arange(width) >= text.length_B[:, None]] = 1 << 32  # padding stays behind
        order_BL = np.argsort(key_BL, axis=1, kind="stable")
        return replace(super().__call__(text, noise), order_BL=order_BL)
