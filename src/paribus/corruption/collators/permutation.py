"""The collator of permutation language models: nothing is hidden in the text, and ranks say who sees whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paribus.corruption.collators.collator import Places
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.data.sequences import Arrays, Ints, Text, Views
from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class PermutationCollator(EncoderCollator):
    """The whole text with a rank for each place, which a network with two streams reads."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """The arrays of an encoder; also rank_BL, int64 [B, L], and near_P2, the ids of the neighbors of each target,
        or the mask token for one that it does not see.
        """
        arrays = super().arrays(views, vocabulary)
        assert isinstance(views.inputs, Text)
        assert views.inputs.rank_BL is not None
        rank_BL, slot_P = views.inputs.rank_BL.astype(np.int64), arrays["slot_P"]
        near_P2 = (slot_P[:, None] + np.array([-1, 1])) % rank_BL.size
        seen_P2 = rank_BL.reshape(-1)[near_P2] < rank_BL.reshape(-1)[slot_P][:, None]
        seen_P2 |= near_P2 % rank_BL.shape[1] == 0  # where a row begins there is a [CLS], also behind the last token
        shown_P2: Ints = np.where(seen_P2, views.text.ids_BL.reshape(-1)[near_P2], vocabulary.mask)
        return {**arrays, "rank_BL": rank_BL, "near_P2": shown_P2}

    def find_places(self, arrays: Arrays) -> Places:
        """The neighbors that the target sees."""
        return Places(arrays["target_P"], [arrays["near_P2"][:, 0], arrays["near_P2"][:, 1]])

    def count_shown(self, arrays: Arrays, vocabulary: Vocabulary) -> dict[str, int]:
        """No target is shown to its own query."""
        return {"masked": 0, "kept": 0, "randomized": 0}
