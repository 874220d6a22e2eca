"""Arrays of an encoder that reads the whole row and predicts in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ceteris.text import Arrays, Views


@dataclass(frozen=True)
class Encoder:
    """ids, lengths, segments, and the predicted positions with their targets."""

    semantics: ClassVar[int] = 1

    def pack(self, views: Views, vocabulary: Any) -> Arrays:
        """ids_BL, part_BL [B, L], length_B, slot_P (flat into B x L, ascending), target_P: int64; counts: ints."""
        text, slot_P = views.text, views.marks.slot_P
        arrays: Arrays = {
            "ids_BL": views.inputs.ids_BL,
            "length_B": text.length_B,
            "part_BL": text.part_BL.astype(np.int64),
            "slot_P": slot_P,
            "target_P": text.ids_BL.reshape(-1)[slot_P],
            "counts": _counts(views),
        }
        if text.label_B is not None:
            arrays["label_N"] = text.label_B
        if (moved_P := views.marks.moved_P) is not None:
            arrays |= {"moved_P": moved_P, "moved_target_P": text.ids_BL.reshape(-1)[moved_P]}
        return arrays


def _counts(views: Views) -> dict[str, int]:
    tokens, pairs = int(views.text.length_B.sum()), views.text.label_B is not None
    return {
        "sequences": len(views.text.length_B),
        "raw_tokens": views.text.tokens,
        "input_tokens": tokens,
        "padding": views.text.ids_BL.size - tokens,
        "predicted": len(views.marks.slot_P),
        "noise": len(views.marks.noise_P),
        "spans": views.marks.spans,
        **({"pairs": len(views.text.length_B)} if pairs else {}),
        **({} if views.marks.moved_P is None else {"moved": len(views.marks.moved_P)}),
    }
