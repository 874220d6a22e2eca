"""In which order the noise of a row is predicted, as ranks.   XLNet (arXiv 1906.08237), section 2.3 and `data_utils.py`

A place attends to the places whose rank is not above its own, and a query that asks for a token to those of a lower
rank. All text that is not noise has one rank, so that it sees itself and no noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise
from paribus.corruption.attention_mask import AttentionMask
from paribus.data.sequences import Text, Views

PART: Final = 1 << 20  # above the ranks of the part before
_PADDING: Final = 1 << 32  # above every draw


@dataclass(frozen=True)
class Permutation(AttentionMask):
    """Noise, [SEP] and [CLS] are in an order of which all are equally likely; the other tokens come before them.

    So a noise token sees all text that is not noise, and the noise, [SEP] and [CLS] before it. If the next row reads on
    within this one (`Text.reused_B`), the part that it does not read again sees nothing of the rest, which sees all of
    that part. A noise token that would see nothing is not predicted: the first of a row without other text.
    """

    def __call__(self, views: Views, noise: Noise) -> Views:
        assert isinstance(views.inputs, Text)
        text, marks = views.text, views.marks
        draw_BL = noise.bits("permutation", text.ids_BL.shape[1]).astype(np.int64)
        draw_BL[np.arange(text.ids_BL.shape[1]) >= text.length_B[:, None]] = _PADDING
        order_BL = draw_BL.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        ordered_BL = (marks.span_BL > 0) | (text.sentence_BL < 0)
        rank_BL = np.where(ordered_BL, 1 + order_BL, 0) + PART * text.later_BL
        blind_BL = rank_BL == rank_BL.min(axis=1, keepdims=True)
        asked_BL = np.zeros_like(blind_BL)
        asked_BL.reshape(-1)[marks.slot_P] = True
        marks = replace(marks, predicted_BL=asked_BL & ~blind_BL)
        return views._replace(marks=marks, inputs=replace(views.inputs, rank_BL=rank_BL.astype(np.int32)))


@dataclass(frozen=True)
class AllAtOnce(AttentionMask):
    """Every noise token is predicted from all other text, and from no noise: what a masked language model is asked."""

    def __call__(self, views: Views, noise: Noise) -> Views:
        assert isinstance(views.inputs, Text)
        rank_BL: NDArray[np.int32] = (views.marks.span_BL > 0).astype(np.int32)
        return views._replace(inputs=replace(views.inputs, rank_BL=rank_BL))
