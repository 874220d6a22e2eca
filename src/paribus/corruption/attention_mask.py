"""Attention masks that a corruption draws for each row, as in UniLM (arXiv 1905.03197), section 2.3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise, integers
from paribus.data.sequences import Array, Text, Views

KINDS: Final = ("bidirectional", "sequence_to_sequence", "left_to_right", "right_to_left")


class AttentionMask(ABC):
    """A step after the views: gives each row its attention mask, as `rank_BL` of what is read.

    A place attends to the places of a rank not above its own.
    """

    semantics: ClassVar[int] = 1

    @abstractmethod
    def __call__(self, views: Views, noise: Noise) -> Views:
        """The views with `inputs.rank_BL`."""


@dataclass(frozen=True)
class MixedAttention(AttentionMask):
    """One of four masks, drawn for each row with these relative weights.

    bidirectional: a token sees all tokens. sequence_to_sequence: it sees the source, and a target token also the target
    to its left. left_to_right, right_to_left: it sees the tokens on one side. The source is the first segment, or the
    tokens up to a random place after the first if there is one text.
    Raises UserError for a negative weight, or if all weights are 0.
    """

    bidirectional: float = 2.0
    sequence_to_sequence: float = 2.0
    left_to_right: float = 1.0
    right_to_left: float = 1.0

    def __post_init__(self) -> None:
        weights = {kind: getattr(self, kind) for kind in KINDS}
        if min(weights.values()) < 0 or not any(weights.values()):
            raise UserError(
                f"objective.attention_mask={weights} is not valid", "give weights of at least 0, one of them above it"
            )

    def __call__(self, views: Views, noise: Noise) -> Views:
        assert isinstance(views.inputs, Text)
        text, bound_K = views.text, np.cumsum([getattr(self, kind) for kind in KINDS])
        draw_B = noise.bits("sight", 1)[:, 0] / 2.0**32 * bound_K[-1]
        kind_B1 = np.searchsorted(bound_K, draw_B, side="right")[:, None]
        pair_B = text.part_BL.any(axis=1)
        cut_B = 2 + integers(noise.bits("source", 1)[:, 0], np.maximum(text.length_B - 2, 1))
        source_B = np.where(pair_B, np.maximum(text.part_BL.argmax(axis=1), 2), cut_B)  # with [CLS] at least two tokens
        place_L = np.arange(text.ids_BL.shape[1])
        behind_BL = np.maximum(place_L - source_B[:, None] + 1, 0)
        rank_BL = np.select([kind_B1 == 0, kind_B1 == 1, kind_B1 == 2], [0, behind_BL, place_L], -place_L)
        return views._replace(inputs=replace(views.inputs, rank_BL=rank_BL.astype(np.int32)))


def count_kinds(rank_BL: Array) -> Mapping[str, int]:
    """Rows of each kind, recognized by the rank of the second place, and of the last place if that is 0."""
    second_B, last_B = rank_BL[:, 1], rank_BL[:, -1]
    kinds = {
        "bidirectional": (second_B == 0) & (last_B == 0),
        "sequence_to_sequence": (second_B == 0) & (last_B > 0),
        "left_to_right": second_B > 0,
        "right_to_left": second_B < 0,
    }
    return {kind: int(np.count_nonzero(rows_B)) for kind, rows_B in kinds.items()}
