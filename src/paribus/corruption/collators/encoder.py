"""Arrays of an encoder that reads the whole row and predicts in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.corruption.masking.prediction import predicted_rate
from paribus.data.text import Arrays, Views

if TYPE_CHECKING:
    from paribus.corruption.corruption import Corruption


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

    def raw_length(self, budget: int, corruption: Corruption) -> int:
        """The encoder reads the rows as they are."""
        return budget

    def read_lengths(self, raw_N: NDArray[np.int32], corruption: Corruption) -> NDArray[np.int32]:
        """The encoder reads the rows as they are."""
        return raw_N

    def predicted_share(self, raw: int, corruption: Corruption) -> float:
        """Of the tokens read, as the masking says."""
        return predicted_rate(float(corruption.masking.rate), corruption.masking.predict) + corruption.moved_rate

    def check(self, corruption: Corruption) -> None:
        """Raise UserError for a corruption that an encoder cannot be trained on."""
        if corruption.targets is not None:
            raise UserError("the objective writes text, but the model is an encoder", "take a text-to-text model")
        masking = corruption.masking
        if any(getattr(masking, name, False) for name in ("reorders", "inserts", "whole")):
            kind = type(masking).__name__
            raise UserError(f"{kind} leaves nothing to predict in place", "take objective=denoising or another masking")

    def shown(self, arrays: Arrays, vocabulary: Any) -> dict[str, int]:
        """How the predicted tokens are shown; a random token that equals the original counts as kept."""
        read_P = arrays["ids_BL"].reshape(-1)[arrays["slot_P"]]
        masked, kept = (int(np.count_nonzero(read_P == shown)) for shown in (vocabulary.mask, arrays["target_P"]))
        return {"masked": masked, "kept": kept, "randomized": len(read_P) - masked - kept}

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """Share of the text's tokens that are predicted (masking_rate) and that are noise (corruption_rate), of all
        tokens read that are predicted (predicted_share); of the predicted, the shares shown as mask, random
        token and itself; padding's share of positions; tokens a span of noise; the share of the text's tokens that is
        predicted out of order, where words are put out of order.
        """
        predicted = max(counts["predicted"], 1)
        return {
            "masking_rate": counts["predicted"] / max(counts["raw_tokens"], 1),
            "corruption_rate": counts["noise"] / max(counts["raw_tokens"], 1),
            "predicted_share": counts["predicted"] / max(counts["input_tokens"], 1),
            "mask": counts["masked"] / predicted,
            "random": counts["randomized"] / predicted,
            "keep": counts["kept"] / predicted,
            "padding_share": counts["padding"] / max(counts["padding"] + counts["input_tokens"], 1),
            "mean_span_length": counts["noise"] / max(counts["spans"], 1),
            **({"moved_rate": counts["moved"] / max(counts["raw_tokens"], 1)} if "moved" in counts else {}),
        }


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
