"""The collator of language models on streams: every token of a segment predicts the next one of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paribus.corruption.collators.collator import Collator, Places
from paribus.corruption.corruption import Corruption
from paribus.data.sequences import Arrays, Views
from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class StreamCollator(Collator):
    """The network reads all tokens of a row but the last; each predicts the one after it, unknown words included.

    late: only the targets of the later half of a row count, which all have at least half a row to their left
    (Transformer-XL, arXiv 1901.02860, table 6: "half loss"). last: only the last place of a row is asked. second: a row
    has one token more, and the token after each target is a target too (Al-Rfou et al., arXiv 1808.04444, section 3).
    """

    late: bool = False
    last: bool = False
    second: bool = False

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """ids_BL, part_BL [B, L], length_B, slot_P (flat into B x L, ascending), target_P: int64; counts: ints. With
        `second` also second_P, the token after each target.
        """
        text = views.text
        length_B = text.length_B - self.ahead
        ids_BL = text.ids_BL[:, : -self.ahead].copy()
        column_L = np.arange(ids_BL.shape[1])
        real_BL = column_L < length_B[:, None]
        ids_BL[~real_BL] = vocabulary.pad
        asked_BL = real_BL & (column_L >= length_B[:, None] // 2) if self.late else real_BL
        if self.last:
            asked_BL = column_L == length_B[:, None] - 1
        slot_P = np.flatnonzero(asked_BL)
        width = ids_BL.shape[1]
        second = {"second_P": text.ids_BL[:, 2:].reshape(-1)[slot_P]} if self.second else {}
        tokens = int(length_B.sum())
        return {
            "ids_BL": ids_BL,
            "length_B": length_B,
            "part_BL": np.zeros_like(ids_BL),
            "slot_P": slot_P,
            "target_P": text.ids_BL[:, 1 : width + 1].reshape(-1)[slot_P],
            **second,
            "counts": {
                "sequences": len(length_B),
                "raw_tokens": tokens,
                "input_tokens": tokens,
                "padding": ids_BL.size - tokens,
                "predicted": len(slot_P),
                "noise": 0,
                "spans": 0,
            },
        }

    @property
    def ahead(self) -> int:
        """Tokens of a row that the network does not read."""
        return 2 if self.second else 1

    def check(self, corruption: Corruption) -> None:
        """Without noise any text will do; the objective refuses noise."""

    def raw_length(self, budget: int, corruption: Corruption) -> int:
        """One more than is read, the last target, or two."""
        return budget + self.ahead

    def read_lengths(self, raw_N: NDArray[np.int32], corruption: Corruption) -> NDArray[np.int32]:
        return raw_N - np.int32(self.ahead)

    def find_places(self, arrays: Arrays) -> Places:
        """The token before each target, which is the last one read."""
        return Places(arrays["target_P"], [arrays["ids_BL"].reshape(-1)[arrays["slot_P"]]])

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """predicted_share: targets per token read · padding_share: of positions."""
        return {
            "predicted_share": counts["predicted"] / max(counts["input_tokens"], 1),
            "padding_share": counts["padding"] / max(counts["padding"] + counts["input_tokens"], 1),
        }
