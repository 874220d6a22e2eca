"""Shuffled words outside the noise, as in StructBERT (arXiv 1908.04577), section 2.2."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise, integers
from paribus.data.sequences import Flags, Marks, Text, Views

SIZE: Final = 3
ORDERS: Final = np.array([[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])  # all but the text's own
_TAKEN: Final = np.iinfo(np.uint64).max  # the draw of a place at which no further trigram can start


class Shuffling(ABC):
    """A step after the views: some tokens outside the noise are shuffled, and predicted too."""

    semantics: ClassVar[int] = 1

    @abstractmethod
    def __call__(self, views: Views, noise: Noise) -> Views:
        """The views with the new order in `inputs` and the moved places in `marks.moved_P`."""


@dataclass(frozen=True)
class ShuffledTrigrams(Shuffling):
    """A `share` of the runs of three ordinary tokens without noise is shuffled, all orders equally likely.

    The runs are drawn one after another and never overlap: max(1, round(share * runs)) of a row, fewer if no more fit.
    All three positions are predicted, even one that keeps its token. Raises UserError for a share outside (0, 1].
    """

    share: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UserError(
                f"objective.shuffling.share={self.share} is out of range", "give a share above 0, at most 1"
            )

    def __call__(self, views: Views, noise: Noise) -> Views:
        row_S, column_S = np.nonzero(self._choose_starts(views.text, views.marks, noise))
        start_S1 = (row_S * views.text.ids_BL.shape[1] + column_S)[:, None]
        order_S3 = ORDERS[integers(noise.at("trigram order", row_S, column_S), len(ORDERS))]
        moved_P = (start_S1 + np.arange(SIZE)).reshape(-1)
        ids_BL = views.inputs.ids_BL.copy()
        ids_BL.reshape(-1)[moved_P] = views.text.ids_BL.reshape(-1)[(start_S1 + order_S3).reshape(-1)]
        read = replace(views.text, ids_BL=ids_BL)
        return views._replace(marks=replace(views.marks, moved_P=moved_P), inputs=read)

    def _choose_starts(self, text: Text, marks: Marks, noise: Noise) -> Flags:
        """bool [B, L]: the first tokens of the trigrams."""
        possible_BL = find_runs(text.free_BL & (marks.span_BL == 0))
        runs_B = np.count_nonzero(possible_BL, axis=1)
        wanted_B = np.minimum(np.maximum(1, np.rint(self.share * runs_B)), runs_B)
        draw_BL = noise.bits("trigrams", text.ids_BL.shape[1]).astype(np.uint64)
        draw_BL[~possible_BL] = _TAKEN
        chosen_BL, rows_B = np.zeros_like(possible_BL), np.arange(len(runs_B))
        for number in range(int(wanted_B.max(initial=0))):
            at_B = draw_BL.argmin(axis=1)
            taken_B = (number < wanted_B) & (draw_BL[rows_B, at_B] != _TAKEN)
            chosen_BL[rows_B[taken_B], at_B[taken_B]] = True
            for beside in range(1 - SIZE, SIZE):
                inside_B = taken_B & (at_B + beside >= 0) & (at_B + beside < draw_BL.shape[1])
                draw_BL[rows_B[inside_B], at_B[inside_B] + beside] = _TAKEN
        return chosen_BL


def find_runs(plain_BL: Flags) -> Flags:
    """bool [B, L]: this place and the two after it are marked."""
    run_BL = np.zeros_like(plain_BL)
    run_BL[:, : 1 - SIZE] = plain_BL[:, : 1 - SIZE] & plain_BL[:, 1:-1] & plain_BL[:, SIZE - 1 :]
    return run_BL
