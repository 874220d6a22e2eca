"""Windows of equal length at random places of the text, without a frame (Al-Rfou et al., arXiv 1808.04444)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import integers
from paribus.data.formats.input_format import Draw, InputFormat, Store
from paribus.data.formats.windows import SHORTEST, WindowIndex, check_window
from paribus.data.mask_schedule import Dynamic, MaskSchedule


@dataclass(frozen=True)
class RandomWindows(InputFormat):
    """As many windows as the text of all documents has room for, each at a place of its own, so that they may overlap.

    A pass reads as many tokens as the text has, some of them twice and some not at all; the next pass draws again. A
    text that is shorter than a window is one window. Raises UserError for a length without room for text, and for a
    text of fewer than two tokens.
    """

    redraw: MaskSchedule = field(default_factory=Dynamic, kw_only=True)
    framed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_window(self.length)

    def index(self, store: Store, length: int, draw: Draw) -> WindowIndex:
        first, end = (int(store.sentence_start[store.document_start[at]]) for at in (0, -1))
        tokens = end - first
        if tokens < SHORTEST:
            raise UserError(f"a text of {tokens} tokens has no window", "give more text")
        length = min(length, tokens)
        windows = tokens // length
        start_N = first + integers(draw(np.arange(windows)).bits("window", 1)[:, 0], tokens - length + 1)
        length_N: NDArray[np.int32] = np.full(windows, length, np.int32)
        return WindowIndex(start_N, length_N)
