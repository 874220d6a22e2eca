"""Collators of encoders that predict in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.corruption.attention_mask import KINDS, count_kinds
from paribus.corruption.collators.collator import Collator, Places
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.units import find_begins
from paribus.data.sequences import Array, Arrays, Text, Views
from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class EncoderCollator(Collator):
    """The encoder reads the whole row and predicts in place."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """ids_BL, part_BL [B, L], length_B, slot_P (flat into B x L, ascending), target_P: int64; counts: ints; of rows
        of a stream also reused_B and reversed_B (`Text`).
        """
        text, slot_P = views.text, views.marks.slot_P
        tokens = int(text.length_B.sum())
        arrays: Arrays = {
            "ids_BL": views.inputs.ids_BL,
            "length_B": text.length_B,
            "part_BL": text.part_BL.astype(np.int64),
            "slot_P": slot_P,
            "target_P": text.ids_BL.reshape(-1)[slot_P],
            "counts": {
                "sequences": len(text.length_B),
                "raw_tokens": text.tokens,
                "input_tokens": tokens,
                "padding": text.ids_BL.size - tokens,
                "predicted": len(slot_P),
                "noise": len(views.marks.noise_P),
                "spans": views.marks.spans,
            },
        }
        if text.label_B is not None:
            arrays["label_N"] = text.label_B
            arrays["counts"]["pairs"] = len(text.label_B)
        streamed = {"reused_B": text.reused_B, "reversed_B": text.reversed_B}
        arrays |= {name: array_B for name, array_B in streamed.items() if array_B is not None}
        if (moved_P := views.marks.moved_P) is not None:
            arrays["counts"]["moved"] = len(moved_P)
            arrays |= {"moved_P": moved_P, "moved_target_P": text.ids_BL.reshape(-1)[moved_P]}
        return arrays

    def check(self, corruption: Corruption) -> None:
        if corruption.targets is not None:
            raise UserError("the objective writes text, but the model is an encoder", "use a text-to-text model")
        masking = corruption.masking
        if masking.reorders or masking.inserts or masking.whole_row:
            pattern = type(masking).__name__
            mend = "use objective=denoising or another masking"
            raise UserError(f"{pattern} leaves nothing to predict in place", mend)

    def count_shown(self, arrays: Arrays, vocabulary: Vocabulary) -> dict[str, int]:
        """How the predicted tokens are shown; a random token that equals the original counts as kept."""
        read_P = arrays["ids_BL"].reshape(-1)[arrays["slot_P"]]
        masked, kept = (int(np.count_nonzero(read_P == shown)) for shown in (vocabulary.mask, arrays["target_P"]))
        return {"masked": masked, "kept": kept, "randomized": len(read_P) - masked - kept}

    def find_places(self, arrays: Arrays) -> Places:
        """Both neighbors; a predicted place lies between special tokens, of which the last may be the next row's."""
        read, slot_P = arrays["ids_BL"].reshape(-1), arrays["slot_P"]
        return Places(arrays["target_P"], [read[slot_P - 1], read[(slot_P + 1) % len(read)]], read[slot_P])

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """masking_rate: predicted share of the text · corruption_rate: noise share of the text · predicted_share:
        predicted share of all tokens read · mask, random, keep: how predicted tokens are shown · padding_share: of
        positions · mean_span_length: tokens · moved_rate: share of the text predicted out of order, if words are moved.
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


@dataclass(frozen=True)
class CausalCollator(EncoderCollator):
    """A left-to-right language model: each target is predicted at the position before it, the usual shift by one.

    Neither the first nor the last token of a row is ever a target, so that the places beside a target are in its row.
    """

    shift: ClassVar[int] = -1  # from a target to where it is predicted

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """The arrays of an encoder; slot_P is the position next to each target."""
        arrays = super().arrays(views, vocabulary)
        return {**arrays, "slot_P": arrays["slot_P"] + self.shift}

    def find_places(self, arrays: Arrays) -> Places:
        """The token before each target, which is the last one read."""
        return Places(arrays["target_P"], [arrays["ids_BL"].reshape(-1)[arrays["slot_P"]]])

    def count_shown(self, arrays: Arrays, vocabulary: Vocabulary) -> dict[str, int]:
        """No target is shown at its own position."""
        return {"masked": 0, "kept": 0, "randomized": 0}


@dataclass(frozen=True)
class BackwardCollator(CausalCollator):
    """A right-to-left language model: each target is predicted at the position after it."""

    shift: ClassVar[int] = 1


@dataclass(frozen=True)
class TwoWayCollator(CausalCollator):
    """Each target is predicted from both sides."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """The arrays of a left-to-right model, and `back_P`, the position after each target."""
        arrays = super().arrays(views, vocabulary)
        return {**arrays, "back_P": arrays["slot_P"] + 2}


@dataclass(frozen=True)
class RankedCollator(EncoderCollator):
    """Each row has its own attention mask: a position attends to positions whose rank is not above its own."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """The arrays of an encoder, rank_BL, and counts of the rows with each kind of mask."""
        arrays = super().arrays(views, vocabulary)
        assert isinstance(views.inputs, Text)
        assert views.inputs.rank_BL is not None
        rank_BL = views.inputs.rank_BL
        return {**arrays, "rank_BL": rank_BL, "counts": {**arrays["counts"], **count_kinds(rank_BL)}}

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """The rates of an encoder, and the share of rows with each kind of mask."""
        rows = max(counts["sequences"], 1)
        return {**super().rates(counts), **{kind: counts[kind] / rows for kind in KINDS}}


@dataclass(frozen=True)
class BoundaryCollator(EncoderCollator):
    """Also predicts spans from their boundaries: S targets with the places around their span and the place in it.

    A span is a run of adjacent noise. It has no term if it touches the first or last token of its segment, next to a
    special token of the frame. Only its first `most` tokens are targets.   SpanBERT (arXiv 1907.10529), section 3.2
    """

    most: int = 20

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """Those of an encoder, and int64: left_S, right_S (flat into B x L), place_S (from 0), inside_S, the target."""
        arrays, text = super().arrays(views, vocabulary), views.text
        left_P, right_P = _find_neighbors(views.marks.span_BL > 0)
        slot_P = views.marks.slot_P
        left_S, right_S = left_P[slot_P], right_P[slot_P]
        place_S, framed_P = slot_P - left_S - 1, (text.sentence_BL < 0).reshape(-1)
        kept_S = ~framed_P[left_S] & ~framed_P[right_S] & (place_S < self.most)
        names = {"left_S": left_S, "right_S": right_S, "place_S": place_S, "inside_S": arrays["target_P"]}
        counts = {**arrays["counts"], "boundary": int(np.count_nonzero(kept_S))}
        return {**arrays, **{name: column_S[kept_S] for name, column_S in names.items()}, "counts": counts}


def _find_neighbors(noise_BL: Array) -> tuple[Array, Array]:
    """For each flat place of noise, the places before and after its run; arbitrary for other places.

    The first token of a row and the last before padding are special, so that a run lies within its row.
    """
    begin_P = np.flatnonzero(find_begins(noise_BL))
    end_P = np.flatnonzero(find_begins(noise_BL[:, ::-1])[:, ::-1])
    run_P = np.cumsum(find_begins(noise_BL)) - 1
    if not len(begin_P):
        return run_P, run_P
    return begin_P[run_P] - 1, end_P[run_P] + 1
